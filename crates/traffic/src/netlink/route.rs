//! Routes of the kernel.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Link;
use crate::SendError;

/// A route to a destination over one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The gateway, or the destination itself.
    pub(crate) next_hop: IpAddr,
    /// The source address.
    pub(crate) source: IpAddr,
}

/// Requests the route to `destination` over `link` from the kernel (`RTM_GETROUTE`).
pub(crate) fn route(link: &Link, destination: IpAddr) -> Result<Route, SendError> {
    let failed = |cause| SendError::Route { destination, interface: link.name.clone(), cause };
    let (family, bits) =
        if destination.is_ipv6() { (AddressFamily::Inet6, 128) } else { (AddressFamily::Inet, 32) };
    let mut question = RouteMessage::default();
    question.header.address_family = family;
    question.header.destination_prefix_length = bits;
    question.attributes =
        vec![RouteAttribute::Destination(destination.into()), RouteAttribute::Oif(link.index)];
    match super::ask(RouteNetlinkMessage::GetRoute(question)).map_err(failed)? {
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

/// An IPv4 route may have an IPv6 gateway (RFC 5549), in another attribute.
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
