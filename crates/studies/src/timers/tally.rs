//! Costs of reads, counted by size, and what is computed from the counts.
//!
//! A cost is a difference of two readings of one clock, so it is a whole number of that clock's
//! ticks, and mostly a small one. Counting each size keeps every read of a run of any length, and
//! mean, deviation, percentiles and filter are exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
pub(super) use wirestamp_metrics::numeric::count_to_f64 as real;
use wirestamp_metrics::numeric::nearest_rank_per_mille;

/// Costs below this number of ticks are counted in a table, the others in a map: 1.5 us of a TSC and much
/// more of slower counters, so the map holds mostly interruptions.
const TABLE: u16 = 4096;

/// How many reads had which cost, in ticks.
#[derive(Clone, Debug)]
pub(super) struct CostHistogram {
    low: Vec<u64>,
    high: BTreeMap<u64, u64>,
}

impl Default for CostHistogram {
    fn default() -> Self {
        Self { low: vec![0; TABLE.into()], high: BTreeMap::new() }
    }
}

impl CostHistogram {
    /// Counts a cost of `ticks`.
    pub(super) fn record(&mut self, ticks: u64) {
        self.add(ticks, 1);
    }

    /// Adds the counts of another tally of the same clock.
    pub(super) fn merge(&mut self, other: &Self) {
        other.sizes().for_each(|(ticks, count)| self.add(ticks, count));
    }

    /// Counts `count` costs of `ticks` each.
    pub(super) fn add(&mut self, ticks: u64, count: u64) {
        let index = usize::try_from(ticks).unwrap_or(usize::MAX);
        match self.low.get_mut(index) {
            Some(counted) => *counted = counted.saturating_add(count),
            None => {
                let counted = self.high.entry(ticks).or_default();
                *counted = counted.saturating_add(count);
            }
        }
    }

    /// Each size that occurred, in ticks and ascending, and how often.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let low = (0..).zip(&self.low).filter(|(_, count)| **count > 0);
        low.chain(self.high.iter().map(|(ticks, count)| (*ticks, count)))
            .map(|(ticks, count)| (ticks, *count))
    }

    /// The costs up to `limit` ticks in nanoseconds, for ticks of `tick_ns`; none if there are none.
    pub(super) fn cost(&self, limit: u64, tick_ns: f64) -> Option<Cost> {
        let sizes = self.sizes().take_while(|(ticks, _)| *ticks <= limit);
        let count = reads(sizes.clone());
        let (min, _) = sizes.clone().next()?;
        let (max, _) = sizes.clone().last()?;
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            sizes.clone().map(|(ticks, count)| of(real(ticks)) * real(count)).sum()
        };
        let mean = weighted(&|ticks| ticks) / real(count);
        let squares = weighted(&|ticks| (ticks - mean).powi(2));
        let share = |per_mille| real(quantile(sizes.clone(), count, per_mille)) * tick_ns;
        Some(Cost {
            count,
            min: real(min) * tick_ns,
            mean: mean * tick_ns,
            stddev: (squares / real(count.saturating_sub(1).max(1))).sqrt() * tick_ns,
            p50: share(500),
            p90: share(900),
            p99: share(990),
            p999: share(999),
            max: real(max) * tick_ns,
        })
    }

    /// The cost in ticks above which a read counts as a peak, for a clock that moves in steps of
    /// `step` ticks.
    ///
    /// The paper filters peaks (section 5) and does not state how. Here a peak is a cost above the outer fence
    /// of Tukey, "Exploratory Data Analysis" (1977), chapter 2: the upper quartile plus three times the
    /// distance between the quartiles. The distance is at least a step of the clock: smaller distances cannot
    /// be measured, and if all reads cost the same, the next step would count as a peak.
    pub(super) fn fence(&self, step: u64) -> u64 {
        let count = reads(self.sizes());
        let [lower, upper] = [250, 750].map(|share| quantile(self.sizes(), count, share));
        let distance = (upper - lower).max(step).max(1);
        upper.saturating_add(distance.saturating_mul(3))
    }

    /// The mean plus three standard deviations of all reads, in whole ticks: another threshold of a peak, which needs
    /// only the two figures that the paper gives.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and costs are not negative"
    )]
    pub(super) fn three_sigma(&self) -> u64 {
        self.cost(u64::MAX, 1.0).map_or(0, |all| (all.mean + 3.0 * all.stddev) as u64)
    }
}

/// Cost of reads, as a distribution; all but the count in nanoseconds. Serialises with these
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// How many reads there are.
    pub count: u64,
    /// The least cost.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the sample (with n - 1), formula (1) of the paper.
    pub stddev: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The greatest cost.
    pub max: f64,
}

