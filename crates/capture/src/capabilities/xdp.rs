//! XDP support of a driver, and the XDP program that runs on an interface.

use std::os::fd::AsFd;

use libbpf_rs::XdpFlags;
use wirestamp_sys::netlink::Generic;

use crate::interface::Interface;

/// The generic netlink family `netdev` (linux/netdev.h, Documentation/netlink/specs/netdev.yaml).
mod netdev {
    pub(super) const FAMILY: &str = "netdev";
    pub(super) const DEV_GET: u8 = 1;
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const XDP_FEATURES: u16 = 3;
    pub(super) const XDP_ZC_MAX_SEGS: u16 = 4;
    pub(super) const XDP_RX_METADATA_FEATURES: u16 = 5;
    /// A program can drop, pass and send back a packet.
    pub(super) const ACT_BASIC: u64 = 1;
    /// AF_XDP sockets receive packets without copying.
    pub(super) const ACT_XSK_ZEROCOPY: u64 = 8;
    /// A program can read the network card's stamp.
    pub(super) const METADATA_TIMESTAMP: u64 = 1;
}

/// XDP support of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xdp {
    /// Programs run in the driver; otherwise later, in the network stack.
    pub in_driver: bool,
    /// The driver fills the memory of AF_XDP sockets (zero-copy).
    pub zero_copy: bool,
    /// Max pieces of a packet with zero-copy. 1: only packets in one piece. 0: no zero-copy.
    pub zero_copy_pieces: u32,
    /// Programs can read the network card's stamp (`bpf_xdp_metadata_rx_timestamp`).
    pub card_stamps: bool,
}

/// Queries the kernel, which reports it since Linux 6.3.
pub(super) fn features(interface: &Interface) -> Option<Xdp> {
    let index = interface.index.to_ne_bytes();
    let answer = Generic::ask(netdev::FAMILY, netdev::DEV_GET, netdev::IFINDEX, &index).ok()?;
    let features = answer.attribute(netdev::XDP_FEATURES).map(u64::from_ne_bytes)?;
    let metadata = answer.attribute(netdev::XDP_RX_METADATA_FEATURES).map_or(0, u64::from_ne_bytes);
    Some(Xdp {
        in_driver: features & netdev::ACT_BASIC != 0,
        zero_copy: features & netdev::ACT_XSK_ZEROCOPY != 0,
        zero_copy_pieces: answer.attribute(netdev::XDP_ZC_MAX_SEGS).map_or(0, u32::from_ne_bytes),
        card_stamps: metadata & netdev::METADATA_TIMESTAMP != 0,
    })
}

/// Id of the program that runs on `interface`, in the driver or in the stack.
pub(super) fn program(interface: &Interface) -> Option<u32> {
    // The query uses no program, but the type requires a descriptor.
    let query = libbpf_rs::Xdp::new(interface.as_fd());
    query.query_id(interface.index, XdpFlags::NONE).ok().filter(|&id| id != 0)
}
