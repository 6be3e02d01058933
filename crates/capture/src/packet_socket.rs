//! The packet socket behind `ring`, `recvmsg`, `recvmmsg` and `libpcap`: packet(7), socket(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use wirestamp_sys::plain::Plain;
use wirestamp_sys::{packet_socket, socket};

use crate::Error;
use crate::card_stamps;
use crate::fanout::Fanout;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::receiver::{KernelCounts, TAG_BYTES};

const CAPABILITIES: &str = "cap_net_raw";
/// What an Ethernet frame has beyond its interface's MTU: its header and a VLAN tag.
const ETHERNET_BYTES: u32 = 14 + TAG_BYTES;

/// The longest frame in bytes that `interface` takes, unless it was joined from several.
pub(crate) fn longest_frame(interface: &Interface) -> Result<u32, Error> {
    Ok(interface.mtu()?.saturating_add(ETHERNET_BYTES))
}

/// How the memory between the kernel and us is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// Bytes of each packet to keep.
    pub(crate) snaplen: u32,
    /// Bytes of memory for packets that wait.
    pub(crate) bytes: usize,
    /// Whether packets that this machine sends are captured too.
    pub(crate) outgoing: bool,
    /// The group of sockets that share the packets, unless each packet is for one socket.
    pub(crate) fanout: Option<&'a Fanout>,
    /// Whether a thread looks for packets without pause.
    pub(crate) spins: bool,
    /// Whether the network card's stamps are wanted, and the kernel's only where there is none.
    pub(crate) card_stamps: bool,
}

/// Has an interface take in packets for other hosts too, as a tap or a mirror port needs, for as
/// long as this lives.
#[derive(Debug)]
pub(crate) struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// For methods that have no packet socket to do it with.
    pub(crate) fn enter(interface: &Interface) -> io::Result<Self> {
        let socket = packet_socket::open()?;
        packet_socket::receive_promiscuously(&socket, interface.index)?;
        Ok(Self { _socket: socket })
    }
}

/// A packet socket that counts what the kernel did for it.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    counts: KernelCounts,
    /// What lets packets in and cuts them to the snap length.
    program: Vec<libc::sock_filter>,
}

impl PacketSocket {
    /// Opens a socket that sees nothing yet: the filter, and what the receiver needs besides, are
    /// put in place before [`PacketSocket::bind`], so that no unfiltered packet ever gets in.
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("capture", &interface.name, CAPABILITIES, e);
        Self::prepare(packet_socket::open().map_err(failed)?, interface, filter, setup)
    }

    /// Makes a packet socket that sees nothing yet into what [`PacketSocket::open`] returns.
    pub(crate) fn prepare(
        fd: OwnedFd,
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
        // A filter is also what cuts packets to the snap length.
        let program = match filter {
            Some(filter) => filter.for_socket(setup.snaplen)?,
            None => vec![accept(setup.snaplen)],
        };
        let socket = Self { fd, counts: KernelCounts::default(), program };
        // What goes out on the loopback interface comes in again, and counts once.
        if !setup.outgoing || interface.is_loopback {
            socket
                .set(libc::PACKET_IGNORE_OUTGOING, &1)
                .map_err(failed("ignore outgoing packets"))?;
        }
        // Without it the kernel stamps a packet only when it copies it to the ring. Unlike
        // SO_TIMESTAMPNS, it makes up no stamp in recvmsg(2) for a packet that has none
        // (Documentation/networking/timestamping.rst, 1.3).
        let arrival = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        let by_card = if setup.card_stamps { card_stamps::WANTED } else { 0 };
        socket::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &(arrival | by_card))
            .map_err(failed("have packets stamped on arrival"))?;
        // Until it has joined, a socket would get packets that others get too.
        match setup.fanout {
            Some(_) => socket.refuse_all().map_err(failed("refuse packets"))?,
            None => socket.admit(interface)?,
        }
        Ok(socket)
    }

    /// Lets the packets of `interface` in, or those of them that are this socket's share.
    pub(crate) fn bind(&self, interface: &Interface, setup: &Setup) -> Result<(), Error> {
        let failed = |e| Error::system("capture", &interface.name, CAPABILITIES, e);
        packet_socket::bind(self, interface.index).map_err(failed)?;
        packet_socket::receive_promiscuously(self, interface.index).map_err(failed)?;
        if let Some(fanout) = setup.fanout {
            let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
            fanout.join(self).map_err(failed("share the packets among threads"))?;
            self.admit(interface)?;
        }
        Ok(())
    }

    /// Lets in what passes the filter, or everything where there is none.
    fn admit(&self, interface: &Interface) -> Result<(), Error> {
        let filters = self.program.len() > 1; // one instruction only cuts
        socket::attach_filter(self, &self.program).map_err(|cause| match filters {
            true => Error::FilterNotInKernel { reason: cause.to_string() },
            false => Error::system("set the snap length", &interface.name, CAPABILITIES, cause),
        })
    }

    /// Sets a packet(7) option.
    pub(crate) fn set<T: Plain>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        socket::set_option(self, libc::SOL_PACKET, option, value)
    }

    /// Refuses every packet from now on.
    pub(crate) fn refuse_all(&self) -> io::Result<()> {
        socket::attach_filter(self, &[accept(0)])
    }

    /// The kernel's counts since the socket was opened. Reading `PACKET_STATISTICS` sets them to
    /// zero, so they are added up here.
    pub(crate) fn counts(&mut self) -> io::Result<KernelCounts> {
        let [packets, drops] = packet_socket::statistics(self)?;
        self.counts.seen += u64::from(packets);
        self.counts.dropped += u64::from(drops);
        Ok(self.counts)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The instruction that returns `bytes`: accept and cut to so many, or refuse where it is 0.
fn accept(bytes: u32) -> libc::sock_filter {
    libc::sock_filter { code: BPF_RET_K, jt: 0, jf: 0, k: bytes }
}

const BPF_RET_K: u16 = 0x06; // linux/bpf_common.h: BPF_RET | BPF_K
