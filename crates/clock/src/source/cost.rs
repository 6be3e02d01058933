//! Cost of a read of a source, and its deviation.

use super::raw::RawSource;
use crate::ratio::approx;

/// Consecutive reads: a millisecond of an HPET, ten of a virtual one.
const READS: usize = 1_000;

/// One step in this number counts as a peak, caused by an interruption of the reader. Peaks would dominate the
/// deviation (Fedotova and Siemens, section 5, filter them too, without the method).
const PEAKS: usize = 50;

/// Nanoseconds from one read to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) mean_ns: f64,
    pub(crate) deviation_ns: f64,
}

impl Cost {
    /// Measured by the source itself, with ticks of `tick_ns`.
    pub(crate) fn of(source: impl RawSource, tick_ns: f64) -> Self {
        let mut reads = vec![0; READS];
        reads.fill_with(|| source.read());
        let steps = reads.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        Self::of_steps(steps.map(|step| approx(step) * tick_ns).collect())
    }

    /// Mean and standard deviation without the peaks; zero without steps.
    fn of_steps(mut steps: Vec<f64>) -> Self {
        steps.sort_unstable_by(f64::total_cmp);
        steps.truncate(steps.len() - steps.len() / PEAKS);
        let count = approx(u64::try_from(steps.len().max(1)).unwrap_or(u64::MAX));
        let mean_ns = steps.iter().sum::<f64>() / count;
        let squares: f64 = steps.iter().map(|step| (step - mean_ns).powi(2)).sum();
        Self { mean_ns, deviation_ns: (squares / count).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruption_does_not_count() {
        let mut steps = vec![20.0; 99];
        steps.insert(50, 1e6);
        assert_eq!(Cost::of_steps(steps), Cost { mean_ns: 20.0, deviation_ns: 0.0 });
    }

    #[test]
    fn even_spread_counts_fully() {
        let cost = Cost::of_steps(vec![10.0, 30.0, 10.0, 30.0]);
        assert_eq!(cost, Cost { mean_ns: 20.0, deviation_ns: 10.0 });
        assert_eq!(Cost::of_steps(Vec::new()), Cost { mean_ns: 0.0, deviation_ns: 0.0 });
    }
}
