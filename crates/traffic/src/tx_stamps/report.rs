//! One message of the error queue: the report of a transmit stamp.

use wirestamp_clock::{Time, Utc};
use wirestamp_sys::control_message::{Timestamps, TransmitStamp};

use super::StampKind;

/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` (linux/errqueue.h).
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;

/// A transmit stamp from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Number of the packet among those of its socket, from 0 on and modulo 2^32.
    pub(super) number: u32,
    pub(super) kind: StampKind,
    pub(super) time: Time<Utc>,
}

impl Report {
    /// Reads control messages; none if they are not about a stamp.
    pub(super) fn read(control: &[u8]) -> Option<Self> {
        let TransmitStamp { packet: number, event, times } = TransmitStamp::find(control)?;
        let (kind, nanos) = kind(event, times)?;
        Some(Self { number, kind, time: Time::from_nanos(nanos) })
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
