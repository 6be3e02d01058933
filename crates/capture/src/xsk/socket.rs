//! A socket, its rings, and the queue of an interface that it is bound to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpRingOffset};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};
use wirestamp_sys::mmap::{Access, Mapping};
use wirestamp_sys::socket::set_option;

use super::ring::{Consumer, Descriptor, Entry, Layout, Producer};
use super::umem::Umem;

/// Microseconds for `SO_BUSY_POLL`. Only a value above 0 matters: the polling calls here do not wait, and poll the
/// queue once (`net/xdp/xsk.c`, `sk_busy_loop(sk, 1)`).
const BUSY_POLL_MICROSECONDS: libc::c_int = 20;
/// Frames per poll: as many as in a softIRQ (`NAPI_POLL_WEIGHT` of linux/netdevice.h), which the polling replaces,
/// instead of the 8 of occasional polls.
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// How long a queue may stay occupied after its last socket was closed: a worker of the kernel frees it later,
/// without notification (`net/xdp/xsk_buff_pool.c`, `xp_put_pool`).
const RELEASE_LIMIT: Duration = Duration::from_secs(1);
const RELEASE_PAUSE: Duration = Duration::from_millis(1);

/// Number of entries of a socket's rings: powers of two, at least 1 in the fill and completion ring; 0 for no ring
/// in the other two, of which at least one is required.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Fill ring.
    pub fill: u32,
    /// Completion ring.
    pub completion: u32,
    /// Receive ring.
    pub receive: u32,
    /// Transmit ring.
    pub transmit: u32,
}

/// This process's ends of a socket's rings. They may outlive the socket, but then no longer change.
#[derive(Debug)]
pub struct Rings {
    /// Addresses of chunks that the kernel may fill.
    pub fill: Producer<u64>,
    /// Addresses of chunks that were sent.
    pub completion: Consumer<u64>,
    /// Frames that have arrived.
    pub receive: Option<Consumer<Descriptor>>,
    /// Frames to send.
    pub transmit: Option<Producer<Descriptor>>,
}

/// Properties of a bound socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Zero-copy: the driver uses the chunks; otherwise the kernel copies frames.
    pub zero_copy: bool,
    /// A frame larger than a chunk arrives in several, whose descriptors [continue](Descriptor::continues);
    /// otherwise it is dropped, and counted in [`Statistics::dropped`].
    pub multi_buffer: bool,
}

/// The kernel's counts for a socket: `struct xdp_statistics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames dropped because the fill ring was empty, or because they were larger than a chunk.
    pub dropped: u64,
    /// Frames dropped because the receive ring was full.
    pub ring_full: u64,
    /// How often the fill ring was empty when the kernel read it. In zero-copy mode the driver reads ahead, so the
    /// count may increase without a lost frame.
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
    /// Memory that the kernel uses while the socket is open.
    umem: Arc<Umem>,
}

