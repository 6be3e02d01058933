//! The packet socket of `ring`, `recvmsg`, `recvmmsg` and `libpcap`: packet(7), socket(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use wirestamp_sys::plain::Plain;
use wirestamp_sys::{packet_socket, socket};

use crate::Error;
use crate::card_stamps;
use crate::config::Direction;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::receiver::{KernelCounts, TAG_BYTES};

const CAPABILITIES: &str = "cap_net_raw";
/// Bytes of an Ethernet frame beyond its interface's MTU: header and VLAN tag.
const ETHERNET_BYTES: u32 = 14 + TAG_BYTES;

/// Max frame length of `interface` in bytes, except for merged frames.
pub(crate) fn longest_frame(interface: &Interface) -> Result<u32, Error> {
    Ok(interface.mtu()?.saturating_add(ETHERNET_BYTES))
}

/// Settings of a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// Snap length: bytes kept of each packet.
    pub(crate) snaplen: u32,
    /// Bytes of memory for waiting packets.
    pub(crate) bytes: usize,
    /// Direction of the captured packets.
    pub(crate) direction: Direction,
    /// Whether the interface is in promiscuous mode.
    pub(crate) promiscuous: bool,
    /// The group of sockets that share the packets, if there are several.
    pub(crate) fanout: Option<&'a Fanout>,
    /// Whether a thread polls for packets without pause.
    pub(crate) spins: bool,
    /// Whether to use the network card's stamps, and the kernel's only where there is none.
    pub(crate) card_stamps: bool,
}

/// Keeps an interface in promiscuous mode until this value is dropped, as a tap or a mirror port requires.
#[derive(Debug)]
pub(crate) struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// For methods without a packet socket of their own.
    pub(crate) fn enter(interface: &Interface) -> io::Result<Self> {
        let socket = packet_socket::open()?;
        packet_socket::receive_promiscuously(&socket, interface.index)?;
        Ok(Self { _socket: socket })
    }
}

/// A packet socket with the kernel's counts.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    counts: KernelCounts,
    /// Program that selects packets by direction and filter, and cuts them to the snap length.
    program: Vec<libc::sock_filter>,
    /// Whether the program has a filter of the user.
    filters: bool,
}

impl PacketSocket {
    /// Opens a socket that receives nothing yet. The filter and the receiver's options are set before
    /// [`PacketSocket::bind`], so that no unfiltered packet arrives.
    pub(crate) fn open(
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let failed = |e| Error::system("capture", &interface.name, CAPABILITIES, e);
        let open = if interface.is_cooked() {
            packet_socket::open_without_link_header
        } else {
            packet_socket::open
        };
        Self::prepare(open().map_err(failed)?, interface, filter, setup)
    }

    /// Sets up a packet socket that receives nothing yet, as [`PacketSocket::open`] does.
    pub(crate) fn prepare(
        fd: OwnedFd,
        interface: &Interface,
        filter: Option<&Filter>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
        // The filter also cuts packets to the snap length.
        let filtered = match filter {
            Some(filter) => filter.for_socket(setup.snaplen)?,
            None => vec![accept(setup.snaplen)],
        };
        let program = [by_direction(interface, setup), filtered].concat();
        let socket =
            Self { fd, counts: KernelCounts::default(), program, filters: filter.is_some() };
        if ignores_outgoing(interface, setup) {
            socket
                .set(libc::PACKET_IGNORE_OUTGOING, &1)
                .map_err(failed("ignore outgoing packets"))?;
        }
        // Without this option the kernel stamps a packet only when it copies the packet to the ring. SO_TIMESTAMPNS
        // would add a stamp in recvmsg(2) to a packet without one (Documentation/networking/timestamping.rst, 1.3).
        let arrival = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        let by_card = if setup.card_stamps { card_stamps::WANTED } else { 0 };
        socket::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &(arrival | by_card))
            .map_err(failed("enable stamps on arrival"))?;
        // Until it joins the group, a socket would receive packets that other sockets of the group also receive.
        match setup.fanout {
            Some(_) => socket.reject_all().map_err(failed("refuse packets"))?,
            None => socket.attach_filter(interface)?,
        }
        Ok(socket)
    }

    /// Receives packets of `interface` from now on, or this socket's share of them.
    pub(crate) fn bind(&self, interface: &Interface, setup: &Setup) -> Result<(), Error> {
        let failed = |e| Error::system("capture", &interface.name, CAPABILITIES, e);
        packet_socket::bind(self, interface.index).map_err(failed)?;
        if setup.promiscuous && !interface.is_any() {
            packet_socket::receive_promiscuously(self, interface.index).map_err(failed)?;
        }
        if let Some(fanout) = setup.fanout {
            let failed = |what| move |e| Error::system(what, &interface.name, CAPABILITIES, e);
            fanout.add(self).map_err(failed("distribute packets over threads"))?;
            self.attach_filter(interface)?;
        }
        Ok(())
    }

    /// Accepts packets that pass the filter, or all packets without a filter.
    fn attach_filter(&self, interface: &Interface) -> Result<(), Error> {
        socket::attach_filter(self, &self.program).map_err(|cause| match self.filters {
            true => Error::FilterNotInKernel { reason: cause.to_string() },
            false => Error::system("set the snap length", &interface.name, CAPABILITIES, cause),
        })
    }

    /// Sets a packet(7) option.
    pub(crate) fn set<T: Plain>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        socket::set_option(self, libc::SOL_PACKET, option, value)
    }

    /// Rejects every packet from now on.
    pub(crate) fn reject_all(&self) -> io::Result<()> {
        socket::attach_filter(self, &[accept(0)])
    }

    /// The kernel's counts since the socket was opened. Reading `PACKET_STATISTICS` resets them, so they are summed here.
    pub(crate) fn counts(&mut self) -> io::Result<KernelCounts> {
        let [packets, drops] = packet_socket::statistics(self)?;
        self.counts.seen += u64::from(packets);
        self.counts.dropped += u64::from(drops);
        Ok(self.counts)
    }
}

