//! A stream to send, and the errors of preparing it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;
use wirestamp_capture::capabilities::how_to_get;

use crate::{PatternError, SendMethod, StreamPlan};

/// A stream of packets to send.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Number of the stream, in the payload of each packet.
    pub id: u16,
    /// Pattern, start and number of packets.
    pub plan: StreamPlan,
    /// Destination of all packets.
    pub destination: SocketAddr,
    /// UDP source port; 0 for any.
    pub source_port: u16,
    /// The interface to send over, regardless of routes; `None` to follow the routes, which only
    /// [`SendMethod::Udp`] can.
    pub interface: Option<String>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

impl Stream {
    /// A stream from any source port, over the interface of the route, with DSCP 0.
    #[must_use]
    pub const fn new(id: u16, plan: StreamPlan, destination: SocketAddr) -> Self {
        Self { id, plan, destination, source_port: 0, interface: None, dscp: 0 }
    }
}

/// A stream cannot be prepared for sending.
///
/// The message includes the kernel's error. So it is not the `source`: a report that prints the chain
/// would repeat it.
#[derive(Debug, Error)]
pub enum SendError {
    /// The pattern does not fit the IP version.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The DSCP is out of range.
    #[error("DSCP {0} is out of range; use 0 to 63")]
    Dscp(u8),
    /// The interface is not available.
    #[error("cannot send over interface `{interface}`: {cause}; list interfaces with `ip link`")]
    Interface {
        /// The requested interface.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The method requires an interface.
    #[error("method {} requires an interface to send over", .0.name())]
    NoInterface(SendMethod),
    /// Not an Ethernet interface.
    #[error("{0} is not an Ethernet interface; use method udp")]
    NotEthernet(String),
    /// The frame exceeds the interface's MTU.
    #[error(
        "frames of {frame_bytes} bytes are too long for {interface}; use up to {} or raise its MTU \
         with `ip link set {interface} mtu`",
        mtu + crate::mac::ETHERNET_HEADER
    )]
    TooLong {
        /// Frame size, without check sequence.
        frame_bytes: u16,
        /// The interface.
        interface: String,
        /// The interface's MTU in bytes, without Ethernet header.
        mtu: usize,
    },
    /// No route to the destination.
    #[error(
        "cannot find a route to {destination} over {interface}: {cause}; list routes with `ip route`"
    )]
    Route {
        /// The stream's destination.
        destination: IpAddr,
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The interface has no source address.
    #[error(
        "{interface} has no source address to reach {destination}; add one with `ip address add`"
    )]
    NoSource {
        /// The interface to send over.
        interface: String,
        /// The stream's destination.
        destination: IpAddr,
    },
    /// The hardware address of the next hop is unknown.
    #[error(
        "cannot resolve the hardware address of {next_hop} on {interface}: {cause}; give it with \
         --mac"
    )]
    Neighbour {
        /// The gateway, or the destination itself.
        next_hop: IpAddr,
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot open a socket to {destination}: {cause}")]
    Socket {
        /// The stream's destination.
        destination: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The packet socket cannot be opened.
    #[error("cannot open a packet socket on {interface}: {cause}{}", privileges(cause))]
    PacketSocket {
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The AF_XDP socket cannot be opened.
    #[error(
        "cannot open an AF_XDP socket on queue {queue} of {interface}: {cause}{}",
        xdp_remedy(interface, cause)
    )]
    XdpSocket {
        /// The interface to send over.
        interface: String,
        /// The interface's queue.
        queue: u32,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The method has no transmit stamps.
    #[error("method {} has no transmit stamps; use udp, packet or ring", .0.name())]
    NoTxStamps(SendMethod),
    /// The kernel does not report transmit stamps.
    #[error("cannot request transmit stamps: {0}; send without them")]
    TxStamps(io::Error),
}

fn privileges(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => format!("; {}", how_to_get("cap_net_raw")),
        _ => String::new(),
    }
}

fn xdp_remedy(interface: &str, cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(libc::EINVAL) => format!("; list its queues with `ethtool -l {interface}`"),
        Some(libc::EBUSY) => "; another program uses the queue: use another queue".into(),
        _ => privileges(cause),
    }
}
