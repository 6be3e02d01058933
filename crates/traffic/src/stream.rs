//! What is to be sent, and why it may not be possible.

use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;
use wirestamp_capture::capabilities::how_to_get;

use crate::{PatternError, Plan, SendMethod};

/// A stream of packets to send.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its number, in the payload of each packet.
    pub id: u16,
    /// When it sends, and how much.
    pub plan: Plan,
    /// Where to.
    pub destination: SocketAddr,
    /// The UDP port it comes from; 0 for any.
    pub source_port: u16,
    /// The interface to send over, whatever the routes say; `None` to follow the routes, which only
    /// [`SendMethod::Udp`] can.
    pub interface: Option<String>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

impl Stream {
    /// A stream from any port over the routes' interface, unmarked.
    #[must_use]
    pub const fn new(id: u16, plan: Plan, destination: SocketAddr) -> Self {
        Self { id, plan, destination, source_port: 0, interface: None, dscp: 0 }
    }
}

/// A stream could not be made ready to send.
///
/// The kernel's answer is in the message and therefore not the error's `source`: printed with its
/// chain of causes, the error would tell it twice.
#[derive(Debug, Error)]
pub enum SendError {
    /// The pattern does not fit the IP version.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No code point.
    #[error("DSCP {0} is out of range: use 0 to 63")]
    Dscp(u8),
    /// The interface could not be had.
    #[error("cannot send over interface `{interface}`: {cause}; `ip link` lists what there is")]
    Interface {
        /// What was asked for.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The method sends over one interface, and none was named.
    #[error("method {} needs to know the interface to send over", .0.name())]
    NoInterface(SendMethod),
    /// The interface carries no Ethernet frames.
    #[error("{0} is no Ethernet interface; only method udp sends over it")]
    NotEthernet(String),
    /// The interface takes no frame of this length.
    #[error(
        "frames of {frame_bytes} bytes are too long for {interface}: use up to {} or raise its MTU \
         with `ip link set {interface} mtu`",
        mtu + crate::netlink::ETHERNET_HEADER
    )]
    TooLong {
        /// The frames, without check sequence.
        frame_bytes: u16,
        /// The interface.
        interface: String,
        /// The longest packet that it takes in bytes, without Ethernet header.
        mtu: usize,
    },
    /// The kernel knows no way.
    #[error(
        "no way to {destination} over {interface}: {cause}; `ip route` lists the ways there are"
    )]
    Route {
        /// Where the stream goes.
        destination: IpAddr,
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// There is no address to send from.
    #[error(
        "{interface} has no address to reach {destination} from; `ip address add` gives it one"
    )]
    NoSource {
        /// The interface to send over.
        interface: String,
        /// Where the stream goes.
        destination: IpAddr,
    },
    /// Nobody says what hardware address a frame is to have.
    #[error(
        "the hardware address of {next_hop} on {interface} is not to be had ({cause}); give it \
         with --mac"
    )]
    Neighbour {
        /// The gateway, or the destination itself.
        next_hop: IpAddr,
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The socket could not be had.
    #[error("cannot open a socket towards {destination}: {cause}")]
    Socket {
        /// Where the stream goes.
        destination: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The packet socket could not be had.
    #[error("cannot open a packet socket on {interface}: {cause}{}", privileges(cause))]
    PacketSocket {
        /// The interface to send over.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The AF_XDP socket could not be had.
    #[error(
        "cannot open an AF_XDP socket on queue {queue} of {interface}: {cause}{}",
        xdp_remedy(interface, cause)
    )]
    XdpSocket {
        /// The interface to send over.
        interface: String,
        /// Its queue.
        queue: u32,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The method has no transmit stamps.
    #[error("method {} has no transmit stamps: use udp, packet or ring for them", .0.name())]
    NoTxStamps(SendMethod),
    /// The kernel does not report transmit stamps.
    #[error("cannot ask for transmit stamps: {0}; send without them")]
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
        Some(libc::EINVAL) => format!("; `ethtool -l {interface}` says how many queues it has"),
        Some(libc::EBUSY) => "; another program has the queue, take another one".into(),
        _ => privileges(cause),
    }
}