/// How many reads there are of all sizes.
fn reads(sizes: impl Iterator<Item = (u64, u64)>) -> u64 {
    sizes.fold(0, |reads, (_, count)| reads.saturating_add(count))
}

/// The smallest size that at least `per_mille` of the `count` reads do not exceed; 0 of none.
fn quantile(sizes: impl Iterator<Item = (u64, u64)>, count: u64, per_mille: u16) -> u64 {
    let rank = nearest_rank_per_mille(per_mille, count);
    let mut below = 0_u64;
    for (ticks, count) in sizes {
        below = below.saturating_add(count);
        if below >= rank {
            return ticks;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(costs: impl IntoIterator<Item = u64>) -> CostHistogram {
        let mut tally = CostHistogram::default();
        costs.into_iter().for_each(|ticks| tally.record(ticks));
        tally
    }

    #[test]
    fn deviation_is_that_of_formula_1() {
        let cost = tally([2, 4, 4, 4, 5, 5, 7, 9]).cost(u64::MAX, 10.0).unwrap();
        // From the sum of squares, 232, and the mean, 5: 232 - 8 * 25.
        assert_eq!((cost.count, cost.mean, cost.p50), (8, 50.0, 40.0));
        assert!((cost.stddev - 10.0 * (32.0_f64 / 7.0).sqrt()).abs() < 1e-9);
        assert_eq!((cost.min, cost.max), (20.0, 90.0));
    }

    #[test]
    fn one_peak_spoils_the_mean_and_the_deviation_until_it_is_filtered() {
        let tally = tally((0..10_000).map(|i| if i == 5_000 { 4_000_000 } else { 38 + i % 2 }));
        let unfiltered = tally.cost(u64::MAX, 1.0).unwrap();
        assert!(unfiltered.mean > 400.0 && unfiltered.stddev > 30_000.0, "{unfiltered:?}");
        let filtered = tally.cost(tally.fence(1), 1.0).unwrap();
        assert_eq!(filtered.count, 9_999);
        assert!((filtered.mean - 38.5).abs() < 1e-3, "{filtered:?}");
        assert!((filtered.stddev - 0.5).abs() < 1e-3, "{filtered:?}");
        assert_eq!(tally.cost(tally.three_sigma(), 1.0), Some(filtered));
    }

    #[test]
    fn a_clock_of_coarse_steps_keeps_the_neighbouring_steps() {
        // Steps of 26 ticks, one read in a hundred of which takes two.
        let tally = tally((0..1_000).map(|i| if i % 100 == 0 { 52 } else { 26 }));
        assert_eq!(tally.fence(26), 26 + 3 * 26);
        assert_eq!(tally.cost(tally.fence(26), 1.0).unwrap().count, 1_000);
    }

    #[test]
    fn an_even_spread_has_no_peaks() {
        let tally = tally(500..700);
        assert_eq!(tally.cost(tally.fence(1), 1.0), tally.cost(u64::MAX, 1.0));
    }

    #[test]
    fn nothing_costs_nothing_and_one_read_does_not_deviate() {
        assert_eq!(CostHistogram::default().cost(u64::MAX, 1.0), None);
        assert_eq!(CostHistogram::default().fence(0), 3);
        assert_eq!((CostHistogram::default().three_sigma(), tally([7]).three_sigma()), (0, 7));
        let one = tally([7]).cost(u64::MAX, 1.0).unwrap();
        assert_eq!((one.mean, one.stddev, one.p999), (7.0, 0.0, 7.0));
    }

    #[test]
    fn parts_add_up_to_the_whole_whatever_their_size() {
        let costs = [0, 1, 4_095, 4_096, 1 << 40, u64::MAX];
        let mut merged = tally(costs[..3].iter().copied());
        merged.merge(&tally(costs[2..].iter().copied()));
        let sizes: Vec<_> = merged.sizes().collect();
        assert_eq!(sizes, [(0, 1), (1, 1), (4_095, 2), (4_096, 1), (1 << 40, 1), (u64::MAX, 1)]);
        assert_eq!(merged.fence(u64::MAX), u64::MAX);
    }

    #[test]
    fn percentiles_are_costs_not_exceeded_by_that_share() {
        let cost = tally(1..=1_000).cost(u64::MAX, 1.0).unwrap();
        let percentiles = [cost.p50, cost.p90, cost.p99, cost.p999];
        assert_eq!(percentiles, [500.0, 900.0, 990.0, 999.0]);
    }
}
