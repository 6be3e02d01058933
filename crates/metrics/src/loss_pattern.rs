//! Loss pattern of one stream: RFC 3357.

use crate::CountDistribution;
use crate::numeric::count_to_f64;

/// Loss pattern metrics of one stream (RFC 3357), over its packets in the order of *sending*.
///
/// A loss period is a run of lost packets without an arrival between them (section 4). Memory is constant. Packets
/// lost by the capture must not be recorded as lost, but left out.
#[derive(Clone, Debug, Default)]
pub struct LossPattern {
    packets: u64,
    /// Number of lost packets.
    pub lost: u64,
    /// Type-P-One-Way-Loss-Period-Total (section 6.2): number of loss periods, including the open one.
    pub periods: u64,
    /// Losses in the open period; 0 if there is none.
    open_length: u64,
    /// Number of the last lost packet.
    last_lost: Option<u64>,
    /// Loss distances (section 5.4.1), in packets: from each loss to the next, 1 if consecutive. Excludes the RFC's 0
    /// for the first loss.
    pub distances: CountDistribution,
    /// Lengths of the ended periods.
    lengths: CountDistribution,
    /// Type-P-One-Way-Inter-Loss-Period-Lengths (section 6.4), in packets: from the last loss of each period to the
    /// first of the next, at least 2. Excludes the RFC's 0 for the first period.
    pub inter_period_lengths: CountDistribution,
}

impl LossPattern {
    /// Records whether the next packet was lost, in the order of sending.
    pub fn record(&mut self, lost: bool) {
        if lost {
            self.packets += 1;
            self.record_loss();
        } else {
            self.record_arrivals(1);
        }
    }

    /// Records `count` packets that arrived.
    pub fn record_arrivals(&mut self, count: u64) {
        self.packets += count;
        if count > 0 {
            self.close();
        }
    }

    /// Ends the open loss period.
    fn close(&mut self) {
        if self.open_length > 0 {
            self.lengths.record(self.open_length);
            self.open_length = 0;
        }
    }

    /// Adds the figures of another stream, after all packets are recorded. No period or distance extends from one
    /// stream to the other.
    pub fn merge(&mut self, other: &Self) {
        self.close();
        self.packets += other.packets;
        self.lost += other.lost;
        self.periods += other.periods;
        self.last_lost = None;
        self.distances.merge(&other.distances);
        self.lengths.merge(&other.period_lengths());
        self.inter_period_lengths.merge(&other.inter_period_lengths);
    }

    fn record_loss(&mut self) {
        let distance = self.last_lost.map(|last| self.packets - last);
        distance.into_iter().for_each(|distance| self.distances.record(distance));
        if self.open_length == 0 {
            self.periods += 1;
            distance.into_iter().for_each(|distance| self.inter_period_lengths.record(distance));
        }
        self.lost += 1;
        self.open_length += 1;
        self.last_lost = Some(self.packets);
    }

