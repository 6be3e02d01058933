//! Results of consecutive packets: raw results that are small enough to store.

use serde::{Deserialize, Serialize};

use super::bed::Measured;
use crate::experiment::{deviation, mean};
use wirestamp_metrics::numeric::nearest_rank_per_mille;
use wirestamp_report::format::{length, real};

/// Some consecutive packets. A run consists of blocks; values of the entire run are repeated in each block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    /// The number of its first packet, from 0.
    pub(crate) first: u64,
    /// Packets that were sent.
    pub(crate) sent: u64,
    /// Of those, packets that both taps saw.
    pub(crate) measured: u64,
    /// The mean delay that the taps measured, in nanoseconds; none if they measured none.
    pub(crate) delay_ns: Option<f64>,
    /// Its standard deviation; none of fewer than two packets.
    pub(crate) delay_deviation_ns: Option<f64>,
    /// Its median, which interruptions of the machine hardly affect.
    pub(crate) delay_median_ns: Option<f64>,
    /// The mean delay of the same packets by the sender.
    pub(crate) truth_ns: Option<f64>,
    /// Mean of measured minus true delay.
    pub(crate) error_ns: Option<f64>,
    /// Its standard deviation.
    pub(crate) error_deviation_ns: Option<f64>,
    /// Its median.
    pub(crate) error_median_ns: Option<f64>,
    /// Min error.
    pub(crate) error_least_ns: Option<f64>,
    /// Max error.
    pub(crate) error_most_ns: Option<f64>,
    /// How long the run sent, in seconds.
    pub(crate) seconds: f64,
    /// Replicas that both captures lost in the run, by their ledgers.
    pub(crate) captures_lost: u64,
    /// Replicas that the interfaces dropped.
    pub(crate) interfaces_dropped: u64,
    /// Replicas that were sent and not seen, and that no counter includes.
    pub(crate) unexplained: u64,
    /// Replicas that the kernel stamped later than it should.
    pub(crate) stamped_late: u64,
    /// The error in the run that one packet in a thousand is below; none in older results.
    #[serde(default)]
    pub(crate) run_error_p001_ns: Option<f64>,
    /// The error in the run that one packet in a thousand is above; none in older results.
    #[serde(default)]
    pub(crate) run_error_p999_ns: Option<f64>,
}

impl Block {
    /// The packets of a run in blocks of at most `packets`.
    pub(crate) fn all(measured: &Measured, packets: usize) -> Vec<Self> {
        let chunks = measured.packets.chunks(packets.max(1));
        let [run_error_p001_ns, run_error_p999_ns] = error_percentiles(measured);
        let block = |first: &mut u64, chunk: &[(f64, Option<f64>)]| {
            let block = Self::of(*first, chunk, measured);
            let block = Self { run_error_p001_ns, run_error_p999_ns, ..block };
            *first += block.sent;
            Some(block)
        };
        chunks.scan(0, block).collect()
    }

    fn of(first: u64, packets: &[(f64, Option<f64>)], run: &Measured) -> Self {
        let both = packets.iter().filter_map(|(truth, delay)| Some((*truth, (*delay)?)));
        let (truths, delays): (Vec<_>, Vec<_>) = both.unzip();
        let errors = truths.iter().zip(&delays).map(|(truth, delay)| delay - truth);
        let errors: Vec<_> = errors.collect();
        Self {
            first,
            sent: length(packets),
            measured: length(&delays),
            delay_ns: mean(&delays),
            delay_deviation_ns: deviation(&delays),
            delay_median_ns: median(&delays),
            truth_ns: mean(&truths),
            error_ns: mean(&errors),
            error_deviation_ns: deviation(&errors),
            error_median_ns: median(&errors),
            error_least_ns: errors.iter().copied().reduce(f64::min),
            error_most_ns: errors.iter().copied().reduce(f64::max),
            seconds: run.seconds,
            captures_lost: run.losses.captures,
            interfaces_dropped: run.losses.interfaces,
            unexplained: run.losses.unexplained,
            stamped_late: run.losses.stamped_late,
            run_error_p001_ns: None,
            run_error_p999_ns: None,
        }
    }
}

