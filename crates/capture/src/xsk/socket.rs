//! A socket, its rings, and the queue of an interface that it is bound to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_sys::mmap::{Access, Mapping};

use super::ring::{Consumer, Descriptor, Entry, Layout, Producer};
use super::sys;
use super::umem::Umem;
use crate::packet_socket::set_option;

/// Microseconds for `SO_BUSY_POLL`. That it is not 0 is what counts: the calls that poll here do
/// not wait, and pass over the queue once (`net/xdp/xsk.c`, `sk_busy_loop(sk, 1)`).
const BUSY_POLL_MICROSECONDS: libc::c_int = 20;
/// Frames of a poll: as many as a softIRQ takes at once (`NAPI_POLL_WEIGHT` of
/// linux/netdevice.h), because the polling replaces it, and not the 8 of occasional polls.
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// How long a queue may stay taken when its last socket has been closed: the kernel leaves it to a
/// worker to free it, which nobody is told of (`net/xdp/xsk_buff_pool.c`, `xp_put_pool`).
const RELEASE_LIMIT: Duration = Duration::from_secs(1);
const RELEASE_PAUSE: Duration = Duration::from_millis(1);

/// How many entries a socket's rings have: powers of two, at least 1 in the fill and completion
/// ring; 0 for a ring that is not wanted in the other two, of which there has to be one.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of the fill ring.
    pub fill: u32,
    /// Of the completion ring.
    pub completion: u32,
    /// Of the receive ring.
    pub receive: u32,
    /// Of the transmit ring.
    pub transmit: u32,
}

/// Our ends of a socket's rings. They outlive the socket, but nothing moves in them after it.
#[derive(Debug)]
pub struct Rings {
    /// Addresses of chunks that the kernel may fill.
    pub fill: Producer<u64>,
    /// Addresses of chunks that have been sent.
    pub completion: Consumer<u64>,
    /// Frames that have arrived.
    pub receive: Option<Consumer<Descriptor>>,
    /// Frames to be sent.
    pub transmit: Option<Producer<Descriptor>>,
}

/// How a socket was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The driver itself uses the chunks; otherwise the kernel copies frames to and from them.
    pub zero_copy: bool,
    /// A frame too long for a chunk comes in several, whose descriptors
    /// [continue](Descriptor::continues); otherwise it is dropped, and counted in
    /// [`Statistics::dropped`].
    pub multi_buffer: bool,
}

/// What the kernel counted for a socket: `struct xdp_statistics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames dropped for want of a chunk in the fill ring, or because they were too long for one.
    pub dropped: u64,
    /// Frames dropped because the receive ring was full.
    pub ring_full: u64,
    /// How often the kernel found the fill ring empty. In zero-copy mode the driver looks ahead of
    /// need, so that no frame may have been lost by it.
    pub fill_ring_empty: u64,
    /// Entries of the fill or receive ring that the kernel refused as invalid.
    pub invalid: u64,
    /// Entries of the transmit ring that the kernel refused as invalid.
    pub transmit_invalid: u64,
}

/// An AF_XDP socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// What the kernel uses for as long as the socket is open.
    umem: Arc<Umem>,
}

