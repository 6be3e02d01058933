//! Names of the send methods.

use strum::{EnumString, IntoStaticStr};

/// A method to hand packets to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum SendMethod {
    /// A UDP socket: the kernel adds the headers.
    #[default]
    Udp,
    /// A packet socket, packet(7): whole frames, one system call each. Captures show frames to
    /// 127.0.0.1, but the receiving socket does not get them (`route_localnet`,
    /// Documentation/networking/ip-sysctl.rst).
    Packet,
    /// A ring of frames shared with the kernel (`PACKET_TX_RING`): one system call for all frames
    /// due at the same time.
    Ring,
    /// An AF_XDP socket: frames of up to 2048 bytes bypass the network stack and its queueing
    /// disciplines, over one queue. Zero-copy if the driver supports it; no transmit stamps.
    Xdp,
}

impl SendMethod {
    /// Every method.
    pub const ALL: [Self; 4] = [Self::Udp, Self::Packet, Self::Ring, Self::Xdp];

    /// The name used in arguments and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