/// The errors of a run that 0.1 % and 99.9 % of its measured packets do not exceed.
fn error_percentiles(run: &Measured) -> [Option<f64>; 2] {
    let errors = run.packets.iter().filter_map(|(truth, delay)| Some((*delay)? - truth));
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_unstable_by(f64::total_cmp);
    [1, 999].map(|per_mille| {
        let rank = nearest_rank_per_mille(per_mille, length(&errors)).max(1) - 1;
        usize::try_from(rank).ok().and_then(|rank| errors.get(rank).copied())
    })
}

/// The median, the larger of two in the middle; none of no values.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Mean and deviation of a value over several blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    count: f64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Moments {
    /// The moments of all measured packets, from the mean and the deviation of each block.
    pub(crate) fn of(
        blocks: &[Block],
        of: impl Fn(&Block) -> (Option<f64>, Option<f64>),
    ) -> Option<Self> {
        let parts = blocks.iter().filter_map(|block| {
            let (mean, deviation) = of(block);
            let count = real(block.measured);
            let squares = deviation.unwrap_or(0.0).powi(2) * (count - 1.0).max(0.0);
            Some(Self { count, mean: mean?, squares })
        });
        parts.reduce(Self::with)
    }

    /// Of two sets together (Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance",
    /// 1983, formula 2.1).
    fn with(self, other: Self) -> Self {
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        Self {
            count,
            mean: self.mean + apart * other.count / count,
            squares: self.squares
                + other.squares
                + apart.powi(2) * self.count * other.count / count,
        }
    }

    /// The mean of all.
    pub(crate) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of all; none of fewer than two.
    pub(crate) fn deviation(&self) -> Option<f64> {
        (self.count > 1.0).then(|| (self.squares / (self.count - 1.0)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::bed::Losses;

    fn run(delays: &[Option<f64>]) -> Measured {
        let packets = delays.iter().map(|delay| (100.0, *delay)).collect();
        Measured { packets, seconds: 1.0, losses: Losses::default() }
    }

    #[test]
    fn blocks_together_have_the_mean_and_the_deviation_of_all_packets() {
        let delays: Vec<_> = (0..1000_u32).map(|n| f64::from(n * 7919 % 1009)).collect();
        let lossy: Vec<_> =
            delays.iter().enumerate().map(|(n, delay)| (n % 3 > 0).then_some(*delay)).collect();
        let blocks = Block::all(&run(&lossy), 64);
        assert_eq!((blocks.len(), blocks[15].sent, blocks[1].first), (16, 40, 64));
        let found = Moments::of(&blocks, |b| (b.delay_ns, b.delay_deviation_ns)).unwrap();
        let measured: Vec<_> = lossy.into_iter().flatten().collect();
        assert_eq!(blocks.iter().map(|block| block.measured).sum::<u64>(), length(&measured));
        assert!((found.mean() - mean(&measured).unwrap()).abs() < 1e-9);
        assert!((found.deviation().unwrap() - deviation(&measured).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn the_error_is_what_was_measured_less_the_truth() {
        let delays = [Some(106.0), None, Some(97.0), Some(100.0)];
        let [block] = Block::all(&run(&delays), 10).try_into().unwrap();
        assert_eq!((block.sent, block.measured), (4, 3));
        assert_eq!((block.error_ns, block.error_median_ns), (Some(1.0), Some(0.0)));
        assert_eq!((block.error_least_ns, block.error_most_ns), (Some(-3.0), Some(6.0)));
    }

    #[test]
    fn percentiles_are_those_of_the_whole_run() {
        let delays: Vec<_> =
            (0..2000_u32).map(|n| Some(100.0 + f64::from(n * 7919 % 2000))).collect();
        let blocks = Block::all(&run(&delays), 500);
        let percentiles = |block: &Block| (block.run_error_p001_ns, block.run_error_p999_ns);
        assert!(blocks.iter().all(|block| percentiles(block) == (Some(1.0), Some(1997.0))));
        assert_eq!(percentiles(&Block::all(&run(&[None]), 1)[0]), (None, None));
    }

    #[test]
    fn a_block_that_measured_nothing_has_no_numbers() {
        let blocks = Block::all(&run(&[None, None]), 1);
        assert_eq!(Moments::of(&blocks, |b| (b.delay_ns, b.delay_deviation_ns)), None);
        assert_eq!(blocks[0].error_most_ns, None);
    }
}
