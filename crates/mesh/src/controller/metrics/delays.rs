//! Histogram of all delays of a task, for quantiles over any time.

use wirestamp_metrics::CompactHistogram;
use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_results::{Families, Labels, delay_bounds};

use crate::collector::Measured;

/// Upper bucket bounds within each power of ten (the E12 series of IEC 60063), for an error of quantiles of at most a
/// fifth.
const BOUNDS_PER_DECADE: [f64; 12] = [1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2];

/// Delays since the controller started.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    histogram: CompactHistogram,
    sum_ns: f64,
}

impl Delays {
    /// Adds the delays of these windows.
    pub(super) fn add(&mut self, windows: &[Measured], histogram: &CompactHistogram) {
        self.histogram.merge(histogram);
        let sums = windows.iter().filter_map(|it| it.delay_ns);
        self.sum_ns += sums.map(|delay| delay.mean * count_to_f64(delay.count)).sum::<f64>();
    }

    /// Values within 0.8 % of a bound may be in the bucket beside it: stored histograms have other bounds.
    pub(super) fn show(&self, labels: &Labels, families: &mut Families) {
        let mut buckets = self.histogram.buckets().peekable();
        let mut count = 0_u64;
        let bounds = delay_bounds(&BOUNDS_PER_DECADE).into_iter().map(|bound| {
            while let Some(bucket) = buckets.next_if(|it| it.middle() <= bound * 1e9) {
                count = count.saturating_add(bucket.count);
            }
            (bound, count)
        });
        let total = (self.histogram.count(), self.sum_ns / 1e9);
        families.add_histogram("wirestamp_task_delay_seconds", labels, bounds, total);
    }
}
