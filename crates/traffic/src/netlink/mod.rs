//! Links, routes and neighbours of the kernel: rtnetlink(7).

mod link;
mod neighbour;
mod route;

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;

pub(crate) use link::{Drops, Link};
pub(crate) use neighbour::hardware_address;
pub(crate) use route::route;

/// Sends one request to the kernel in the network namespace of this thread, and returns the answer.
fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
    wirestamp_sys::netlink::ask(NETLINK_ROUTE, question)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = wirestamp_sys::netlink::messages::<RouteNetlinkMessage>(&bytes);
        }
    }
}
