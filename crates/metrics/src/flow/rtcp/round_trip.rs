//! Round trips from this point to one end, and back.
//!
//! A report passes this point, and the end that receives it answers later. The answer names the report (LSR or LRR), and
//! how long it waited at that end (DLSR or DLRR; RFC 3550 section 6.4.1, RFC 3611 section 4.5). The time between both at
//! this point, without the wait, is the round trip between this point and that end. Both stamps are of one clock, so no
//! clocks have to be synchronised.

use wirestamp_clock::{Span, Time, Utc};

use super::unknown::UnknownRtcpValue;

/// Reports that may still be answered. An end answers the last one that arrived.
const MAX_KEPT: usize = 8;

/// Units a second of the wait in an answer.
const WAIT_UNITS: u64 = 65_536;
/// One unit, in nanoseconds, rounded up: the resolution of a round trip.
pub(super) const RESOLUTION: Span = Span::from_nanos(15_259);

/// The last reports of one kind that passed this point.
#[derive(Clone, Debug, Default)]
pub(super) struct PassedReports {
    reports: [Option<PassedReport>; MAX_KEPT],
    /// Place of the next one.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct PassedReport {
    source: u32,
    /// The middle 32 bits of its NTP timestamp.
    ntp_middle: u32,
    time: Time<Utc>,
    is_repeated: bool,
}

impl PassedReports {
    /// Notes a report. One without a timestamp cannot be answered.
    pub(super) fn note(&mut self, source: u32, ntp_middle: u32, time: Time<Utc>) {
        if ntp_middle == 0 {
            return;
        }
        if let Some(known) = self.find(source, ntp_middle) {
            known.is_repeated = true;
            return;
        }
        let report = PassedReport { source, ntp_middle, time, is_repeated: false };
        if let Some(place) = self.reports.get_mut(self.next) {
            *place = Some(report);
        }
        self.next = (self.next + 1) % MAX_KEPT;
    }

    /// The round trip by an answer at this time: it names a report of `source`, and its wait in units of 1/65536 s.
    pub(super) fn round_trip(
        &mut self,
        source: u32,
        ntp_middle: u32,
        wait: u32,
        time: Time<Utc>,
    ) -> Result<Span, UnknownRtcpValue> {
        if ntp_middle == 0 {
            return Err(UnknownRtcpValue::NothingAnswered);
        }
        let report = self.find(source, ntp_middle).ok_or(UnknownRtcpValue::AnsweredNotCaptured)?;
        if report.is_repeated {
            return Err(UnknownRtcpValue::AnsweredRepeated);
        }
        let wait = u64::from(wait) * 1_000_000_000 / WAIT_UNITS;
        let wait = Span::from_nanos(i64::try_from(wait).unwrap_or(i64::MAX));
        let round_trip = time - report.time - wait;
        // The end rounds its wait.
        if round_trip < Span::ZERO - RESOLUTION {
            return Err(UnknownRtcpValue::Negative);
        }
        Ok(round_trip.max(Span::ZERO))
    }

    fn find(&mut self, source: u32, ntp_middle: u32) -> Option<&mut PassedReport> {
        self.reports
            .iter_mut()
            .flatten()
            .find(|it| it.source == source && it.ntp_middle == ntp_middle)
    }
}

/// Round trips to one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    pub(super) samples: u64,
    /// Last, min and max.
    pub(super) values: Option<[Span; 3]>,
    /// Why the last answer gave none.
    pub(super) unknown: UnknownRtcpValue,
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self { samples: 0, values: None, unknown: UnknownRtcpValue::NoReport }
    }
}

impl RoundTrips {
    pub(super) fn record(&mut self, round_trip: Result<Span, UnknownRtcpValue>) {
        match round_trip {
            Ok(last) => {
                self.samples += 1;
                let [_, min, max] = self.values.unwrap_or([last; 3]);
                self.values = Some([last, min.min(last), max.max(last)]);
            }
            Err(reason) => self.unknown = reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: i64) -> Time<Utc> {
        Time::from_nanos(nanos)
    }

    #[test]
    fn round_trip_is_without_the_wait() {
        let mut passed = PassedReports::default();
        passed.note(1, 77, at(1_000_000_000));
        // Half a second and one unit.
        let wait = 32_768 + 1;
        let trip = passed.round_trip(1, 77, wait, at(1_540_015_258));
        assert_eq!(trip, Ok(Span::from_millis(40)));
        let longest = passed.round_trip(1, 77, u32::MAX, at(i64::MAX));
        assert!(longest.is_ok_and(|it| it > Span::ZERO));
    }

    #[test]
    fn impossible_round_trips_are_unknown() {
        let mut passed = PassedReports::default();
        passed.note(1, 77, at(1_000));
        passed.note(1, 0, at(1_000));
        passed.note(1, 78, at(1_000));
        passed.note(1, 78, at(2_000));
        let mut trip = |source, middle, wait| passed.round_trip(source, middle, wait, at(5_000));
        assert_eq!(trip(1, 77, 0), Ok(Span::from_nanos(4_000)));
        assert_eq!(trip(1, 77, 1), Ok(Span::ZERO));
        assert_eq!(trip(1, 77, 2), Err(UnknownRtcpValue::Negative));
        assert_eq!(trip(1, 0, 0), Err(UnknownRtcpValue::NothingAnswered));
        assert_eq!(trip(2, 77, 0), Err(UnknownRtcpValue::AnsweredNotCaptured));
        assert_eq!(trip(1, 78, 0), Err(UnknownRtcpValue::AnsweredRepeated));
    }

    #[test]
    fn oldest_report_is_replaced() {
        let mut passed = PassedReports::default();
        (1..=9).for_each(|middle| passed.note(1, middle, at(0)));
        assert_eq!(passed.round_trip(1, 1, 0, at(5)), Err(UnknownRtcpValue::AnsweredNotCaptured));
        assert!((2..=9).all(|middle| passed.round_trip(1, middle, 0, at(5)).is_ok()));
    }
}
