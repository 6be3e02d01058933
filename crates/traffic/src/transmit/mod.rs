//! The ways to hand a packet to the kernel, one file each.

mod packet;
mod ring;
mod udp;
mod xdp;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::netlink::Link;
use crate::{MacAddress, SendError};

pub(crate) use udp::Udp;

/// How long a packet may wait for room.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

/// What frames on their way may take of the kernel's memory, where several are handed over at once:
/// more than there is room for in the memory shared with it.
const SEND_BUFFER_BYTES: i32 = 16 << 20;

/// A way to hand packets to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendMethod {
    /// A UDP socket: the kernel makes the headers.
    #[default]
    Udp,
    /// A packet socket, packet(7): whole frames, one system call each. Frames to 127.0.0.1 are sent
    /// and seen by captures, but the kernel lets none in that it has not made itself
    /// (`route_localnet`, Documentation/networking/ip-sysctl.rst).
    Packet,
    /// A ring of frames shared with the kernel (`PACKET_TX_RING`): frames that are due at once
    /// take one system call together.
    Ring,
    /// An AF_XDP socket, whose frames go past the network stack and its queueing disciplines, from
    /// memory that the driver sends from itself if it can: frames of up to 2048 bytes, over one
    /// queue, without transmit stamps.
    Xdp,
}

impl SendMethod {
    /// Every method.
    pub const ALL: [Self; 4] = [Self::Udp, Self::Packet, Self::Ring, Self::Xdp];

    /// Its name, as people and reports use it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Packet => "packet",
            Self::Ring => "ring",
            Self::Xdp => "xdp",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// How packets are handed to the kernel, and what is asked of it besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// The method.
    pub method: SendMethod,
    /// Where frames are addressed to; `None` for the next hop, as the kernel knows or finds it.
    /// The UDP socket has no use for it.
    pub mac: Option<MacAddress>,
    /// The interface's queue that [`SendMethod::Xdp`] sends over, from 0 on. The others leave the
    /// choice to the kernel.
    pub queue: u32,
    /// Go round the interface's queueing discipline. The UDP socket cannot, and AF_XDP always does.
    pub bypass_queue: bool,
    /// Ask for the times at which each packet was queued and left.
    pub tx_stamps: bool,
}

/// How many packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
}

impl Tally {
    /// Packets of these lengths.
    fn of(lengths: &VecDeque<usize>) -> Self {
        let mut packets = Self::default();
        lengths.iter().for_each(|&length| packets.add(length));
        packets
    }

    fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += u64::try_from(length).unwrap_or(u64::MAX);
    }
}

/// Hands packets to the kernel.
pub(crate) trait Transmit: Debug + Send {
    /// Hands over one packet: a UDP payload for [`Udp`], a whole frame for the others. What was
    /// handed over may wait for [`Self::flush`], if [`Self::waiting`] says so.
    ///
    /// # Errors
    /// The kernel's answer. The packet is not sent, then.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Has the kernel take the packets that wait, without waiting for room.
    ///
    /// # Errors
    /// The kernel's answer if it has not taken all. The others wait on.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Packets that were handed over and that the kernel has not taken.
    fn waiting(&self) -> Tally {
        Tally::default()
    }

    /// Packets that the kernel has taken, and dropped rather than sent.
    fn refused(&self) -> Tally {
        Tally::default()
    }

    /// How the kernel sends, where that is up to the interface's driver.
    fn mode(&self) -> Option<&'static str> {
        None
    }

    /// The socket, whose error queue brings transmit stamps.
    fn socket(&self) -> BorrowedFd<'_>;
}

/// Opens one of the methods that send whole frames over `link`.
pub(crate) fn open_for_frames(
    link: &Link,
    transmission: &Transmission,
) -> Result<Box<dyn Transmit>, SendError> {
    let opened: io::Result<Box<dyn Transmit>> = match transmission.method {
        SendMethod::Udp => Err(io::ErrorKind::Unsupported.into()),
        SendMethod::Packet => packet::Packet::open(link, transmission).map(|it| Box::new(it) as _),
        SendMethod::Ring => ring::Ring::open(link, transmission).map(|it| Box::new(it) as _),
        SendMethod::Xdp => xdp::Xdp::open(link, transmission).map(|it| Box::new(it) as _),
    };
    let (interface, queue) = (link.name.clone(), transmission.queue);
    opened.map_err(|cause| match transmission.method {
        SendMethod::Xdp => SendError::XdpSocket { interface, queue, cause },
        _ => SendError::PacketSocket { interface, cause },
    })
}
