//! The interface of live frames: its state and its drop counters.

use std::os::unix::net::UnixDatagram;

use wirestamp_sys::interface::is_up;

use super::{Direction, LiveError};
use crate::netlink::{Drops, Link};

/// An interface of the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) link: Link,
    /// For ioctls about the interface.
    socket: UnixDatagram,
}

impl Interface {
    pub(super) fn open(name: &str) -> Result<Self, LiveError> {
        let link = Link::find(name)?;
        let socket = UnixDatagram::unbound().map_err(|cause| LiveError::System {
            what: "open a socket for interface state",
            interface: name.to_owned(),
            cause,
        })?;
        let interface = Self { link, socket };
        interface.check()?;
        Ok(interface)
    }

    /// Returns an error if the interface is down or gone.
    pub(super) fn check(&self) -> Result<(), LiveError> {
        let what = match is_up(&self.socket, &self.link.name) {
            Ok(true) => return Ok(()),
            Ok(false) => "is down and passes no frames; bring it up with `ip link set up`",
            Err(_) => "has disappeared while frames were sent",
        };
        Err(LiveError::Unusable { interface: self.link.name.clone(), what })
    }

    /// Frames of all senders that the interface has dropped in `direction` since it came up.
    pub(super) fn dropped(&self, direction: Direction) -> Result<u64, LiveError> {
        let Drops { received, sent } = Link::drops(&self.link.name)?;
        Ok(match direction {
            Direction::Transmit => sent,
            Direction::Receive | Direction::ReceiveOn(_) => received,
        })
    }
}