impl Socket {
    /// Opens a socket on `umem` with rings of `sizes`. It is not bound: put chunks that a driver needs from the
    /// start into the fill ring before [`Socket::bind`].
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_NET_RAW`, `EAFNOSUPPORT` without AF_XDP, `ENOBUFS` if the memory exceeds
    /// the limit of locked memory (`RLIMIT_MEMLOCK`), `EINVAL` for an invalid size.
    pub fn open(umem: &Arc<Umem>, sizes: Sizes) -> io::Result<(Self, Rings)> {
        let fd = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let socket = Self { fd, umem: Arc::clone(umem) };
        sockopt::set_xdp_umem_reg(&socket, umem.registration())?;
        let rings = socket.rings(sizes)?;
        Ok((socket, rings))
    }

    /// Sets up and maps the rings. Each is mapped at a constant offset.
    fn rings(&self, sizes: Sizes) -> io::Result<Rings> {
        sockopt::set_xdp_umem_fill_ring_size(self, sizes.fill)?;
        sockopt::set_xdp_umem_completion_ring_size(self, sizes.completion)?;
        if sizes.receive > 0 {
            sockopt::set_xdp_rx_ring_size(self, sizes.receive)?;
        }
        if sizes.transmit > 0 {
            sockopt::set_xdp_tx_ring_size(self, sizes.transmit)?;
        }
        let offsets = sockopt::xdp_mmap_offsets(self)?;
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
        offsets: &XdpRingOffset,
        page: libc::off_t,
        size: u32,
    ) -> io::Result<(Mapping, Layout)> {
        let at = |offset: u64| usize::try_from(offset).map_err(|_| io::ErrorKind::Unsupported);
        let layout = Layout {
            producer: at(offsets.producer)?,
            consumer: at(offsets.consumer)?,
            flags: at(offsets.flags.ok_or(io::ErrorKind::Unsupported)?)?,
            entries: at(offsets.desc)?,
        };
        let length = layout.entries + size as usize * size_of::<T::Raw>();
        Ok((Mapping::shared(self.as_fd(), page, length, Access::ReadWrite)?, layout))
    }

    /// Binds the socket to a queue of the interface with index `interface` in the network namespace of the socket,
    /// with zero-copy if the driver supports it. `long_frames`: frames may be larger than a chunk.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` if there is no such queue, `EBUSY` if another socket still has it after a second,
    /// `ENETDOWN` if the interface is down.
    pub fn bind(&self, interface: u32, queue: u32, long_frames: bool) -> io::Result<Bound> {
        // A driver may support zero-copy for frames of one chunk only; kernels before 6.6 support only such frames.
        let modes = [
            Bound { zero_copy: true, multi_buffer: long_frames },
            Bound { zero_copy: false, multi_buffer: true },
            Bound { zero_copy: false, multi_buffer: false },
        ];
        let deadline = Instant::now() + RELEASE_LIMIT;
        loop {
            let mut refused = io::Error::from(io::ErrorKind::Unsupported);
            for mode in modes {
                match bind(self, &SocketAddrXdp::new(mode.flags(), interface, queue)) {
                    Ok(()) => return Ok(mode),
                    Err(error) => refused = error.into(),
                }
                // Does not try a weaker mode: it could succeed only because the queue became free in between.
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

    /// The memory of the socket's frames.
    #[must_use]
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// The kernel's counts since the socket was opened.
    ///
    /// # Errors
    /// The kernel's.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let counted = sockopt::xdp_statistics(self)?;
        let later = |count: Option<u64>| count.unwrap_or(0); // not counted before Linux 5.9
        Ok(Statistics {
            dropped: counted.rx_dropped,
            ring_full: later(counted.rx_ring_full),
            fill_ring_empty: later(counted.rx_fill_ring_empty_descs),
            invalid: counted.rx_invalid_descs,
            transmit_invalid: counted.tx_invalid_descs,
        })
    }

    /// Makes [`Socket::wake_receive`] and [`Socket::wake_transmit`] run the driver's queue on the calling thread,
    /// instead of in a softIRQ. A thread that calls them without pause saves the interrupt and the wake-up
    /// (napi.rst, "Busy polling"). If the interface's `napi_defer_hard_irqs` and `gro_flush_timeout` are set,
    /// interrupts stay masked meanwhile ("IRQ mitigation").
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
        options
            .iter()
            .try_for_each(|(option, value)| set_option(self, libc::SOL_SOCKET, *option, value))
    }

    /// Makes the kernel process the fill ring, and arrived frames. With XDP_USE_NEED_WAKEUP, which is set here, the
    /// call is necessary only if the ring [requires it](Producer::needs_wakeup).
    ///
    /// # Errors
    /// The kernel's, which a caller may ignore: `ENETDOWN`, `ENXIO` if the interface is down or gone.
    pub fn wake_receive(&self) -> io::Result<()> {
        Ok(recv(self, &mut [0; 0], RecvFlags::DONTWAIT).map(drop)?)
    }

    /// Makes the kernel process the transmit ring. In copy mode, each call sends a batch of 32 frames
    /// (`net/xdp/xsk.c`), on the calling thread.
    ///
    /// # Errors
    /// The kernel's. `EAGAIN`, `ENOBUFS` and `EBUSY` mean that frames are left in the ring: repeat the call. In
    /// copy mode `EBUSY` also means that the interface has dropped a frame.
    pub fn wake_transmit(&self) -> io::Result<()> {
        Ok(send(self, &[], SendFlags::DONTWAIT).map(drop)?)
    }
}

impl Bound {
    fn flags(self) -> SocketAddrXdpFlags {
        let copies = if self.zero_copy {
            SocketAddrXdpFlags::XDP_ZEROCOPY
        } else {
            SocketAddrXdpFlags::XDP_COPY
        };
        let pieces = if self.multi_buffer {
            SocketAddrXdpFlags::XDP_USE_SG
        } else {
            SocketAddrXdpFlags::empty()
        };
        copies | pieces | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP
    }
}

impl AsFd for Socket {
    /// Readable for epoll(7) when frames have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
