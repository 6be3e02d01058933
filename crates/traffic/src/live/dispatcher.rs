//! Keeps the program registered in the kernel's XDP dispatcher.
//!
//! Each run of an unattached program takes about 10 ms longer, because the kernel adds the program
//! to the dispatcher and removes it again. That is too long between two bursts. So the program is
//! attached to an interface without traffic: the loopback interface, which is down, of a network
//! namespace created for this purpose.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use wirestamp_sys::netns::{Netns, NetnsError};

use super::libbpf;

/// The loopback interface's number in every namespace (`LOOPBACK_IFINDEX` in the kernel).
const LOOPBACK: i32 = 1;

/// The program's registration in the dispatcher; dropping it removes the registration.
#[derive(Debug)]
pub(super) struct DispatcherEntry {
    _link: OwnedFd,
    _namespace: Netns,
}

impl DispatcherEntry {
    /// Registers `program`. Requires `CAP_SYS_ADMIN` for the namespace.
    pub(super) fn new(program: BorrowedFd<'_>) -> io::Result<Self> {
        let namespace = Netns::new().map_err(|error| match error {
            NetnsError::System { cause, .. } => cause,
            other => io::Error::other(other),
        })?;
        let link = namespace.run(|| libbpf::attach_xdp(program, LOOPBACK)).flatten()?;
        Ok(Self { _link: link, _namespace: namespace })
    }
}
