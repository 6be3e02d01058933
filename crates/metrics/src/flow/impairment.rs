//! Lost and late packets of a stream, and how they are distributed.

use super::gap_losses::LossChange;
use super::uncertainty::ImpairmentUncertainty;
use crate::numeric::count_to_f64;

/// Packets of a stream, or of a part of it, that were lost or came too late to be played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Impairment {
    /// Packets expected.
    pub(crate) expected: u64,
    /// Packets lost.
    pub(crate) lost: u64,
    /// Runs of lost packets (loss periods, RFC 3357 section 4).
    pub(crate) periods: u64,
    /// Packets later than the receiver's de-jitter buffer waits.
    pub(crate) late: u64,
    /// Runs of late packets.
    pub(crate) late_periods: u64,
}

/// Loss parameters of a MOS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossSeverity {
    /// The share of packets that cannot be played, 0 to 1.
    pub(super) ratio: f64,
    /// Burst ratio; at least 1 where losses are burstier than random.
    pub(super) burst_ratio: f64,
}

impl Impairment {
    /// Records a run of missing packets.
    pub(super) fn lose(&mut self, packets: u64) {
        self.expected += packets;
        self.lost += packets;
        self.periods += u64::from(packets > 0);
    }

    /// Corrects the counts for a late arrival; `missing_neighbours` (0 to 2) of its neighbours are still missing.
    /// Saturates, because the loss may have been counted in another interval.
    pub(super) fn recover(&mut self, missing_neighbours: u8) {
        self.lost = self.lost.saturating_sub(1);
        self.periods = match missing_neighbours {
            0 => self.periods.saturating_sub(1),
            1 => self.periods,
            _ => self.periods + 1,
        };
    }

    /// Applies a correction of the losses in a gap.
    pub(super) fn correct(&mut self, change: &LossChange) {
        let LossChange { before, now, .. } = change;
        self.lost = (self.lost + now.by_network).saturating_sub(before.by_network);
        self.periods = (self.periods + now.periods).saturating_sub(before.periods);
    }

    /// Records a packet that came too late; `again` if the one before was too late as well.
    pub(crate) fn record_too_late(&mut self, again: bool) {
        self.late += 1;
        self.late_periods += u64::from(!again);
    }

    /// The share of packets that cannot be played, 0 to 1; none without packets.
    pub(crate) fn ratio(&self) -> Option<f64> {
        (self.expected > 0)
            .then(|| (count_to_f64(self.impaired()) / count_to_f64(self.expected)).min(1.0))
    }

    fn impaired(&self) -> u64 {
        self.lost + self.late
    }

    /// The burst ratio of these packets (ITU-T G.107 section 7.5), as [`crate::LossPattern::burst_ratio`] computes it;
    /// 1 without impairment.
    pub(crate) fn burst_ratio(&self) -> f64 {
        let periods = (self.periods + self.late_periods).clamp(1, self.impaired().max(1));
        match self.ratio() {
            Some(ratio) if ratio > 0.0 && ratio < 1.0 => {
                count_to_f64(self.impaired()) / count_to_f64(periods) * (1.0 - ratio)
            }
            _ => 1.0,
        }
    }