/// A group of packet sockets that share one interface's packets: `PACKET_FANOUT` of packet(7).
///
/// The first socket creates the group. All packets of one flow go to one socket, because the kernel chooses by the
/// hash of their addresses and ports. While a socket's queue or ring is full, its packets go to another socket.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    number: OnceLock<u32>,
}

impl Fanout {
    /// Distribution by hash, and to another socket while one is full.
    const MODE: u32 = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_ROLLOVER;
    /// The kernel chooses a number that no group of this network namespace has (Linux 4.12).
    const UNIQUE: u32 = libc::PACKET_FANOUT_FLAG_UNIQUEID;

    /// Adds a bound socket to the group. The kernel's argument has the group's number in its lower 16 bits, and mode and
    /// flags in the upper ones.
    fn add(&self, socket: &PacketSocket) -> io::Result<()> {
        let founded = self.number.get();
        let (number, unique) = founded.map_or((0, Self::UNIQUE), |&number| (number, 0));
        socket.set(libc::PACKET_FANOUT, &((Self::MODE | unique) << 16 | number))?;
        if founded.is_none() {
            let granted: u32 = socket::option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
            // Sockets are opened one after the other, so the number is not set yet.
            let _ = self.number.set(granted & 0xffff);
        }
        Ok(())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether no packet that this machine sends is captured at the interface. On loopback, each packet is both sent and
/// received: without the sent ones, each is counted once.
fn ignores_outgoing(interface: &Interface, setup: &Setup) -> bool {
    setup.direction == Direction::In || interface.is_loopback
}

/// Instructions that reject packets of the other direction. Other packets continue with the next instruction, with 0 in the
/// accumulator.
fn by_direction(interface: &Interface, setup: &Setup) -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    if interface.is_any() {
        program.extend(REJECT_SENT_ON_LOOPBACK);
    }
    if setup.direction == Direction::Out {
        program.extend(REJECT_RECEIVED);
    }
    // A group receives for its sockets, and does not have their option PACKET_IGNORE_OUTGOING (`fanout_add` of
    // net/packet/af_packet.c).
    if setup.fanout.is_some() && ignores_outgoing(interface, setup) {
        program.extend(REJECT_SENT);
    }
    program
}

/// Rejects packets that were sent on loopback, each of which is also received.
const REJECT_SENT_ON_LOOPBACK: [libc::sock_filter; 6] = {
    /// Index of loopback in every network namespace (`LOOPBACK_IFINDEX` of include/net/flow.h).
    const LOOPBACK: u32 = 1;
    let [load_type, if_sent, reject, clear] = REJECT_SENT;
    [
        load(libc::SKF_AD_IFINDEX),
        instruction(BPF_JEQ_K, 0, 3, LOOPBACK),
        load_type,
        if_sent,
        reject,
        clear,
    ]
};

/// Rejects packets that this machine sent.
const REJECT_SENT: [libc::sock_filter; 4] = [
    load(libc::SKF_AD_PKTTYPE),
    instruction(BPF_JEQ_K, 0, 1, OUTGOING),
    instruction(BPF_RET_K, 0, 0, 0),
    instruction(BPF_LD_IMM, 0, 0, 0),
];

/// Rejects packets that this machine did not send.
const REJECT_RECEIVED: [libc::sock_filter; 4] = [
    load(libc::SKF_AD_PKTTYPE),
    instruction(BPF_JEQ_K, 1, 0, OUTGOING),
    instruction(BPF_RET_K, 0, 0, 0),
    instruction(BPF_LD_IMM, 0, 0, 0),
];

const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// The instruction that loads a property of the packet.
const fn load(what: libc::c_int) -> libc::sock_filter {
    instruction(BPF_LD_W_ABS, 0, 0, (libc::SKF_AD_OFF + what).cast_unsigned())
}

/// The instruction that returns `bytes`: accept and cut to that length, or reject if it is 0.
fn accept(bytes: u32) -> libc::sock_filter {
    libc::sock_filter { code: BPF_RET_K, jt: 0, jf: 0, k: bytes }
}

// linux/bpf_common.h: class, size and mode.
const BPF_RET_K: u16 = 0x06; // BPF_RET | BPF_K
const BPF_LD_W_ABS: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const BPF_LD_IMM: u16 = 0x00; // BPF_LD | BPF_W | BPF_IMM
const BPF_JEQ_K: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
