//! Which way the kernel would send a packet.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Link, Netlink};
use crate::SendError;

/// The way to a destination over one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Whom the frame is addressed to: a gateway, or the destination itself.
    pub(crate) next_hop: IpAddr,
    /// The address that the packet comes from.
    pub(crate) source: IpAddr,
}

/// Asks the kernel for the way to `destination` over `link` (`RTM_GETROUTE`).
pub(crate) fn route(link: &Link, destination: IpAddr) -> Result<Route, SendError> {
    let failed = |cause| SendError::Route { destination, interface: link.name.clone(), cause };
    let (family, bits) =
        if destination.is_ipv6() { (AddressFamily::Inet6, 128) } else { (AddressFamily::Inet, 32) };
    let mut question = RouteMessage::default();
    question.header.address_family = family;
    question.header.destination_prefix_length = bits;
    question.attributes =
        vec![RouteAttribute::Destination(destination.into()), RouteAttribute::Oif(link.index)];
    match Netlink::ask(RouteNetlinkMessage::GetRoute(question)).map_err(failed)? {
        RouteNetlinkMessage::NewRoute(answer) => {
            let source = answer
                .attributes
                .iter()
                .find_map(source)
                .ok_or_else(|| SendError::NoSource { interface: link.name.clone(), destination })?;
            let gateway = answer.attributes.iter().find_map(gateway);
            Ok(Route { next_hop: gateway.unwrap_or(destination), source })
        }
        _ => Err(failed(io::ErrorKind::InvalidData.into())),
    }
}

fn source(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::PrefSource(address) => ip(address),
        _ => None,
    }
}

/// An IPv4 route may lead over an IPv6 neighbour (RFC 5549), which stands in another attribute.
fn gateway(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::Gateway(address) => ip(address),
        RouteAttribute::Via(RouteVia::Inet(address)) => Some((*address).into()),
        RouteAttribute::Via(RouteVia::Inet6(address)) => Some((*address).into()),
        _ => None,
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}
