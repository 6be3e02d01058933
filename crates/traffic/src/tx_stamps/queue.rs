//! The error queue of a socket, with the transmit stamps of its packets.

use std::io;
use std::os::fd::BorrowedFd;

use wirestamp_sys::control_message::TRANSMIT_STAMP_BYTES;
use wirestamp_sys::socket::{enlarge_receive_buffer, receive_message, set_option};

use super::report::Report;
use super::{StampKind, UnavailableStamps, support};

/// Buffer for waiting stamps; each needs up to 1 KiB.
const QUEUE_BYTES: usize = 64 << 20;

/// Buffer for control messages, with the alignment required by the kernel.
#[derive(Debug)]
#[repr(C, align(8))]
struct ControlBuffer([u8; TRANSMIT_STAMP_BYTES]);

/// The error queue of a socket that reports transmit stamps.
#[derive(Debug)]
pub(crate) struct StampQueue {
    control: ControlBuffer,
    /// The unavailable kinds, with the reason.
    pub(crate) unavailable: UnavailableStamps,
}

impl StampQueue {
    /// Requests all available kinds of stamps for packets that `socket` sends over `interface`.
    pub(crate) fn open(
        socket: BorrowedFd<'_>,
        interface: Option<&str>,
        bypasses_queue: bool,
    ) -> io::Result<Self> {
        let unavailable = support::unavailable(&socket, interface, bypasses_queue);
        let flags = StampKind::ALL.into_iter().filter(|&kind| unavailable.of(kind).is_none());
        enlarge_receive_buffer(&socket, QUEUE_BYTES)?;
        request(socket, flags.fold(0, |flags, kind| flags | flag(kind)))?;
        Ok(Self { control: ControlBuffer([0; TRANSMIT_STAMP_BYTES]), unavailable })
    }

    /// Reads the next stamp; false if the queue is empty.
    pub(super) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        mut use_it: impl FnMut(Report),
    ) -> io::Result<bool> {
        let control = &mut self.control.0;
        let length = match receive_message(&socket, &mut [], control, libc::MSG_ERRQUEUE) {
            Ok((_, length)) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let control = self.control.0.get(..length).unwrap_or(&self.control.0);
        Report::read(control).into_iter().for_each(&mut use_it);
        Ok(true)
    }
}

/// Makes the kernel report the stamps `kinds` (`SOF_TIMESTAMPING_TX_*`) on the socket's error queue,
/// each with the number of the packet, counted from 0, and without the packet. A software stamp
/// comes even where a hardware stamp of the same packet does.
fn request(socket: BorrowedFd<'_>, kinds: libc::c_uint) -> io::Result<()> {
    let report = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    let options = libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY
        | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    let flags = kinds | report | options;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &flags)
}

const fn flag(kind: StampKind) -> libc::c_uint {
    match kind {
        StampKind::Sched => libc::SOF_TIMESTAMPING_TX_SCHED,
        StampKind::Software => libc::SOF_TIMESTAMPING_TX_SOFTWARE,
        StampKind::Hardware => libc::SOF_TIMESTAMPING_TX_HARDWARE,
    }
}
