//! Counts of one round in the softIRQ: a row of the raw results.

use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;
use wirestamp_report::format::{approximate, real};
use wirestamp_traffic::live::LiveReport;

use super::QUEUE_FRAMES;
use crate::loss::capture::Captured;

/// Share of the requested load that a round needs.
const MIN_LOAD: f64 = 0.95;

/// Share of the queue that a sender that was late may fill with the frames that it sends together.
const MAX_CATCH_UP: f64 = 0.5;

/// Packet counts of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::loss) struct SoftirqRound {
    /// Sent, and how long that took.
    pub(in crate::loss) sent: u64,
    pub(in crate::loss) elapsed_ns: i64,
    /// Longest time that the sender was late: frames that it sends afterwards arrive together. None at full speed, and in runs
    /// of earlier versions.
    #[serde(default)]
    pub(in crate::loss) latest_ns: Option<i64>,
    /// Dropped because the softIRQ's queue was full.
    pub(in crate::loss) queue_dropped: u64,
    /// CPU time of the softIRQ's thread; none if it was not read.
    pub(in crate::loss) softirq_ns: Option<u64>,
    /// Dropped because the capture's buffer was full; none without a capture, or if it does not report it.
    pub(in crate::loss) reader_dropped: Option<u64>,
    /// In the file of the capture; none without one.
    pub(in crate::loss) captured: Option<u64>,
}

impl SoftirqRound {
    /// A round without a capture.
    pub(super) fn without_capture(sent: &LiveReport) -> Self {
        Self {
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            latest_ns: sent.latest.map(Span::as_nanos),
            queue_dropped: sent.dropped,
            softirq_ns: None,
            reader_dropped: None,
            captured: None,
        }
    }

    /// A round with one.
    pub(super) fn of_capture(captured: &Captured) -> Self {
        Self {
            reader_dropped: captured.dropped,
            captured: Some(captured.captured),
            ..Self::without_capture(&captured.sent)
        }
    }

    /// Whether the packets were sent at about the load of this gap; none if it is unknown whether the sender was late. If it
    /// was, the frames that follow arrive together, and fill the queue whatever is done with each.
    pub(super) fn is_at_the_load(&self, gap_ns: u64) -> Option<bool> {
        // A gap of 0 requests no load: each round is sent as fast as it goes, which differs from one contender to the next.
        if gap_ns == 0 {
            return Some(true);
        }
        if self.packets_per_second() * real(gap_ns) < MIN_LOAD * 1e9 {
            return Some(false);
        }
        let latest = approximate(self.latest_ns?);
        Some(latest <= real(gap_ns) * f64::from(QUEUE_FRAMES) * MAX_CATCH_UP)
    }

    /// Whether claims compare the round: not if it was at another load. If it is unknown whether the sender was late, its rate
    /// alone decides.
    pub(super) fn is_compared(&self, gap_ns: u64) -> bool {
        self.is_at_the_load(gap_ns) != Some(false)
    }

    /// Packets that the softIRQ has received.
    pub(super) const fn received(&self) -> u64 {
        self.sent.saturating_sub(self.queue_dropped)
    }

    /// The share of the packets sent that is not in the file, in percent; without a capture, the share that the softIRQ
    /// has not received.
    pub(super) fn loss_percent(&self) -> f64 {
        let kept = self.captured.unwrap_or_else(|| self.received());
        100.0 * real(self.sent.saturating_sub(kept)) / real(self.sent.max(1))
    }

    /// How fast they were sent.
    pub(super) fn packets_per_second(&self) -> f64 {
        real(self.sent) * 1e9 / approximate(self.elapsed_ns.max(1))
    }

    /// How fast the softIRQ has received them.
    pub(super) fn received_per_second(&self) -> f64 {
        real(self.received()) * 1e9 / approximate(self.elapsed_ns.max(1))
    }

    /// CPU time of the softIRQ for a packet; none without packets.
    pub(super) fn softirq_ns_per_packet(&self) -> Option<f64> {
        let received = self.received();
        (received > 0).then_some(real(self.softirq_ns?) / real(received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_of_the_file_or_without_a_capture_of_the_queue() {
        let round = SoftirqRound {
            sent: 1_000,
            elapsed_ns: 1_000_000,
            queue_dropped: 200,
            softirq_ns: Some(400_000),
            ..SoftirqRound::default()
        };
        assert_eq!((round.loss_percent(), round.received_per_second()), (20.0, 800_000.0));
        assert_eq!(round.softirq_ns_per_packet(), Some(500.0));
        let captured = SoftirqRound { captured: Some(500), ..round };
        assert_eq!(captured.loss_percent(), 50.0);
        assert_eq!(SoftirqRound::default().loss_percent(), 0.0);
        assert_eq!(SoftirqRound::default().softirq_ns_per_packet(), None);
    }

    #[test]
    fn late_or_slow_round_is_not_at_the_load() {
        let round = SoftirqRound {
            sent: 1_000,
            elapsed_ns: 1_000_000,
            latest_ns: Some(120_000),
            ..SoftirqRound::default()
        };
        let at = |round: SoftirqRound| [1_000, 900, 0].map(|gap_ns| round.is_at_the_load(gap_ns));
        // The load of 900 ns is 11 % more than was sent.
        assert_eq!(at(round), [Some(true), Some(false), Some(true)]);
        // 130 frames arrive together.
        let late = SoftirqRound { latest_ns: Some(130_000), ..round };
        assert_eq!(at(late), [Some(false), Some(false), Some(true)]);
        let unknown = SoftirqRound { latest_ns: None, ..round };
        assert_eq!(at(unknown), [None, Some(false), Some(true)]);
        let compared = [round, late, unknown].map(|round| round.is_compared(1_000));
        assert_eq!(compared, [true, false, true]);
    }
}
