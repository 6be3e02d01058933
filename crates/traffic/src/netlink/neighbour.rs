//! Hardware addresses of neighbours: the kernel's neighbour table (arp(7)).

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirestamp_sys::netlink;
use wirestamp_sys::socket::bind_to_interface;

use super::Link;
use crate::{MacAddress, SendError};

/// `RTNLGRP_NEIGH` (linux/rtnetlink.h).
const NEIGHBOUR_GROUP: u32 = 3;
/// The discard service (RFC 863).
const DISCARD_PORT: u16 = 9;
/// Timeout of the resolution. The kernel sends three requests, a second apart (`mcast_solicit` and
/// `retrans_time_ms`, arp(7)).
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(4);

/// The hardware address of `next_hop`, a neighbour on `link`.
///
/// If it is not in the table, a datagram to the discard port makes the kernel resolve it.
pub(crate) fn hardware_address(link: &Link, next_hop: IpAddr) -> Result<MacAddress, SendError> {
    if link.is_loopback {
        return Ok(link.mac);
    }
    let failed = |cause| SendError::Neighbour { next_hop, interface: link.name.clone(), cause };
    // Before the table is read, so that no notification is missed.
    let listen = || {
        let listener = netlink::open(NETLINK_ROUTE)?;
        listener.add_membership(NEIGHBOUR_GROUP).map(|()| listener)
    };
    let listener = listen().map_err(failed)?;
    if let Some(mac) = look_up(link, next_hop).map_err(failed)? {
        return Ok(mac);
    }
    provoke(link, next_hop).map_err(failed)?;
    // Addresses that the kernel derives, as for multicast, appear without a notification.
    if let Some(mac) = look_up(link, next_hop).map_err(failed)? {
        return Ok(mac);
    }
    let deadline = Instant::now() + RESOLVE_TIMEOUT;
    while let Some(notifications) = notifications(&listener, deadline).map_err(failed)? {
        for message in notifications {
            let RouteNetlinkMessage::NewNeighbour(entry) = message else { continue };
            if !is_about(&entry, link, next_hop) {
                continue;
            }
            if let Some(mac) = address(&entry) {
                return Ok(mac);
            }
            if entry.header.state == NeighbourState::Failed {
                return Err(failed(io::ErrorKind::HostUnreachable.into()));
            }
        }
    }
    Err(failed(io::ErrorKind::TimedOut.into()))
}

/// The next notifications; none if there are none before `deadline`.
fn notifications(
    listener: &Socket,
    deadline: Instant,
) -> io::Result<Option<Vec<RouteNetlinkMessage>>> {
    let timeout = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout))? == 0 {
        return Ok(None);
    }
    let (bytes, _) = listener.recv_from_full()?;
    let notifications =
        netlink::messages(&bytes)?.into_iter().filter_map(|payload| match payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        });
    Ok(Some(notifications.collect()))
}

/// The address in the table.
fn look_up(link: &Link, next_hop: IpAddr) -> io::Result<Option<MacAddress>> {
    let mut question = NeighbourMessage::default();
    question.header.family =
        if next_hop.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    question.header.ifindex = link.index;
    question.attributes = vec![NeighbourAttribute::Destination(next_hop.into())];
    match super::ask(RouteNetlinkMessage::GetNeighbour(question)) {
        Ok(RouteNetlinkMessage::NewNeighbour(entry)) => Ok(address(&entry)),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the kernel resolve a neighbour.
fn provoke(link: &Link, next_hop: IpAddr) -> io::Result<()> {
    let (anywhere, there) = match next_hop {
        IpAddr::V4(_) => ("0.0.0.0:0", SocketAddr::new(next_hop, DISCARD_PORT)),
        // A link-local address is ambiguous without its link.
        IpAddr::V6(ip) => ("[::]:0", SocketAddrV6::new(ip, DISCARD_PORT, 0, link.index).into()),
    };
    let socket = UdpSocket::bind(anywhere)?;
    bind_to_interface(&socket, &link.name)?;
    socket.send_to(&[], there).map(drop)
}

fn is_about(entry: &NeighbourMessage, link: &Link, next_hop: IpAddr) -> bool {
    let destination = NeighbourAttribute::Destination(NeighbourAddress::from(next_hop));
    entry.header.ifindex == link.index && entry.attributes.contains(&destination)
}

/// The hardware address, unless the entry is incomplete or failed.
fn address(entry: &NeighbourMessage) -> Option<MacAddress> {
    use NeighbourState as State;
    if matches!(entry.header.state, State::None | State::Incomplete | State::Failed) {
        return None;
    }
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => MacAddress::from_slice(bytes),
        _ => None,
    })
}
