//! Histograms: bins that suit the data, the same for all series of one figure.

use std::ops::Range;

use super::axis::round_up;
use super::format::{approximate, real};

/// Fewer bins hide the shape, more show the noise.
const FEWEST_BINS: f64 = 20.0;
const MOST_BINS: f64 = 120.0;

/// With fewer values than this, all of them are on the axis.
const FEWEST_TO_TRIM: u64 = 200;

/// One or more series counted in the same bins.
#[derive(Debug)]
pub(super) struct Histogram {
    /// The bins' borders in nanoseconds, ascending; bin `i` is from border `i` up to border `i+1`.
    pub(super) edges: Vec<f64>,
    /// For each series, how many of its values each bin holds.
    pub(super) counts: Vec<Vec<u64>>,
    /// How many values of all series lie outside the bins.
    pub(super) outside: u64,
    /// The smallest and the largest value of all series.
    pub(super) extremes: (i64, i64),
}

impl Histogram {
    /// Counts `series`; nothing if they hold no value.
    pub(super) fn of(series: &[&[i64]]) -> Option<Self> {
        let once = |values: &&[i64]| values.iter().map(|value| (*value, 1)).collect();
        Self::of_counted(&series.iter().map(once).collect::<Vec<_>>(), 0.0)
    }

    /// Counts series of values, each with how often it occurred. `resolution` is the relative resolution of the values:
    /// no bin is narrower than this share of the largest absolute value.
    pub(super) fn of_counted(series: &[Vec<(i64, u64)>], resolution: f64) -> Option<Self> {
        let mut values: Vec<_> = series.iter().flatten().copied().collect();
        values.sort_unstable();
        let extremes = (values.first()?.0, values.last()?.0);
        let sorted = Sorted::new(values);
        let largest = approximate(extremes.0).abs().max(approximate(extremes.1).abs());
        let edges = edges(&sorted, largest * resolution);
        let mut outside = 0;
        let counts = series.iter().map(|values| count(values, &edges, &mut outside)).collect();
        Some(Self { edges, counts, outside, extremes })
    }

    /// The width of a bin in nanoseconds.
    pub(super) fn width(&self) -> f64 {
        match self.edges[..] {
            [first, second, ..] => second - first,
            _ => 0.0,
        }
    }

    /// The count of the fullest bin.
    pub(super) fn most(&self) -> u64 {
        self.counts.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Whether the counts differ so much that small ones vanish on a linear axis.
    pub(super) fn spans_decades(&self) -> bool {
        let least = self.counts.iter().flatten().copied().filter(|count| *count > 0).min();
        least.is_some_and(|least| self.most() / least > 100)
    }
}

/// Values in ascending order, each with how often it occurred; at least one.
struct Sorted {
    values: Vec<(i64, u64)>,
    total: u64,
}

impl Sorted {
    fn new(values: Vec<(i64, u64)>) -> Self {
        let total = values.iter().map(|(_, count)| count).sum();
        Self { values, total }
    }

