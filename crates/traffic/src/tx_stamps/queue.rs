//! The error queue of a socket, from which its packets' stamps are taken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::report::{ROOM, Report};
use super::{StampKind, UnavailableStamps, support};
use crate::sys::{self, stamps};

/// Room for stamps that wait to be taken; each takes up to 1 KiB of it.
const QUEUE_BYTES: i32 = 64 << 20;

/// Room for what is said beside a message, aligned as the kernel wants it.
#[derive(Debug)]
#[repr(C, align(8))]
struct Control([u8; ROOM]);

/// What a socket was asked to report.
#[derive(Debug)]
pub(crate) struct StampQueue {
    control: Control,
    unavailable: UnavailableStamps,
}

impl StampQueue {
    /// Asks for every kind that can be had of packets that `socket` will send over `interface`.
    pub(crate) fn open(
        socket: BorrowedFd<'_>,
        interface: Option<&str>,
        bypasses_queue: bool,
    ) -> io::Result<Self> {
        let unavailable = support::unavailable(&socket, interface, bypasses_queue);
        let flags = StampKind::ALL.into_iter().filter(|&kind| unavailable.of(kind).is_none());
        sys::enlarge_receive_buffer(&socket, QUEUE_BYTES)?;
        stamps::request(&socket, flags.fold(0, |flags, kind| flags | flag(kind)))?;
        Ok(Self { control: Control([0; ROOM]), unavailable })
    }

    /// Why a kind cannot be had.
    pub(crate) fn unavailable(&self) -> &UnavailableStamps {
        &self.unavailable
    }

    /// Takes the next stamp; false if the queue is empty.
    pub(super) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        mut use_it: impl FnMut(Report),
    ) -> io::Result<bool> {
        let Some(length) = stamps::take_report(&socket.as_fd(), &mut self.control.0)? else {
            return Ok(false);
        };
        let control = self.control.0.get(..length).unwrap_or(&self.control.0);
        Report::read(control).into_iter().for_each(&mut use_it);
        Ok(true)
    }
}

const fn flag(kind: StampKind) -> libc::c_uint {
    match kind {
        StampKind::Sched => libc::SOF_TIMESTAMPING_TX_SCHED,
        StampKind::Software => libc::SOF_TIMESTAMPING_TX_SOFTWARE,
        StampKind::Hardware => libc::SOF_TIMESTAMPING_TX_HARDWARE,
    }
}
