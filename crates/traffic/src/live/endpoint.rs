//! Source and destination of live frames: given by the user, or found in the kernel's tables.

use std::net::{IpAddr, SocketAddr};

use super::LiveError;
use crate::MacAddress;
use crate::netlink::{Link, hardware_address, route};

/// One end of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The Ethernet address.
    pub mac: MacAddress,
    /// The IP address and UDP port.
    pub address: SocketAddr,
}

/// Default source address of frames that are to arrive: locally administered (IEEE 802).
const UNKNOWN_SENDER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// Source and destination of frames that leave `interface` for `to`, with source port `port`.
///
/// Without `from`, the source address comes from the kernel's routes. Without `mac`, the destination
/// address comes from its routes and neighbours; this fails after up to 4 s without an answer.
///
/// # Errors
/// No such Ethernet interface in the calling thread's network namespace; no route or no neighbour.
pub fn outgoing(
    interface: &str,
    to: SocketAddr,
    from: Option<IpAddr>,
    port: u16,
    mac: Option<MacAddress>,
) -> Result<[Endpoint; 2], LiveError> {
    let link = Link::find(interface)?;
    let (from, mac) = match (from, mac) {
        (Some(from), Some(mac)) => (from, mac),
        _ => {
            let way = route(&link, to.ip())?;
            let mac = mac.map_or_else(|| hardware_address(&link, way.next_hop), Ok)?;
            (from.unwrap_or(way.source), mac)
        }
    };
    let source = Endpoint { mac: link.mac, address: SocketAddr::new(from, port) };
    Ok([source, Endpoint { mac, address: to }])
}

/// Source and destination of frames that are to arrive at `interface`. `mac` is their source
/// address; without it, a fixed, locally administered address is used.
///
/// # Errors
/// No such Ethernet interface in the calling thread's network namespace.
pub fn incoming(
    interface: &str,
    to: SocketAddr,
    from: SocketAddr,
    mac: Option<MacAddress>,
) -> Result<[Endpoint; 2], LiveError> {
    let link = Link::find(interface)?;
    let source = Endpoint { mac: mac.unwrap_or(UNKNOWN_SENDER), address: from };
    Ok([source, Endpoint { mac: link.mac, address: to }])
}
