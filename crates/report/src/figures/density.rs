//! Density points: how often each value occurred, of several series on the same axes.

use std::collections::BTreeMap;
use std::ops::Range;

use plotters::prelude::*;

use super::frame::{FIRST_SERIES, Figure, Frame, SERIES, ticks};
use crate::axis::{Axis, round_up};
use crate::format::{duration, length, plural, real};

/// Max number of bins on the axis, of all series combined.
const BINS: f64 = 800.0;

/// Series of durations in nanoseconds.
pub struct Density<'a> {
    /// Quantity.
    pub what: &'a str,
    /// Description of the figure for screen readers.
    pub title: String,
    /// Unit of the counted things, in the plural.
    pub unit: &'a str,
    /// At least one, in the order of the colours.
    pub series: Vec<&'a [f64]>,
    /// The values that are on the axis.
    pub shown: Range<f64>,
    /// Resolution of the values: no bin is narrower.
    pub step: f64,
}

impl Density<'_> {
    /// Draws a point for each bin that is not empty.
    pub fn draw(&self, size: (u32, u32), id: &str) -> Figure {
        let Range { start, end } = self.shown;
        let step = self.step.max(1.0);
        let room = BINS / real(length(&self.series).max(1));
        let width = step * (round_up((end - start).max(step) / room) / step).ceil();
        let bins: Vec<_> =
            self.series.iter().map(|series| bins(series, width, &self.shown)).collect();
        let least = self.series.iter().map(|series| 1.0 / real(length(series).max(1)));
        let x = Axis::of_durations(self.what, start..end + width, ticks(size));
        let y = Axis::of_shares_by_decade(self.unit, least.fold(1.0, f64::min));
        let caption = self.caption(width, bins.iter().map(|(_, beyond)| beyond).sum());
        Frame { id, size, title: self.title.clone(), caption }.draw(&x, &y, |chart| {
            for ((bins, _), colour) in bins.iter().zip(SERIES.iter().cycle().skip(FIRST_SERIES)) {
                let points = bins.iter().map(|(at, share)| (x.at(*at), share.log10()));
                let foot = y.range.start;
                let bar =
                    |(at, top)| PathElement::new(vec![(at, foot), (at, top)], colour.mix(0.35));
                chart.draw_series(points.clone().map(bar))?;
                chart.draw_series(points.map(|point| Circle::new(point, 2, colour.filled())))?;
            }
            Ok(())
        })
    }

    /// How to read the figure.
    fn caption(&self, width: f64, beyond: u64) -> String {
        let bins = format!("Each point is a bin of {}", duration(width));
        if beyond == 0 {
            return format!("{bins}.");
        }
        let one = self.unit.trim_end_matches('s');
        format!(
            "{bins}; {} not on the axis.",
            plural(beyond, &format!("{one} is"), &format!("{} are", self.unit))
        )
    }
}

/// The middle of each bin that is not empty with its share of the values, and the number of values not on the axis.
fn bins(series: &[f64], width: f64, shown: &Range<f64>) -> (Vec<(f64, f64)>, u64) {
    let all = real(length(series));
    let mut counts = BTreeMap::<i64, u64>::new();
    let mut beyond = 0;
    for value in series {
        if *value < shown.start || *value > shown.end {
            beyond += 1;
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            let bin = (value / width).floor() as i64;
            *counts.entry(bin).or_default() += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bins")]
    let middle = |bin: i64| (bin as f64 + 0.5) * width;
    (counts.into_iter().map(|(bin, count)| (middle(bin), real(count) / all)).collect(), beyond)
}

/// Range of a series without the lowest 1/`below` and the highest 1/`above` of its values; 0 leaves none out. None
/// without values.
pub fn middle(series: &[f64], below: usize, above: usize) -> Option<Range<f64>> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let out = |one_in: usize| sorted.len().checked_div(one_in).unwrap_or(0);
    let last = sorted.len().checked_sub(1 + out(above))?;
    Some(*sorted.get(out(below).min(last))?..*sorted.get(last)?)
}

/// Smallest range that contains both.
pub fn spanning(a: Range<f64>, b: Range<f64>) -> Range<f64> {
    a.start.min(b.start)..a.end.max(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_leaves_out_what_is_rare_at_the_ends_that_are_asked_for() {
        let series: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        assert_eq!(middle(&series, 0, 200), Some(0.0..994.0));
        assert_eq!(middle(&series, 100, 100), Some(10.0..989.0));
        assert_eq!(middle(&[5.0], 1, 0), Some(5.0..5.0));
        assert_eq!((middle(&[5.0], 1, 1), middle(&[], 0, 0)), (None, None));
    }

    #[test]
    fn every_value_is_in_a_bin_or_beyond() {
        let (bins, beyond) = bins(&[0.0, 4.0, 9.0, 11.0, 250.0, -3.0], 10.0, &(0.0..100.0));
        assert_eq!(bins, [(5.0, 0.5), (15.0, 1.0 / 6.0)]);
        assert_eq!(beyond, 2);
    }
}
