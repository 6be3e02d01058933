//! Reordering-free runs of a stream: RFC 4737 section 4.6.

use crate::CountDistribution;
use crate::numeric::count_to_f64;

/// Reordering-free runs of a stream: packets in order between reordered ones. The letters are those of RFC 4737
/// section 4.6.2.
#[derive(Clone, Debug, Default)]
pub struct FreeRuns {
    /// r: packets in order since the last reordered one.
    open: u64,
    /// Lengths in packets of the runs ended by a reordered packet, 0 for two in a row. There are as many as reordered
    /// packets.
    pub lengths: CountDistribution,
    /// q: the sum of their squares, saturating.
    squares: u64,
    /// a: packets in order, including the open run.
    in_order: u64,
}

impl FreeRuns {
    /// Records the next packet.
    pub(super) fn record(&mut self, in_order: bool) {
        if in_order {
            self.open += 1;
            self.in_order += 1;
            return;
        }
        self.squares = self.squares.saturating_add(self.open.saturating_mul(self.open));
        self.lengths.record(self.open);
        self.open = 0;
    }

    /// Adds the figures of another stream.
    pub(super) fn merge(&mut self, other: &Self) {
        self.lengths.merge(&other.lengths);
        self.squares = self.squares.saturating_add(other.squares);
        self.in_order += other.in_order;
    }

    /// a/x, the average run: packets in order over reordered packets. `None` without reordered packets.
    #[must_use]
    pub fn average(&self) -> Option<f64> {
        let runs = self.lengths.count;
        (runs > 0).then(|| count_to_f64(self.in_order) / count_to_f64(runs))
    }

    /// (q/a)/(a/x), the variation of run lengths: 1 for equal runs, more if a few are long. `None` without reordered
    /// packets, or without packets in order.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        let average = self.average().filter(|average| *average > 0.0)?;
        Some(count_to_f64(self.squares) / count_to_f64(self.in_order) / average)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of these lengths, each ended by a reordered packet.
    fn runs(lengths: &[u64]) -> FreeRuns {
        let mut runs = FreeRuns::default();
        for length in lengths {
            (0..*length).for_each(|_| runs.record(true));
            runs.record(false);
        }
        runs
    }

    /// The examples of RFC 4737 section 4.6.4: 36 packets with three runs.
    #[test]
    fn the_illustrations_of_the_rfc_have_its_figures() {
        let even = runs(&[11, 11, 11]);
        assert_eq!((even.in_order, even.squares, even.lengths.count), (33, 363, 3));
        assert_eq!((even.average(), even.variation()), (Some(11.0), Some(1.0)));
        let uneven = runs(&[1, 1, 31]);
        assert_eq!((uneven.in_order, uneven.squares, uneven.average()), (33, 963, Some(11.0)));
        let variation = uneven.variation().expect("runs");
        assert!((variation - 2.65).abs() < 0.005, "{variation}");
    }

    #[test]
    fn without_reordered_packets_there_is_no_run() {
        let mut runs = FreeRuns::default();
        runs.record(true);
        assert_eq!((runs.average(), runs.variation(), runs.lengths.count), (None, None, 0));
    }
}
