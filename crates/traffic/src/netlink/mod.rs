//! Links, routes and neighbours of the kernel: rtnetlink(7).

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

pub(crate) use link::{Drops, Link};
pub(crate) use neighbour::hardware_address;
pub(crate) use route::route;

/// A conversation with the kernel, in the network namespace of the thread that opened it.
struct Netlink(Socket);

impl Netlink {
    /// Sends one request, and returns the answer.
    fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        wirestamp_sys::netlink::ask(NETLINK_ROUTE, question)
    }

    /// Subscribes to the kernel's notifications of a multicast group.
    fn subscribe(group: u32) -> io::Result<Self> {
        let socket = wirestamp_sys::netlink::open(NETLINK_ROUTE)?;
        socket.add_membership(group)?;
        Ok(Self(socket))
    }

    /// The next notifications; none if there are none before `deadline`.
    fn notifications(&self, deadline: Instant) -> io::Result<Option<Vec<RouteNetlinkMessage>>> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout))? == 0 {
            return Ok(None);
        }
        let (bytes, _) = self.0.recv_from_full()?;
        let notifications = messages(&bytes)?.into_iter().filter_map(|payload| match payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        });
        Ok(Some(notifications.collect()))
    }
}

/// Parses any bytes as a datagram of messages.
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