    /// The value at the fraction `numerator / denominator`.
    fn quantile(&self, numerator: u64, denominator: u64) -> f64 {
        let rank = u128::from(self.total.saturating_sub(1)) * u128::from(numerator)
            / u128::from(denominator);
        let mut counted = 0;
        let reached = self.values.iter().find(|(_, count)| {
            counted += u128::from(*count);
            counted > rank
        });
        reached.map_or(0.0, |(value, _)| approximate(*value))
    }
}

/// Borders of equal bins, each a round number of nanoseconds wide and at least `narrowest`.
///
/// The width is that of Freedman and Diaconis ("On the histogram as a density estimator", 1981):
/// twice the interquartile range over the cube root of the number of values, kept within 20 to 120
/// bins.
fn edges(sorted: &Sorted, narrowest: f64) -> Vec<f64> {
    let shown = shown(sorted);
    let span = shown.end - shown.start;
    let quartiles = sorted.quantile(3, 4) - sorted.quantile(1, 4);
    let advised = 2.0 * quartiles / real(sorted.total).cbrt();
    // Rounding widens by up to 2.5, and the ends of the range may add a bin each.
    let within = advised.clamp(span / (MOST_BINS - 2.0), span / (FEWEST_BINS * 2.5));
    let width = round_up(within.max(narrowest));
    let first = (shown.start / width).floor();
    let mut edges = Vec::new();
    let mut multiple = first;
    // The width limits the number of bins. This bound applies if rounding errors exceed that limit.
    while multiple - first <= MOST_BINS {
        edges.push(multiple * width);
        if multiple * width > shown.end {
            break;
        }
        multiple += 1.0;
    }
    edges
}

/// The range of values on the axis: all values, unless a few outliers would compress the others into a small part of
/// the figure.
fn shown(sorted: &Sorted) -> Range<f64> {
    let all = sorted.quantile(0, 1)..sorted.quantile(1, 1);
    let body = sorted.quantile(5, 1000)..sorted.quantile(995, 1000);
    let margin = (body.end - body.start) / 2.0;
    let trimmed = (body.start - margin).max(all.start)..(body.end + margin).min(all.end);
    let far_out = all.end - all.start > 4.0 * (trimmed.end - trimmed.start);
    let range = if sorted.total >= FEWEST_TO_TRIM && far_out { trimmed } else { all };
    // Equal values get bins around them, of a nanosecond or more.
    let centre = f64::midpoint(range.start, range.end);
    let least = (centre.abs() * 1e-3).max(50.0);
    if range.end - range.start >= least {
        range
    } else {
        centre - least / 2.0..centre + least / 2.0
    }
}

/// How many of `values` each bin holds; those in none are added to `outside`.
fn count(values: &[(i64, u64)], edges: &[f64], outside: &mut u64) -> Vec<u64> {
    let mut counts = vec![0; edges.len().saturating_sub(1)];
    for (value, times) in values {
        let value = approximate(*value);
        let bin = edges.partition_point(|edge| *edge <= value).checked_sub(1);
        match bin.and_then(|bin| counts.get_mut(bin)) {
            Some(count) => *count += times,
            None => *outside += times,
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(histogram: &Histogram) -> u64 {
        histogram.counts.iter().flatten().sum::<u64>() + histogram.outside
    }

    #[test]
    fn every_value_is_counted_once() {
        let rising: Vec<i64> = (0..1000).map(|i| i * 41_000 + i % 7).collect();
        let other = [-5_000_000, 60_000_000];
        let histogram = Histogram::of(&[&rising, &other]).unwrap();
        assert_eq!(total(&histogram), 1002);
        assert_eq!(histogram.counts.len(), 2);
        assert_eq!(histogram.extremes, (-5_000_000, 60_000_000));
    }

    #[test]
    fn bins_are_neither_too_few_nor_too_many() {
        let shapes: [Vec<i64>; 6] = [
            vec![7],
            vec![20_000_000; 500],
            vec![0, 1],
            (0..10_000).collect(),
            (0..10_000).map(|i| i * i * i).collect(),
            vec![i64::MIN, 0, i64::MAX],
        ];
        for values in shapes {
            let histogram = Histogram::of(&[&values]).unwrap();
            let bins = histogram.edges.len() - 1;
            assert!((20..=120).contains(&bins), "{bins} bins for {:?}", histogram.extremes);
            assert_eq!(total(&histogram), values.len() as u64);
            assert_eq!(histogram.outside, 0, "{:?}", histogram.extremes);
        }
    }

    #[test]
    fn equal_values_share_a_bin_in_the_middle() {
        let histogram = Histogram::of(&[&[20_000_000; 90]]).unwrap();
        assert_eq!(histogram.most(), 90);
        assert!(histogram.edges[0] < 20e6 && 20e6 < histogram.edges[histogram.edges.len() - 1]);
    }

    #[test]
    fn a_value_far_out_does_not_squeeze_the_others_but_is_counted() {
        let mut values: Vec<i64> = (0..1000).map(|i| 30_000 + i).collect();
        values.push(80_000_000);
        let histogram = Histogram::of(&[&values]).unwrap();
        assert_eq!(histogram.outside, 1);
        assert!(histogram.width() < 100.0, "{}", histogram.width());
        assert_eq!(histogram.extremes.1, 80_000_000);
    }

    #[test]
    fn counted_values_make_the_same_histogram_as_each_of_them() {
        let each: Vec<i64> = (0..1000).map(|i| 30_000 + i % 100 * 10).collect();
        let counted = (0..100).map(|i| (30_000 + i * 10, 10)).collect();
        let (each, counted) =
            (Histogram::of(&[&each]).unwrap(), Histogram::of_counted(&[counted], 0.0).unwrap());
        assert_eq!((each.edges, each.counts), (counted.edges, counted.counts));
        let coarse = Histogram::of_counted(&[vec![(1_000_000, 9), (1_001_000, 9)]], 1e-3).unwrap();
        assert!(coarse.width() >= 1000.0, "{}", coarse.width());
    }

    #[test]
    fn no_value_is_no_histogram() {
        assert!(Histogram::of(&[]).is_none());
        assert!(Histogram::of(&[&[], &[]]).is_none());
    }

    #[test]
    fn two_decades_of_counts_ask_for_a_logarithmic_axis() {
        let mut values = vec![1_000; 150];
        assert!(!Histogram::of(&[&values]).unwrap().spans_decades());
        values.push(2_000);
        assert!(Histogram::of(&[&values]).unwrap().spans_decades());
    }
}
