//! What a read of a source costs, and how evenly.

use super::RawSource;
use crate::ratio::approx;

/// Reads in a row: a millisecond of an HPET, of which a virtual one may take ten.
const READS: usize = 1_000;

/// One step in so many is taken for a peak: the reader was interrupted. They would make up most of
/// the deviation (Fedotova and Siemens, section 5, filters them too, without saying how).
const PEAKS: usize = 50;

/// Nanoseconds from one read to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) mean_ns: f64,
    pub(crate) deviation_ns: f64,
}

impl Cost {
    /// Measured by the source itself, whose ticks take `tick_ns` each.
    pub(crate) fn of(source: impl RawSource, tick_ns: f64) -> Self {
        let mut reads = vec![0; READS];
        reads.fill_with(|| source.read());
        let steps = reads.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        Self::of_steps(steps.map(|step| approx(step) * tick_ns).collect())
    }

    /// Mean and standard deviation of what is left when the peaks are gone; zero of nothing.
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
    fn an_interruption_is_in_neither_the_mean_nor_the_deviation() {
        let mut steps = vec![20.0; 99];
        steps.insert(50, 1e6);
        assert_eq!(Cost::of_steps(steps), Cost { mean_ns: 20.0, deviation_ns: 0.0 });
    }

    #[test]
    fn an_even_spread_is_kept() {
        let cost = Cost::of_steps(vec![10.0, 30.0, 10.0, 30.0]);
        assert_eq!(cost, Cost { mean_ns: 20.0, deviation_ns: 10.0 });
        assert_eq!(Cost::of_steps(Vec::new()), Cost { mean_ns: 0.0, deviation_ns: 0.0 });
    }
}
