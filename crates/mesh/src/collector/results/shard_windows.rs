//! Windows of shards, and their merging: the window of all packets of a task.
//!
//! Counts, min, max and histograms of the merged window are exact. Means and standard deviations are, up to rounding.
//! Percentiles come from the histograms, unless all values are of one shard.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirestamp_metrics::{CompactHistogram, Counts};

use super::spreads::{merged, with_percentiles};
use super::{Histograms, Measured, Spread};
use crate::collector::NotSynchronised;

/// Results of a window, of the packets of a shard.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct ShardWindow {
    /// Begin of the window, in nanoseconds since 1970 (UTC).
    pub(crate) begin_ns: i64,
    /// Packet counts.
    pub(super) counts: Counts,
    /// One-way delays by the clocks as they were, also if these were not synchronised.
    pub(super) delay_ns: Option<Spread>,
    /// Delay variation from packet to packet.
    pub(super) variation_ns: Option<Spread>,
    /// Max error of the delays.
    pub(super) error_ns: Option<i64>,
    /// Why the error is not known.
    pub(super) not_synchronised: Option<NotSynchronised>,
    /// Whether a negative delay contradicts the stated clock errors.
    pub(super) contradicts_the_clocks: bool,
    /// Delays of synchronised clocks, and variations.
    pub(super) histograms: Histograms,
}

/// The windows of all packets, ordered by time, given those of each shard.
pub(crate) fn merge_shards(
    shards: impl IntoIterator<Item = ShardWindow>,
) -> impl Iterator<Item = Measured> {
    let mut windows = BTreeMap::<i64, Vec<ShardWindow>>::new();
    for window in shards {
        windows.entry(window.begin_ns).or_default().push(window);
    }
    windows.into_values().map(|shards| together(&shards).measured_of_shards())
}

/// The window of several shards that begin at the same time.
fn together(shards: &[ShardWindow]) -> ShardWindow {
    let mut all = ShardWindow::default();
    for it in shards {
        all.begin_ns = it.begin_ns;
        all.counts.add(&it.counts);
        all.error_ns = all.error_ns.max(it.error_ns);
        all.not_synchronised = all.not_synchronised.or(it.not_synchronised);
        all.contradicts_the_clocks |= it.contradicts_the_clocks;
        all.histograms.add(&it.histograms);
    }
    if all.not_synchronised.is_some() {
        all.error_ns = None;
    }
    let delays = shards.iter().map(|it| it.delay_ns);
    all.delay_ns = spread(delays, &all.histograms.delay);
    let variations = shards.iter().map(|it| it.variation_ns);
    all.variation_ns = spread(variations, &all.histograms.variation);
    all
}

/// Merged distribution. That of a single shard keeps its percentiles.
fn spread(
    shards: impl Iterator<Item = Option<Spread>>,
    histogram: &CompactHistogram,
) -> Option<Spread> {
    let known: Vec<_> = shards.flatten().collect();
    match &known[..] {
        [] => None,
        [only] => Some(*only),
        several => {
            let all = several.iter().copied().map(Some).reduce(merged).flatten()?;
            Some(with_percentiles(all, histogram))
        }
    }
}

impl ShardWindow {
    #[cfg(test)]
    pub(crate) fn histograms(&self) -> &Histograms {
        &self.histograms
    }

    /// The window as people see it.
    pub(super) fn measured(self) -> Measured {
        let Self { begin_ns, counts, delay_ns, variation_ns, error_ns, .. } = self;
        Measured {
            begin_ns,
            counts,
            above_minimum_ns: delay_ns.as_ref().map(Spread::above_minimum),
            delay_ns: delay_ns.filter(|_| self.not_synchronised.is_none()),
            variation_ns,
            error_ns,
            not_synchronised: self.not_synchronised,
            contradicts_the_clocks: self.contradicts_the_clocks,
            ..Measured::default()
        }
    }

    fn measured_of_shards(self) -> Measured {
        let Counts { undetermined_sent, undetermined_received, .. } = self.counts;
        let counts_are_bounds = undetermined_sent > 0 || undetermined_received > 0;
        Measured { counts_are_bounds, ..self.measured() }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;
    use wirestamp_metrics::Distribution;

    use super::*;

    fn window(begin_ns: i64, delays: &[i64], lost: u64) -> ShardWindow {
        let mut distribution = Distribution::new();
        delays.iter().for_each(|it| distribution.record(Span::from_nanos(*it)));
        let matched = delays.len() as u64;
        ShardWindow {
            begin_ns,
            counts: Counts { sent: matched + lost, matched, lost, ..Counts::default() },
            delay_ns: distribution.summary().as_ref().map(Spread::from),
            error_ns: Some(matched.cast_signed()),
            histograms: Histograms {
                delay: CompactHistogram::from(&distribution),
                ..Histograms::default()
            },
            ..ShardWindow::default()
        }
    }

    #[test]
    fn merged_window_is_that_of_all_packets() {
        let shards = [window(1, &[900, 40], 1), window(1, &[], 2), window(1, &[7, 3, 60_000], 0)];
        let [found] = merge_shards(shards).collect::<Vec<_>>().try_into().unwrap();
        let all = window(1, &[900, 40, 7, 3, 60_000], 3).measured();
        assert_eq!((found.counts, found.begin_ns), (all.counts, 1));
        assert_eq!(found.error_ns, Some(3));
        let [one, other] = [found.delay_ns, all.delay_ns].map(Option::unwrap);
        assert_eq!((one.count, one.min, one.p50, one.max), (5, 3, Some(40), 60_000));
        assert!((one.mean - other.mean).abs() < 1e-9 && (one.stddev - other.stddev).abs() < 1e-6);
        assert_eq!(found.above_minimum_ns.unwrap().max, 59_997);
        assert!(!found.counts_are_bounds);
    }

    #[test]
    fn windows_of_different_times_stay_apart() {
        let shards = [window(1, &[5], 0), window(3, &[6], 0), window(2, &[7], 0)];
        let found: Vec<_> = merge_shards(shards).collect();
        let percentiles: Vec<_> =
            found.iter().map(|it| (it.begin_ns, it.delay_ns.unwrap().p99)).collect();
        assert_eq!(percentiles, [(1, Some(5)), (2, Some(7)), (3, Some(6))]);
    }

    #[test]
    fn unsynchronised_shard_makes_the_delay_unknown() {
        let unknown = ShardWindow {
            error_ns: None,
            not_synchronised: Some(NotSynchronised::Second),
            ..window(1, &[9], 0)
        };
        let undetermined = Counts { undetermined_sent: 1, sent: 1, ..Counts::default() };
        let shards = [unknown, ShardWindow { counts: undetermined, ..window(1, &[20], 0) }];
        let [found] = merge_shards(shards).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((found.delay_ns, found.error_ns), (None, None));
        assert_eq!(found.not_synchronised, Some(NotSynchronised::Second));
        assert_eq!(found.above_minimum_ns.map(|it| (it.count, it.max)), Some((2, 11)));
        assert!(found.counts_are_bounds);
    }
}
