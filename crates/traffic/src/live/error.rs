//! Why live frames could not be sent, in words that say what to do next.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use wirestamp_capture::capabilities::how_to_get;

use super::template::LONGEST;
use crate::SendError;

/// Live frames could not be made ready or sent.
///
/// A message has its cause in it, for which reason [`std::error::Error::source`] is `None`: a report
/// that prints the chain would say it twice.
#[derive(Debug, Error)]
pub enum LiveError {
    /// There is no such Ethernet interface, or no way to the other end.
    #[error(transparent)]
    Link(#[from] SendError),
    /// The interface is down, or no longer there.
    #[error("{interface} {what}")]
    Unusable {
        /// The interface.
        interface: String,
        /// What became of it, and what to do.
        what: &'static str,
    },
    /// The frame has no room for its numbers, or does not fit into a page.
    #[error(
        "a live frame of {bytes} bytes cannot be sent: use {min} to {LONGEST} over {over}, without \
         the check sequence"
    )]
    FrameSize {
        /// What was asked for.
        bytes: u16,
        /// The least that has room.
        min: usize,
        /// The IP version that this is the least for.
        over: &'static str,
    },
    /// The interface takes no frames of that length.
    #[error(
        "a frame of {bytes} bytes is too long for {interface}, whose MTU allows {longest}; raise it \
         with `ip link set {interface} mtu`"
    )]
    TooLong {
        /// What was asked for.
        bytes: u16,
        /// The interface.
        interface: String,
        /// The longest frame that it takes.
        longest: usize,
    },
    /// The two ends are of different IP versions.
    #[error("{from} and {to} are of different IP versions")]
    Versions {
        /// The source.
        from: SocketAddr,
        /// The destination.
        to: SocketAddr,
    },
    /// There are not so many source ports.
    #[error("{flows} flows from source port {port} up: use at least 1, and ports up to 65535")]
    Flows {
        /// How many were asked for.
        flows: u16,
        /// The first one's port.
        port: u16,
    },
    /// No rate that can be kept.
    #[error("{0} packets a second cannot be paced: use 1 to {max}", max = super::pace::MAX_RATE)]
    Rate(u64),
    /// No burst, or one that would keep a request to stop waiting.
    #[error("a burst of {0} frames cannot be sent: use 1 to {max}", max = super::pace::MAX_BURST)]
    Burst(u32),
    /// The kernel refused for want of privileges.
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
        "{interface} takes no frames from XDP now: a veth does when its other end has GRO on \
         (`ethtool -K PEER gro on`) or an XDP program, and no more send queues than {interface} \
         has receive queues; another driver has to know ndo_xdp_xmit (Linux 6.3 or newer tells)"
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
        /// What libbpf or the kernel said.
        reason: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what} on {interface}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The interface it was tried on.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
}

impl LiveError {
    /// Whether the request itself was wrong and has to be put differently.
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
