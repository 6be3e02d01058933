//! The error queue of a socket, with the transmit stamps of its packets.

use std::io;
use std::os::fd::BorrowedFd;

use wirestamp_clock::{Time, Utc};
use wirestamp_sys::control_message::{TRANSMIT_STAMP_BYTES, Timestamps, TransmitStamp};
use wirestamp_sys::socket::{enlarge_receive_buffer, receive_message, set_option};

use super::{StampKind, UnavailableStamps, support};

/// Buffer for waiting stamps; each needs up to 1 KiB.
const QUEUE_BYTES: usize = 64 << 20;

/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` (linux/errqueue.h).
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;

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

    /// Reads the next message, and calls `record` with the number of the packet (among those of its socket, from 0 on and
    /// modulo 2^32) and its stamp, if the message has one. False if the queue is empty.
    pub(super) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        record: impl FnOnce(u32, StampKind, Time<Utc>),
    ) -> io::Result<bool> {
        let control = &mut self.control.0;
        let length = match receive_message(&socket, &mut [], control, libc::MSG_ERRQUEUE) {
            Ok((_, length)) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let control = self.control.0.get(..length).unwrap_or(&self.control.0);
        if let Some(TransmitStamp { packet, event, times }) = TransmitStamp::find(control)
            && let Some((kind, nanos)) = kind(event, times)
        {
            record(packet, kind, Time::from_nanos(nanos));
        }
        Ok(true)
    }
}

/// Makes the kernel report the stamps `kinds` (`SOF_TIMESTAMPING_TX_*`) on the socket's error queue, each with the
/// number of the packet, counted from 0, and without the packet. A software stamp is reported even if the packet also
/// has a hardware stamp.
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

/// The kind of a stamp, and its time in nanoseconds.
fn kind(event: u32, times: Timestamps) -> Option<(StampKind, i64)> {
    match (event, times.software, times.hardware) {
        (SCHEDULED, Some(time), _) => Some((StampKind::Sched, time)),
        (SENT, Some(time), _) => Some((StampKind::Software, time)),
        (SENT, None, Some(time)) => Some((StampKind::Hardware, time)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_and_clock_decide_the_kind_of_a_stamp() {
        let times = |software, hardware| Timestamps { software, hardware };
        assert_eq!(kind(SCHEDULED, times(Some(5), None)), Some((StampKind::Sched, 5)));
        assert_eq!(kind(SENT, times(Some(5), None)), Some((StampKind::Software, 5)));
        assert_eq!(kind(SENT, times(None, Some(6))), Some((StampKind::Hardware, 6)));
        assert_eq!(kind(SENT, times(None, None)), None);
        assert_eq!(kind(7, times(Some(5), None)), None);
    }
}