    /// Sum of both.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            lost: self.lost + other.lost,
            periods: self.periods + other.periods,
            late: self.late + other.late,
            late_periods: self.late_periods + other.late_periods,
        }
    }

    /// Min and max severity within the uncertainty; none without packets. The effective equipment impairment (ITU-T
    /// G.107 equation 7-29) grows with the share of losses and with the burst ratio: the min of both bounds the MOS
    /// from above, the max of both from below. With n losses in p runs among e packets, the burst ratio is n (1 - n /
    /// e) / p (section 7.5), which is highest next to e / 2.
    pub(super) fn bounds(&self, uncertainty: ImpairmentUncertainty) -> Option<[LossSeverity; 2]> {
        let ratio = self.ratio()?;
        if uncertainty == ImpairmentUncertainty::default() {
            return Some([LossSeverity { ratio, burst_ratio: self.burst_ratio() }; 2]);
        }
        let impaired = |lost: u64| (lost + self.late).min(self.expected);
        let min = impaired(self.lost.saturating_sub(uncertainty.lost.fewer));
        let max = impaired(self.lost.saturating_add(uncertainty.lost.more));
        let runs = self.periods + self.late_periods;
        let min_numbered = runs.saturating_sub(uncertainty.periods.fewer).max(1);
        let expected = count_to_f64(self.expected);
        let arrived = |lost: u64| count_to_f64(lost) * (1.0 - count_to_f64(lost) / expected);
        let middle = (self.expected / 2).clamp(min, max);
        let min_burst =
            arrived(min).min(arrived(max)) / count_to_f64((runs + uncertainty.periods.more).max(1));
        let max_burst = [min, middle, max].map(arrived).into_iter().fold(0.0, f64::max)
            / count_to_f64(min_numbered);
        let severity =
            |lost, burst_ratio| LossSeverity { ratio: count_to_f64(lost) / expected, burst_ratio };
        Some([severity(min, min_burst), severity(max, max_burst)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::numbers::{ArrivalKind, Numbers};
    use super::super::uncertainty::Uncertainty;
    use super::*;
    use crate::LossPattern;
    use crate::rtp::Sequence;

    fn of_arrivals(numbers: &[u16]) -> Impairment {
        let (mut sequence, mut seen) = (Sequence::default(), Numbers::default());
        let mut impairment = Impairment::default();
        for number in numbers {
            match seen.record(sequence.record(*number)) {
                ArrivalKind::Ahead { skipped } => {
                    impairment.lose(skipped);
                    impairment.expected += 1;
                }
                ArrivalKind::Late { missing_neighbours } => impairment.recover(missing_neighbours),
                _ => {}
            }
        }
        impairment
    }

    proptest! {
        /// Late packets in any order give the same counts as the losses alone.
        #[test]
        fn counts_match_the_loss_pattern_in_any_order(
            fates in prop::collection::vec(0u8..6, 3..200),
        ) {
            // 0 is lost, 1 comes up to 9 places later, the others come in order.
            let last = fates.len() - 1;
            let place = |(number, resolution): (usize, &u8)| match resolution {
                _ if number == 0 || number == last => Some((number * 2, number)),
                0 => None,
                1 => Some((number * 2 + 1 + 2 * (number % 10), number)),
                _ => Some((number * 2, number)),
            };
            let mut arrivals: Vec<_> = fates.iter().enumerate().filter_map(place).collect();
            arrivals.sort_unstable();
            let numbers: Vec<_> = arrivals
                .iter()
                .map(|(_, number)| u16::try_from(*number).expect("few"))
                .collect();
            let found = of_arrivals(&numbers);

            let mut pattern = LossPattern::default();
            for number in 0..fates.len() {
                pattern.record(!numbers.contains(&u16::try_from(number).unwrap()));
            }
            prop_assert_eq!((found.lost, found.periods), (pattern.lost, pattern.periods));
            prop_assert_eq!(found.ratio(), pattern.loss_ratio());
            let bursts = pattern.burst_ratio().unwrap_or(1.0);
            prop_assert!((found.burst_ratio() - bursts).abs() < 1e-12);
        }
    }

    #[test]
    fn late_packets_count_as_impaired() {
        let mut impairment = Impairment { expected: 10, ..Impairment::default() };
        impairment.record_too_late(false);
        impairment.record_too_late(true);
        assert_eq!(impairment.ratio(), Some(0.2));
        assert!((impairment.burst_ratio() - 1.6).abs() < 1e-12);
        assert_eq!(Impairment::default().ratio(), None);
    }

    #[test]
    fn certain_losses_have_one_severity() {
        let of = Impairment { expected: 100, lost: 6, periods: 2, ..Impairment::default() };
        let severity = LossSeverity { ratio: 0.06, burst_ratio: of.burst_ratio() };
        assert_eq!(of.bounds(ImpairmentUncertainty::default()), Some([severity; 2]));
        assert_eq!(Impairment::default().bounds(ImpairmentUncertainty::default()), None);
    }

    proptest! {
        #[test]
        fn true_severity_is_within_the_bounds(
            expected in 1..60u64, late in 0..9u64, losses in [0..60u64, 0..60, 0..60],
            runs in [0..30u64, 0..30, 0..30],
        ) {
            let [mut losses, mut runs] = [losses, runs];
            losses.sort_unstable();
            runs.sort_unstable();
            let losses = losses.map(|lost| lost.min(expected.saturating_sub(late)));
            let [late, late_periods] = [late.min(expected), late.min(expected).div_ceil(2)];
            let impairment =
                |lost, periods| Impairment { expected, lost, periods, late, late_periods };
            let uncertainty = ImpairmentUncertainty {
                lost: Uncertainty::of(losses[1], losses[0], losses[2]),
                periods: Uncertainty::of(runs[1], runs[0], runs[2]),
            };
            let found = impairment(losses[1], runs[1]).bounds(uncertainty).unwrap();
            for (lost, periods) in (losses[0]..=losses[2])
                .flat_map(|lost| (runs[0]..=runs[2]).map(move |periods| (lost, periods)))
            {
                let truth = impairment(lost, periods);
                let (ratio, burst) = (truth.ratio().unwrap(), truth.burst_ratio().max(1.0));
                let [min, max] = found;
                prop_assert!(min.ratio <= ratio && ratio <= max.ratio, "{:?} {:?}", truth, found);
                let [low, high] = [min, max].map(|severity| severity.burst_ratio.max(1.0));
                prop_assert!(low <= burst + 1e-9 && burst <= high + 1e-9, "{:?} {:?}", truth, found);
            }
        }
    }
}