impl Socket {
    /// Opens a socket on `umem` with rings of `sizes`. It is bound to nothing yet: chunks that a
    /// driver is to find from the start go into the fill ring before [`Socket::bind`].
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_NET_RAW`, `EAFNOSUPPORT` where it has no AF_XDP,
    /// `ENOBUFS` where the memory is beyond the limit of locked memory (`RLIMIT_MEMLOCK`),
    /// `EINVAL` for a size that is none.
    pub fn open(umem: &Arc<Umem>, sizes: Sizes) -> io::Result<(Self, Rings)> {
        let fd = sys::socket()?;
        let socket = Self { fd, umem: Arc::clone(umem) };
        socket.set(libc::XDP_UMEM_REG, &umem.registration())?;
        let rings = socket.rings(sizes)?;
        Ok((socket, rings))
    }

    /// Sets the rings up and maps them. The mapping of each is found by a constant of its own.
    fn rings(&self, sizes: Sizes) -> io::Result<Rings> {
        self.set(libc::XDP_UMEM_FILL_RING, &sizes.fill)?;
        self.set(libc::XDP_UMEM_COMPLETION_RING, &sizes.completion)?;
        if sizes.receive > 0 {
            self.set(libc::XDP_RX_RING, &sizes.receive)?;
        }
        if sizes.transmit > 0 {
            self.set(libc::XDP_TX_RING, &sizes.transmit)?;
        }
        let offsets: libc::xdp_mmap_offsets = sys::get(self.as_fd(), libc::XDP_MMAP_OFFSETS)?;
        let fill = libc::XDP_UMEM_PGOFF_FILL_RING;
        let completion = libc::XDP_UMEM_PGOFF_COMPLETION_RING;
        let offset = |page: u64| page.try_into().map_err(|_| io::ErrorKind::Unsupported);
        let fill = self.map::<u64>(&offsets.fr, offset(fill)?, sizes.fill)?;
        let completion = self.map::<u64>(&offsets.cr, offset(completion)?, sizes.completion)?;
        let receive = (sizes.receive > 0)
            .then(|| self.map::<Descriptor>(&offsets.rx, libc::XDP_PGOFF_RX_RING, sizes.receive))
            .transpose()?;
        let transmit = (sizes.transmit > 0)
            .then(|| self.map::<Descriptor>(&offsets.tx, libc::XDP_PGOFF_TX_RING, sizes.transmit))
            .transpose()?;
        Ok(Rings {
            fill: Producer::new(fill.0, fill.1, sizes.fill),
            completion: Consumer::new(completion.0, completion.1, sizes.completion),
            receive: receive.map(|(memory, at)| Consumer::new(memory, at, sizes.receive)),
            transmit: transmit.map(|(memory, at)| Producer::new(memory, at, sizes.transmit)),
        })
    }

    fn map<T: Entry>(
        &self,
        offsets: &libc::xdp_ring_offset,
        page: libc::off_t,
        size: u32,
    ) -> io::Result<(Mapping, Layout)> {
        let at = |offset: u64| usize::try_from(offset).map_err(|_| io::ErrorKind::Unsupported);
        let layout = Layout {
            producer: at(offsets.producer)?,
            consumer: at(offsets.consumer)?,
            flags: at(offsets.flags)?,
            entries: at(offsets.desc)?,
        };
        let length = layout.entries + size as usize * size_of::<T>();
        Ok((Mapping::shared(self.as_fd(), page, length, Access::ReadWrite)?, layout))
    }

    /// Binds the socket to a queue of the interface with index `interface` in the network
    /// namespace that the socket was opened in, without copies if the driver can do that.
    /// `long_frames` says that frames may be too long for a chunk.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` where there is no such queue, `EBUSY` where another socket has had it
    /// for a second since, `ENETDOWN` where the interface is down.
    pub fn bind(&self, interface: u32, queue: u32, long_frames: bool) -> io::Result<Bound> {
        // A driver may have zero-copy for frames of one chunk only, and a kernel before 6.6 knows
        // no others.
        let modes = [
            Bound { zero_copy: true, multi_buffer: long_frames },
            Bound { zero_copy: false, multi_buffer: true },
            Bound { zero_copy: false, multi_buffer: false },
        ];
        let deadline = Instant::now() + RELEASE_LIMIT;
        loop {
            let mut refused = io::Error::from(io::ErrorKind::Unsupported);
            for mode in modes {
                match sys::bind(self.as_fd(), interface, queue, mode.flags()) {
                    Ok(()) => return Ok(mode),
                    Err(error) => refused = error,
                }
                // Not to be granted less only because the queue comes free in between.
                if refused.raw_os_error() == Some(libc::EBUSY) {
                    break;
                }
            }
            if refused.raw_os_error() != Some(libc::EBUSY) || Instant::now() > deadline {
                return Err(refused);
            }
            thread::sleep(RELEASE_PAUSE);
        }
    }

    /// The memory that the socket's frames lie in.
    #[must_use]
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// What the kernel counted since the socket was opened.
    ///
    /// # Errors
    /// The kernel's.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let counted: libc::xdp_statistics = sys::get(self.as_fd(), libc::XDP_STATISTICS)?;
        Ok(Statistics {
            dropped: counted.rx_dropped,
            ring_full: counted.rx_ring_full,
            fill_ring_empty: counted.rx_fill_ring_empty_descs,
            invalid: counted.rx_invalid_descs,
            transmit_invalid: counted.tx_invalid_descs,
        })
    }

    /// Makes [`Socket::wake_receive`] and [`Socket::wake_transmit`] run the driver's queue on the
    /// calling thread, instead of waiting for a softIRQ to do so. For a thread that calls them
    /// without pause, it saves the interrupt and the wake-up (napi.rst, "Busy polling"). Where the
    /// interface's `napi_defer_hard_irqs` and `gro_flush_timeout` are set, interrupts stay masked
    /// for as long as it does ("IRQ mitigation").
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_NET_ADMIN`, `ENOPROTOOPT` from a kernel before 5.11 or
    /// without `CONFIG_NET_RX_BUSY_POLL`.
    pub fn busy_poll(&self) -> io::Result<()> {
        let options = [
            (libc::SO_PREFER_BUSY_POLL, 1),
            (libc::SO_BUSY_POLL, BUSY_POLL_MICROSECONDS),
            (libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET),
        ];
        options.iter().try_for_each(|(option, value)| {
            set_option(self.as_fd(), libc::SOL_SOCKET, *option, value)
        })
    }

    /// Has the kernel take up the fill ring, and what has arrived. With XDP_USE_NEED_WAKEUP, which
    /// the sockets here are bound with, it does so by itself unless the ring
    /// [says otherwise](Producer::needs_wakeup).
    ///
    /// # Errors
    /// The kernel's, which a caller may pass over: `ENETDOWN`, `ENXIO` where the interface is down
    /// or gone.
    pub fn wake_receive(&self) -> io::Result<()> {
        sys::receive_nothing(self.as_fd())
    }

    /// Has the kernel take up the transmit ring. Where it copies, it sends a batch a call, 32
    /// frames (`net/xdp/xsk.c`), on the calling thread.
    ///
    /// # Errors
    /// The kernel's. `EAGAIN` and `ENOBUFS` say that frames are left in the ring and the call is to
    /// be made again, and so does `EBUSY`; where the kernel copies, it says too that the interface
    /// has dropped a frame.
    pub fn wake_transmit(&self) -> io::Result<()> {
        sys::send_nothing(self.as_fd())
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        set_option(self.as_fd(), libc::SOL_XDP, option, value)
    }
}

impl Bound {
    fn flags(self) -> libc::__u16 {
        let copies = if self.zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
        let pieces = if self.multi_buffer { libc::XDP_USE_SG } else { 0 };
        copies | pieces | libc::XDP_USE_NEED_WAKEUP
    }
}

impl AsFd for Socket {
    /// epoll(7) has news of it when frames have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