    /// Share of packets lost, 0 to 1 (RFC 7680 section 4.1). `None` without packets.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.packets > 0).then(|| count_to_f64(self.lost) / count_to_f64(self.packets))
    }

    /// Type-P-One-Way-Loss-Period-Lengths (section 6.3), in packets. Includes the open period with its present length.
    #[must_use]
    pub fn period_lengths(&self) -> CountDistribution {
        let mut lengths = self.lengths.clone();
        if self.open_length > 0 {
            lengths.record(self.open_length);
        }
        lengths
    }

    /// Burst ratio (ITU-T G.107 section 7.5): mean length of the loss periods over the mean length for independent
    /// losses, 1 / (1 - loss ratio). 1 for random losses, more for bursts, less for spread losses. `None` without
    /// losses, and if every packet was lost.
    #[must_use]
    pub fn burst_ratio(&self) -> Option<f64> {
        let arrived = 1.0 - self.loss_ratio()?;
        let ratio = count_to_f64(self.lost) / count_to_f64(self.periods) * arrived;
        (self.lost > 0 && self.lost < self.packets).then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(lost: impl IntoIterator<Item = bool>) -> LossPattern {
        let mut pattern = LossPattern::default();
        lost.into_iter().for_each(|lost| pattern.record(lost));
        pattern
    }

    /// The stream of RFC 3357 sections 5.4.3 and 6.5: of ten packets 2, 5, 7, 9 and 10 are lost.
    fn example() -> impl Iterator<Item = bool> {
        (1..=10).map(|packet| [2, 5, 7, 9, 10].contains(&packet))
    }

    #[test]
    fn statistics_match_the_example_of_the_rfc() {
        let pattern = pattern(example());
        assert_eq!((pattern.lost, pattern.periods), (5, 4));
        let lengths = pattern.period_lengths().summary().expect("periods");
        assert_eq!((lengths.count, lengths.min, lengths.mean, lengths.max), (4, 1, 1.25, 2));
        let between = pattern.inter_period_lengths.summary().expect("periods");
        assert_eq!((between.count, between.min, between.mean, between.max), (3, 2, 7.0 / 3.0, 3));
        let distances = pattern.distances.summary().expect("losses");
        assert_eq!((distances.count, distances.min, distances.mean), (4, 1, 2.0));
        assert_eq!(pattern.burst_ratio(), Some(0.625));
    }

    /// The sequence of RFC 3357 section 4, whose periods begin at packets 3, 6, 10 and 13, from 0 on.
    #[test]
    fn a_period_begins_with_a_loss_after_an_arrival() {
        let pattern = pattern("rrrxrrxxxrxrrxxx".chars().map(|packet| packet == 'x'));
        let lengths = pattern.period_lengths().summary().expect("periods");
        assert_eq!((lengths.count, lengths.min, lengths.mean, lengths.max), (4, 1, 2.0, 3));
        let between = pattern.inter_period_lengths.summary().expect("periods");
        assert_eq!((between.min, between.mean, between.max), (2, 8.0 / 3.0, 3));
    }

    #[test]
    fn missing_losses_or_arrivals_give_none() {
        let clean = pattern([false, false]);
        assert_eq!(clean.loss_ratio(), Some(0.0));
        assert_eq!(clean.burst_ratio(), None);
        assert_eq!(clean.period_lengths().count, 0);
        assert_eq!(pattern([true, true]).burst_ratio(), None);
        assert_eq!(pattern([]).loss_ratio(), None);
    }

    proptest! {
        #[test]
        fn every_loss_is_in_one_period(lost in prop::collection::vec(any::<bool>(), 0..200)) {
            let pattern = pattern(lost.iter().copied());
            let runs = lost.split(|lost| !lost).filter(|run| !run.is_empty());
            let lengths: Vec<_> = runs.map(|run| run.len() as u64).collect();
            prop_assert_eq!(pattern.periods, lengths.len() as u64);
            prop_assert_eq!(pattern.lost, lengths.iter().sum::<u64>());
            let tally = pattern.period_lengths();
            prop_assert_eq!(tally.count, lengths.len() as u64);
            prop_assert_eq!(tally.max, lengths.iter().copied().max().unwrap_or(0));
            let between = pattern.inter_period_lengths.count;
            prop_assert_eq!(between, pattern.periods.saturating_sub(1));
        }
    }

    #[test]
    fn merged_streams_have_the_periods_of_both() {
        let mut merged = pattern([false, true]);
        merged.merge(&pattern([true, true, false, true]));
        assert_eq!((merged.lost, merged.periods), (4, 3));
        let lengths = merged.period_lengths().summary().expect("periods");
        assert_eq!((lengths.count, lengths.max), (3, 2));
        assert_eq!(merged.inter_period_lengths.count, 1);
    }

    #[test]
    fn independent_losses_have_a_burst_ratio_of_one() {
        // A full-period sequence of a 16-bit shift register: equivalent to 65535 coin tosses (taps of x^16 + x^14 +
        // x^13 + x^11 + 1, which is primitive).
        let mut state = 1u32;
        let coin = std::iter::repeat_with(|| {
            let bit = (state ^ (state >> 2) ^ (state >> 3) ^ (state >> 5)) & 1;
            state = (state >> 1) | (bit << 15);
            bit == 1
        });
        let ratio = pattern(coin.take(65_535)).burst_ratio().expect("losses");
        assert!((ratio - 1.0).abs() < 0.001, "{ratio}");
    }
}
