//! Send methods, one file each.

mod method;
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

pub use method::SendMethod;
pub(crate) use udp::Udp;

/// Max time that a packet waits for room in the kernel.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_millis(10);

/// Send buffer for methods that hand over several frames at once: larger than the memory shared with
/// the kernel.
const SEND_BUFFER_BYTES: usize = 16 << 20;

/// Options for handing packets to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// The send method.
    pub method: SendMethod,
    /// Destination hardware address; `None` for that of the next hop, resolved by the kernel. Not
    /// used by the UDP socket.
    pub mac: Option<MacAddress>,
    /// The interface's queue for [`SendMethod::Xdp`], from 0. For other methods the kernel chooses.
    pub queue: u32,
    /// Bypass the interface's queueing discipline. The UDP socket cannot; AF_XDP always does.
    pub bypass_queue: bool,
    /// Request transmit stamps of each packet.
    pub tx_stamps: bool,
}

/// Number of packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketCount {
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
}

impl PacketCount {
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

/// A socket that hands packets to the kernel.
pub(crate) trait Transmit: Debug + Send {
    /// Hands over one packet: a UDP payload for [`Udp`], a whole frame for the others. The packet may
    /// wait for [`Self::flush`]; [`Self::waiting`] counts it then.
    ///
    /// # Errors
    /// The kernel's error; the packet is not sent.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Makes the kernel take the waiting packets, without waiting for room.
    ///
    /// # Errors
    /// The kernel's error if it has not taken all; the remaining packets still wait.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Packets handed over that the kernel has not yet taken.
    fn waiting(&self) -> PacketCount {
        PacketCount::default()
    }

    /// Packets that the kernel has taken and dropped.
    fn refused(&self) -> PacketCount {
        PacketCount::default()
    }

    /// The kernel's send mode, where it depends on the interface's driver.
    fn mode(&self) -> Option<&'static str> {
        None
    }

    /// The socket, whose error queue has the transmit stamps.
    fn socket(&self) -> BorrowedFd<'_>;
}

/// Opens a socket that sends whole frames over `link`.
pub(crate) fn open_for_frames(
    link: &Link,
    options: &SendOptions,
) -> Result<Box<dyn Transmit>, SendError> {
    let opened: io::Result<Box<dyn Transmit>> = match options.method {
        SendMethod::Udp => Err(io::ErrorKind::Unsupported.into()),
        SendMethod::Packet => packet::Packet::open(link, options).map(|it| Box::new(it) as _),
        SendMethod::Ring => ring::Ring::open(link, options).map(|it| Box::new(it) as _),
        SendMethod::Xdp => xdp::Xdp::open(link, options).map(|it| Box::new(it) as _),
    };
    let (interface, queue) = (link.name.clone(), options.queue);
    opened.map_err(|cause| match options.method {
        SendMethod::Xdp => SendError::XdpSocket { interface, queue, cause },
        _ => SendError::PacketSocket { interface, cause },
    })
}
