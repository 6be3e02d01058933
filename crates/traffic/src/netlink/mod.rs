//! What the kernel knows about links, routes and neighbours: rtnetlink(7).

mod link;
mod neighbour;
mod route;

use std::io;
use std::time::Instant;

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirestamp_sys::netlink::messages;

pub(crate) use link::{Drops, ETHERNET_HEADER, Link};
pub(crate) use neighbour::hardware_address;
pub(crate) use route::route;

/// A conversation with the kernel, in the network namespace of the thread that opened it.
struct Netlink(Socket);

impl Netlink {
    /// Sends one request, and returns the answer.
    fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        wirestamp_sys::netlink::ask(NETLINK_ROUTE, question)
    }

    /// Listens to what the kernel tells a multicast group, from now on.
    fn listen(group: u32) -> io::Result<Self> {
        let socket = wirestamp_sys::netlink::open(NETLINK_ROUTE)?;
        socket.add_membership(group)?;
        Ok(Self(socket))
    }

    /// What the kernel tells next; none if it tells nothing before `deadline`.
    fn news(&self, deadline: Instant) -> io::Result<Option<Vec<RouteNetlinkMessage>>> {
        let patience = deadline.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&patience))? == 0 {
            return Ok(None);
        }
        let (bytes, _) = self.0.recv_from_full()?;
        let news = messages(&bytes)?.into_iter().filter_map(|payload| match payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        });
        Ok(Some(news.collect()))
    }
}

/// Takes any bytes for a datagram of messages.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    let _ = messages::<RouteNetlinkMessage>(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_lead_astray(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_any(&bytes);
        }
    }
}
