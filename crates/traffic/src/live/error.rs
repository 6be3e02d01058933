//! Errors of live frames, each with the next step.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use wirestamp_capture::capabilities::how_to_get;

use crate::SendError;

/// Max frame size in bytes, without check sequence. A frame shares a page of 4096 bytes with headroom
/// and kernel data, which leaves about 3300 bytes, depending on the kernel version. A test sends a
/// frame of this size.
pub(super) const MAX_FRAME_BYTES: u16 = 3072;

/// Max rate in frames per second. No machine reaches it, and arithmetic does not overflow.
pub(super) const MAX_RATE: u64 = 1_000_000_000;

/// Max frames of a burst. At the lowest measured rate of live frames (0.5 million per second into a
/// network stack) a burst takes 8 ms; a stop request waits that long.
pub(super) const MAX_BURST: u32 = 4096;

/// Live frames cannot be prepared or sent.
///
/// The message includes the cause. So [`std::error::Error::source`] is `None`: a report that prints
/// the chain would repeat the cause.
#[derive(Debug, Error)]
pub enum LiveError {
    /// No such Ethernet interface, or no route to the destination.
    #[error(transparent)]
    Link(#[from] SendError),
    /// The interface is down or was removed.
    #[error("{interface} {what}")]
    Unusable {
        /// The interface.
        interface: String,
        /// State of the interface, and the next step.
        what: &'static str,
    },
    /// The frame is too short for the payload, or does not fit into a page.
    #[error(
        "cannot send a live frame of {bytes} bytes; use {min} to {MAX_FRAME_BYTES} over {over}, \
         without the check sequence"
    )]
    FrameSize {
        /// The requested size.
        bytes: u16,
        /// The min size.
        min: usize,
        /// The IP version of `min`.
        over: &'static str,
    },
    /// The frame exceeds the interface's MTU.
    #[error(
        "a frame of {bytes} bytes is too long for {interface}, whose MTU allows {longest}; raise it \
         with `ip link set {interface} mtu`"
    )]
    TooLong {
        /// The requested size.
        bytes: u16,
        /// The interface.
        interface: String,
        /// The max frame size of the interface.
        longest: usize,
    },
    /// Source and destination differ in IP version.
    #[error("{from} and {to} are of different IP versions")]
    Versions {
        /// The source.
        from: SocketAddr,
        /// The destination.
        to: SocketAddr,
    },
    /// No flows, or not enough source ports.
    #[error(
        "cannot send {flows} flows from source port {port} upwards; use 1 or more flows, and ports \
         up to 65535"
    )]
    Flows {
        /// The requested number of flows.
        flows: u16,
        /// The source port of the first flow.
        port: u16,
    },
    /// The rate is out of range.
    #[error("cannot pace {0} packets per second; use 1 to {MAX_RATE}")]
    Rate(u64),
    /// The burst is empty, or too long to react to a stop request in time.
    #[error("cannot send a burst of {0} frames; use 1 to {MAX_BURST}")]
    Burst(u32),
    /// Missing privileges.
    #[error(
        "cannot send live frames on {interface} without privileges: {}",
        how_to_get("cap_bpf,cap_net_admin,cap_perfmon,cap_sys_admin")
    )]
    Permission {
        /// The interface.
        interface: String,
    },
    /// The interface's driver would drop every frame.
    #[error(
        "{interface} accepts no frames from XDP now; on a veth, enable GRO on its peer (`ethtool -K \
         PEER gro on`) or attach an XDP program there, and give the peer no more send queues than \
         {interface} has receive queues; any other driver must support ndo_xdp_xmit (reported by \
         Linux 6.3 or newer)"
    )]
    NoTransmit {
        /// The interface.
        interface: String,
    },
    /// The program was not loaded.
    #[error("cannot load the XDP program that makes frames for {interface}: {reason}")]
    Program {
        /// The interface.
        interface: String,
        /// The message of libbpf or the kernel.
        reason: String,
    },
    /// Another system call failed.
    #[error("cannot {what} on {interface}: {cause}")]
    System {
        /// The failed action.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl LiveError {
    /// Whether the arguments are invalid.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::FrameSize { .. }
                | Self::Versions { .. }
                | Self::Flows { .. }
                | Self::Rate(_)
                | Self::Burst(_)
        )
    }
}
