//! Between which bounds a figure lies where it cannot be known who lost a packet.

use super::impairment::Impairment;
use crate::distribution::count_to_f64;

/// By how much a count may be too great or too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    /// So many fewer it may be.
    pub(super) fewer: u64,
    /// So many more.
    pub(super) more: u64,
}

impl Doubt {
    /// That of a count of which it is known that it lies between two others.
    pub(super) fn of(count: u64, least: u64, most: u64) -> Self {
        Self { fewer: count.saturating_sub(least), more: most.saturating_sub(count) }
    }

    /// That of a count which is fewer by what the other is more.
    pub(super) fn mirrored(self) -> Self {
        Self { fewer: self.more, more: self.fewer }
    }

    /// That of a sum.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_add(other.fewer),
            more: self.more.saturating_add(other.more),
        }
    }

    /// That of a count of which two things are known.
    pub(super) fn and(self, other: Self) -> Self {
        Self { fewer: self.fewer.min(other.fewer), more: self.more.min(other.more) }
    }

    /// Without a part that has gone.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_sub(other.fewer),
            more: self.more.saturating_sub(other.more),
        }
    }

    /// The greater of both.
    pub(super) fn greatest(self) -> u64 {
        self.fewer.max(self.more)
    }
}

/// What is in doubt of an [`Impairment`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ImpairmentDoubt {
    /// The packets that the network lost.
    pub(super) lost: Doubt,
    /// The runs that they make.
    pub(super) periods: Doubt,
}

/// What an opinion comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Harm {
    /// The share of packets that cannot be played, 0 to 1.
    pub(super) ratio: f64,
    /// How bursty they are, at least 1 where it is worse than random.
    pub(super) burst_ratio: f64,
}

impl ImpairmentDoubt {
    /// That of both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { lost: self.lost.plus(other.lost), periods: self.periods.plus(other.periods) }
    }

    /// Without a part that has gone.
    pub(super) fn less(self, other: Self) -> Self {
        Self { lost: self.lost.less(other.lost), periods: self.periods.less(other.periods) }
    }

    /// The least and the greatest harm that there may be; none without packets.
    ///
    /// The effective equipment impairment (ITU-T G.107 equation 7-29) grows with the share of losses
    /// and with the burst ratio, so that the least of both bounds an opinion from above, and the
    /// greatest of both from below. Of n losses in p runs among e packets the burst ratio is n (1 - n / e) / p
    /// (section 7.5), which is greatest next to e / 2.
    pub(super) fn bounds(self, of: &Impairment) -> Option<[Harm; 2]> {
        let ratio = of.ratio()?;
        if self == Self::default() {
            return Some([Harm { ratio, burst_ratio: of.burst_ratio() }; 2]);
        }
        let impaired = |lost: u64| (lost + of.late).min(of.expected);
        let least = impaired(of.lost.saturating_sub(self.lost.fewer));
        let most = impaired(of.lost.saturating_add(self.lost.more));
        let runs = of.periods + of.late_periods;
        let fewest = runs.saturating_sub(self.periods.fewer).max(1);
        let expected = count_to_f64(of.expected);
        let arrived = |lost: u64| count_to_f64(lost) * (1.0 - count_to_f64(lost) / expected);
        let middle = (of.expected / 2).clamp(least, most);
        let smoothest =
            arrived(least).min(arrived(most)) / count_to_f64((runs + self.periods.more).max(1));
        let burstiest = [least, middle, most].map(arrived).into_iter().fold(0.0, f64::max)
            / count_to_f64(fewest);
        let harm = |lost, burst_ratio| Harm { ratio: count_to_f64(lost) / expected, burst_ratio };
        Some([harm(least, smoothest), harm(most, burstiest)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_in_doubt_has_one_harm() {
        let of = Impairment { expected: 100, lost: 6, periods: 2, ..Impairment::default() };
        let harm = Harm { ratio: 0.06, burst_ratio: of.burst_ratio() };
        assert_eq!(ImpairmentDoubt::default().bounds(&of), Some([harm; 2]));
        assert_eq!(ImpairmentDoubt::default().bounds(&Impairment::default()), None);
    }

    proptest! {
        #[test]
        fn whatever_the_truth_is_its_harm_is_between_the_bounds(
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
            let in_doubt = ImpairmentDoubt {
                lost: Doubt::of(losses[1], losses[0], losses[2]),
                periods: Doubt::of(runs[1], runs[0], runs[2]),
            };
            let found = in_doubt.bounds(&impairment(losses[1], runs[1])).unwrap();
            for (lost, periods) in (losses[0]..=losses[2])
                .flat_map(|lost| (runs[0]..=runs[2]).map(move |periods| (lost, periods)))
            {
                let truth = impairment(lost, periods);
                let (ratio, burst) = (truth.ratio().unwrap(), truth.burst_ratio().max(1.0));
                let [least, most] = found;
                prop_assert!(least.ratio <= ratio && ratio <= most.ratio, "{:?} {:?}", truth, found);
                let [low, high] = [least, most].map(|harm| harm.burst_ratio.max(1.0));
                prop_assert!(low <= burst + 1e-9 && burst <= high + 1e-9, "{:?} {:?}", truth, found);
            }
        }
    }
}
