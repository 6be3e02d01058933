//! Both ends of the frames: what is given, and what the kernel knows.

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

/// Whom received frames come from where nobody has said it: a locally administered address
/// (IEEE 802).
const SOMEBODY: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// The source and the destination of frames that leave `interface` for `to`, from the source port
/// `port`. Without `from`, the kernel's routes say which address they come from; without `mac`, its
/// routes and neighbours say whom they are addressed to, for which it may take 4 s to find that
/// nobody answers.
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

/// The source and the destination of frames that are to arrive at `interface`, as if the Ethernet
/// address `mac` had sent them; without it, a made-up one.
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
    let source = Endpoint { mac: mac.unwrap_or(SOMEBODY), address: from };
    Ok([source, Endpoint { mac: link.mac, address: to }])
}
