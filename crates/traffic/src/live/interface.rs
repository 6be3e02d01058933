//! The interface that frames pass: whether it still takes them, and how many it dropped.

use std::os::unix::net::UnixDatagram;

use super::{Direction, LiveError};
use crate::netlink::{Drops, Link};
use crate::sys;

/// An interface of the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) link: Link,
    /// Through which the kernel is asked about it.
    socket: UnixDatagram,
}

impl Interface {
    pub(super) fn open(name: &str) -> Result<Self, LiveError> {
        let link = Link::find(name)?;
        let socket = UnixDatagram::unbound().map_err(|cause| LiveError::System {
            what: "open a socket to ask about its state",
            interface: name.to_owned(),
            cause,
        })?;
        let interface = Self { link, socket };
        interface.check()?;
        Ok(interface)
    }

    /// Whether frames can still go through it.
    pub(super) fn check(&self) -> Result<(), LiveError> {
        let what = match sys::interface::is_up(&self.socket, &self.link.name) {
            Ok(true) => return Ok(()),
            Ok(false) => "is down, so no frames pass; `ip link set up` brings it up",
            Err(_) => "has disappeared while frames were sent",
        };
        Err(LiveError::Unusable { interface: self.link.name.clone(), what })
    }

    /// How many frames of that direction it has dropped up to now, whoever sent them.
    pub(super) fn dropped(&self, direction: Direction) -> Result<u64, LiveError> {
        let Drops { received, sent } = Link::drops(&self.link.name)?;
        Ok(match direction {
            Direction::Transmit => sent,
            Direction::Receive | Direction::ReceiveOn(_) => received,
        })
    }
}
