//! Losses between this point and the receiver.

use wirestamp_packet::rtcp::ReportBlock;

use super::arrivals::{Arrivals, Position};
use super::report::LossComparison;
use super::unknown::UnknownRtcpValue;
use crate::rtp::Step;

/// Limits of the 24 bits of the receiver's loss: beyond them it does not change (RFC 3550 appendix A.3).
const CLAMPED: [i32; 2] = [-0x80_0000, 0x7f_ffff];
/// Max packets by which the receiver's loss may shrink from one report to the next, because packets arrived late. If it
/// shrinks by more, or grows by more than the packets in between, it is unknown whether the receiver began to count again: a
/// sum of the other intervals would be wrong, because they contain the losses that were recovered here.
const MAX_RECOVERED: i64 = 3;

/// Sums over the intervals between two reports of one receiver. Packets are counted up to the same sequence number at both
/// points, and as RFC 3550 appendix A.3 does: duplicates hide losses.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    arrivals: Arrivals,
    /// The last comparable report.
    last: Option<Boundary>,
    expected: u64,
    lost_here: i64,
    lost_at_receiver: i64,
    /// Why the sums are not the truth, if they are not.
    unusable: Option<UnknownRtcpValue>,
}

/// Counts up to the highest sequence number of a report.
#[derive(Clone, Copy, Debug)]
struct Boundary {
    reporter: u32,
    /// Our number, and that of the receiver.
    number: u64,
    extended: u32,
    received_here: u64,
    duplicates_here: u64,
    lost_at_receiver: i32,
}

/// Counts between two reports.
struct Interval {
    expected: u64,
    lost_here: i64,
    lost_at_receiver: i64,
}

impl Comparison {
    /// A comparison of the packets after this number.
    pub(super) const fn after(highest: u64) -> Self {
        let arrivals = Arrivals::after(highest);
        Self {
            arrivals,
            last: None,
            expected: 0,
            lost_here: 0,
            lost_at_receiver: 0,
            unusable: None,
        }
    }

    /// Records the next packet.
    pub(super) fn record(&mut self, step: Step) {
        if matches!(step, Step::Restarted(_)) {
            self.last = None;
        }
        self.arrivals.record(step);
    }

    /// Records a report. Returns whether it is the newest of its receiver on packets of this stream.
    pub(super) fn report(&mut self, reporter: u32, block: &ReportBlock) -> bool {
        let number = match self.arrivals.position(block.extended_highest_sequence) {
            Position::Counted(number) => number,
            Position::Near => return true,
            Position::Unrelated => return false,
        };
        let now = Boundary {
            reporter,
            number,
            extended: block.extended_highest_sequence,
            received_here: self.arrivals.received_until(number),
            duplicates_here: self.arrivals.duplicates(),
            lost_at_receiver: block.cumulative_lost,
        };
        if let Some(last) = self.last.filter(|last| last.reporter == reporter) {
            if now.number < last.number {
                return false; // overtaken by a later report
            }
            match Interval::between(&last, &now) {
                Ok(Some(interval)) => {
                    self.expected += interval.expected;
                    self.lost_here += interval.lost_here;
                    self.lost_at_receiver += interval.lost_at_receiver;
                }
                Ok(None) => {}
                Err(why) => self.unusable = Some(why),
            }
        }
        self.last = Some(now);
        true
    }

    /// The result so far.
    pub(super) fn result(&self) -> Result<LossComparison, UnknownRtcpValue> {
        let Self { expected, lost_here, lost_at_receiver, .. } = *self;
        if let Some(why) = self.unusable {
            return Err(why);
        }
        if expected == 0 {
            return Err(UnknownRtcpValue::TooFewReports);
        }
        let beyond = lost_at_receiver.saturating_sub(lost_here);
        let lost_beyond = u64::try_from(beyond).map_err(|_| UnknownRtcpValue::Negative)?;
        Ok(LossComparison { expected, lost_here, lost_at_receiver, lost_beyond })
    }
}

