//! What the kernel knows about links, routes and neighbours: rtnetlink(7).

mod link;
mod neighbour;
mod route;

use std::io;
use std::time::Instant;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) use link::{Drops, ETHERNET_HEADER, Link};
pub(crate) use neighbour::hardware_address;
pub(crate) use route::route;

/// A conversation with the kernel, in the network namespace of the thread that opened it.
struct Netlink(Socket);

impl Netlink {
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        Ok(Self(socket))
    }

    /// Asks for one thing, and returns the answer.
    fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        let Self(socket) = Self::open()?;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(question));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        let (bytes, _) = socket.recv_from_full()?;
        // The kernel answers one question with one message, and nobody else knows this socket.
        match messages(&bytes)?.into_iter().next() {
            Some(NetlinkPayload::InnerMessage(answer)) => Ok(answer),
            Some(NetlinkPayload::Error(error)) => Err(error.to_io()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Listens to what the kernel tells a multicast group, from now on.
    fn listen(group: u32) -> io::Result<Self> {
        let listener = Self::open()?;
        listener.0.add_membership(group)?;
        Ok(listener)
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

/// The messages of one datagram.
fn messages(mut bytes: &[u8]) -> io::Result<Vec<NetlinkPayload<RouteNetlinkMessage>>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let message = NetlinkMessage::deserialize(bytes).map_err(io::Error::other)?;
        // Each begins on a multiple of four bytes (NLMSG_ALIGN, netlink(3)), and is never empty.
        let length = usize::try_from(message.header.length).map_err(io::Error::other)?;
        bytes = bytes.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        messages.push(message.payload);
    }
    Ok(messages)
}

/// Takes any bytes for a datagram of messages.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    let _ = messages(bytes);
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