impl Interval {
    /// `None` if the reports are about different runs of numbers.
    ///
    /// # Errors
    /// The counts of one point cannot be compared with those of the other.
    fn between(last: &Boundary, now: &Boundary) -> Result<Option<Self>, UnknownRtcpValue> {
        let counted =
            |now: u64, last: u64| now.checked_sub(last).and_then(|it| i64::try_from(it).ok());
        let Some(packets) = counted(now.number, last.number) else { return Ok(None) };
        let expected = now.number - last.number;
        if u64::from(now.extended.wrapping_sub(last.extended)) != expected {
            return Ok(None);
        }
        let losses = [last, now].map(|it| it.lost_at_receiver);
        let [before, after] = losses.map(i64::from);
        let lost_at_receiver = after - before;
        let plausible = -MAX_RECOVERED..=packets + MAX_RECOVERED;
        if !plausible.contains(&lost_at_receiver) || losses.iter().any(|it| CLAMPED.contains(it)) {
            return Err(UnknownRtcpValue::InconsistentCounts);
        }
        // It is unknown whether the receiver had and counted them, too.
        if now.duplicates_here != last.duplicates_here {
            return Err(UnknownRtcpValue::DuplicatesCaptured);
        }
        let Some(received_here) = counted(now.received_here, last.received_here) else {
            return Ok(None);
        };
        Ok(Some(Self { expected, lost_here: packets - received_here, lost_at_receiver }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 65_536 + 100;

    /// A report of receiver 5 up to a number, with the receiver's wraps.
    fn report(comparison: &mut Comparison, extended: u32, cumulative_lost: i32) -> bool {
        comparison.report(
            5,
            &ReportBlock {
                ssrc: 1,
                fraction_lost: 0,
                cumulative_lost,
                extended_highest_sequence: extended,
                jitter: 0,
                last_sender_report: 0,
                delay_since_last_sender_report: 0,
            },
        )
    }

    fn packets(comparison: &mut Comparison, numbers: std::ops::Range<u64>, missing: &[u64]) {
        let captured = numbers.filter(|it| !missing.contains(it));
        captured.for_each(|number| comparison.record(Step::Ahead(FIRST + number)));
    }

    /// After 100 packets and a report, 100 packets of which 2 are missing here; 20 of each are later than the report.
    fn compared(first: (u32, i32), second: (u32, i32)) -> Result<LossComparison, UnknownRtcpValue> {
        let mut comparison = Comparison::after(FIRST - 1);
        packets(&mut comparison, 0..120, &[]);
        report(&mut comparison, first.0, first.1);
        packets(&mut comparison, 120..220, &[130, 150, 210]);
        report(&mut comparison, second.0, second.1);
        comparison.result()
    }

    #[test]
    fn loss_beyond_is_that_of_the_receiver_without_ours() {
        let expected =
            LossComparison { expected: 100, lost_here: 2, lost_at_receiver: 7, lost_beyond: 5 };
        assert_eq!(compared((200, 11), (300, 18)), Ok(expected));
        assert_eq!(compared((3 << 16 | 200, -4), (3 << 16 | 300, 3)), Ok(expected));
    }

    #[test]
    fn impossible_differences_are_unknown() {
        assert_eq!(compared((200, 0), (300, 1)), Err(UnknownRtcpValue::Negative));
        // Other wraps, another run of numbers, before the first report.
        for second in [(1 << 16 | 300, 7), (40_000, 7), (199, 7)] {
            let found = compared((200, 0), second);
            assert_eq!(found, Err(UnknownRtcpValue::TooFewReports), "{second:?}");
        }
        // Counts that began again, or many late packets; more losses than packets; the limit.
        for lost in [-4, 104, 0x7f_ffff] {
            let found = compared((200, 0), (300, lost));
            assert_eq!(found, Err(UnknownRtcpValue::InconsistentCounts), "{lost}");
        }
    }

    #[test]
    fn packets_that_arrive_late_at_the_receiver_are_no_losses_beyond() {
        let alternating = |late: i32| {
            let mut comparison = Comparison::after(FIRST - 1);
            for round in 0..10u32 {
                let first = u64::from(round) * 100;
                packets(&mut comparison, first..first + 100, &[]);
                let highest = 65_536 + 100 + (round + 1) * 100 - 1;
                report(&mut comparison, highest, if round % 2 == 0 { late } else { 0 });
            }
            comparison.result()
        };
        assert_eq!(alternating(3).map(|it| it.lost_beyond), Err(UnknownRtcpValue::Negative));
        assert_eq!(alternating(0).map(|it| it.lost_beyond), Ok(0));
        assert_eq!(alternating(50), Err(UnknownRtcpValue::InconsistentCounts));
    }

    #[test]
    fn duplicates_that_were_captured_leave_the_loss_beyond_unknown() {
        let mut comparison = Comparison::after(FIRST - 1);
        packets(&mut comparison, 0..120, &[]);
        report(&mut comparison, 200, 0);
        packets(&mut comparison, 120..220, &[]);
        comparison.record(Step::Behind(FIRST + 219));
        report(&mut comparison, 300, 0);
        assert_eq!(comparison.result(), Err(UnknownRtcpValue::DuplicatesCaptured));
    }

    #[test]
    fn reports_on_other_packets_are_rejected() {
        let mut comparison = Comparison::after(FIRST - 1);
        packets(&mut comparison, 0..120, &[]);
        assert!(!report(&mut comparison, 30_000, 5));
        assert!(report(&mut comparison, 210, 5));
        assert!(!report(&mut comparison, 200, 5), "older than the one before");
        assert!(comparison.report(
            6,
            &ReportBlock {
                ssrc: 1,
                fraction_lost: 0,
                cumulative_lost: 5,
                extended_highest_sequence: 200,
                jitter: 0,
                last_sender_report: 0,
                delay_since_last_sender_report: 0,
            }
        ));
        assert_eq!(comparison.result(), Err(UnknownRtcpValue::TooFewReports));
    }

    #[test]
    fn restart_of_the_sender_interrupts_the_comparison() {
        let mut comparison = Comparison::after(FIRST - 1);
        packets(&mut comparison, 0..120, &[]);
        report(&mut comparison, 200, 0);
        comparison.record(Step::Restarted(FIRST + 120));
        packets(&mut comparison, 121..220, &[]);
        report(&mut comparison, 300, 9);
        assert_eq!(comparison.result(), Err(UnknownRtcpValue::TooFewReports));
        packets(&mut comparison, 220..320, &[]);
        report(&mut comparison, 400, 10);
        assert_eq!(comparison.result().map(|it| (it.expected, it.lost_beyond)), Ok((100, 1)));
    }
}
