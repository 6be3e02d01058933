//! Axes whose ticks fall on round numbers.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::Ranged;

use super::format::unit;

/// Max ticks of an axis.
const MOST_TICKS: usize = 40;

/// An axis of a figure, in the unit it is labelled with.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Quantity and unit of the axis.
    pub label: String,
    /// From the first value shown to the last; never empty.
    pub range: Range<f64>,
    /// The labelled values, each with its label.
    pub ticks: Vec<(f64, String)>,
    /// Length of one axis unit in the unit of the data.
    pub scale: f64,
}

impl Axis {
    /// An axis of durations given in nanoseconds, with about `ticks` ticks.
    pub fn of_durations(what: &str, ns: Range<f64>, ticks: f64) -> Self {
        let (name, scale) = unit(ns.start.abs().max(ns.end.abs()));
        let range = widened(ns.start / scale..ns.end / scale);
        let (ticks, decimals) = round_ticks(&range, ticks);
        let ticks = ticks.into_iter().map(|tick| (tick, number(tick, decimals))).collect();
        Self { label: format!("{what} ({name})"), range, ticks, scale }
    }

    /// An axis of counts from 0 to `most`.
    pub fn of_counts(what: &str, most: f64) -> Self {
        let range = 0.0..most.max(1.0) * 1.08;
        // Counts are integers.
        let (ticks, _) = round_ticks(&range, 4.0);
        let whole = ticks.into_iter().filter(|tick| tick.fract() == 0.0);
        let ticks = whole.map(|tick| (tick, number(tick, 0))).collect();
        Self { label: what.to_owned(), range, ticks, scale: 1.0 }
    }

    /// A logarithmic axis of counts up to `most`. Its values are decimal logarithms. It begins at a count of one half,
    /// so that a single packet is visible.
    pub fn of_counts_by_decade(what: &str, most: f64) -> Self {
        let top = most.max(1.0).log10();
        let decades = (0..MOST_TICKS).scan(0.0, |decade, _| {
            let this = *decade;
            *decade += 1.0;
            Some(this)
        });
        let ticks = decades
            .take_while(|decade| *decade <= top)
            .map(|decade| (decade, number(10_f64.powf(decade), 0)))
            .collect();
        Self { label: format!("{what}, log scale"), range: -0.3..top + 0.12, ticks, scale: 1.0 }
    }

    /// A logarithmic axis of durations given in nanoseconds, from the decade of the min to that of the max; durations
    /// below 1 ns are placed at 1 ns. Its values are decimal logarithms of nanoseconds ([`Axis::decade`]).
    pub fn of_durations_by_decade(what: &str, ns: Range<f64>) -> Self {
        let first = Self::decade(ns.start).floor();
        let range = first..Self::decade(ns.end).ceil().max(first + 1.0);
        let (ticks, _) = round_ticks(&range, range.end - range.start);
        let label = |decade: f64| {
            // A power of ten may be off by a rounding error.
            let ns = 10_f64.powf(decade);
            let (name, length) = unit(ns * (1.0 + 1e-9));
            (decade, format!("{} {name}", number(ns / length, 0)))
        };
        let ticks = ticks.into_iter().map(label).collect();
        Self { label: format!("{what}, log scale"), range, ticks, scale: 1.0 }
    }

    /// An axis of numbers without a unit, with about `ticks` ticks.
    pub fn of_numbers(what: &str, range: Range<f64>, ticks: f64) -> Self {
        let range = widened(range);
        let (ticks, decimals) = round_ticks(&range, ticks);
        let ticks = ticks.into_iter().map(|tick| (tick, number(tick, decimals))).collect();
        Self { label: what.to_owned(), range, ticks, scale: 1.0 }
    }

    /// A logarithmic axis of shares, from the decade of the min to 100 %. Its values are decimal logarithms.
    pub fn of_shares_by_decade(what: &str, least: f64) -> Self {
        let first = least.clamp(1e-9, 0.1).log10().floor();
        let (ticks, _) = round_ticks(&(first..0.0), -first);
        let label = |decade: f64| {
            let percent = 10_f64.powf(decade + 2.0);
            // 0.1 % has one decimal, 0.01 % two.
            let decimals =
                (0_u8..7).take_while(|places| decade + f64::from(*places) < -2.5).count();
            (decade, format!("{} %", number(percent, decimals)))
        };
        let ticks = ticks.into_iter().map(label).collect();
        Self { label: format!("{what}, log scale"), range: first..0.1, ticks, scale: 1.0 }
    }

    /// Position of a duration in nanoseconds on a logarithmic axis. Durations below 1 ns are placed at 1 ns.
    pub fn decade(ns: f64) -> f64 {
        ns.max(1.0).log10()
    }

    /// An axis of names, each half-way between one whole number and the next.
    pub fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let middles = (0..MOST_TICKS).scan(0.5, |middle, _| {
            let this = *middle;
            *middle += 1.0;
            Some(this)
        });
        let ticks: Vec<_> = middles.zip(names).map(|(at, name)| (at, name.to_owned())).collect();
        let end = ticks.last().map_or(1.0, |(at, _)| at + 0.5);
        Self { label: String::new(), range: 0.0..end, ticks, scale: 1.0 }
    }

    /// Position of a data value on the axis.
    pub fn at(&self, value: f64) -> f64 {
        value / self.scale
    }
}

/// Uses the ticks of the axis instead of those of the library.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, pixels)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|(tick, _)| *tick).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let is_it = |(tick, _): &&(f64, String)| tick.total_cmp(value).is_eq();
        self.ticks.iter().find(is_it).map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `value`, which is positive.
pub fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    // The logarithm may have a rounding error. Then the next power of ten is the result.
    [1.0, 2.0, 5.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|v| *v >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Ticks at multiples of a round step, about `wanted` of them, and the decimals they need.
fn round_ticks(range: &Range<f64>, wanted: f64) -> (Vec<f64>, usize) {
    let step = round_up((range.end - range.start) / wanted);
    let first = (range.start / step).ceil();
    let multiples = (0..MOST_TICKS).scan(first, |multiple, _| {
        let this = *multiple;
        *multiple += 1.0;
        Some(this)
    });
    // Adding 0.0 turns a negative zero into zero.
    let ticks = multiples.map(|multiple| multiple * step + 0.0);
    let ticks = ticks.take_while(|tick| *tick <= range.end + step * 1e-9).collect();
    let is_whole = |decimals: &usize| {
        let mut scaled = step;
        (0..*decimals).for_each(|_| scaled *= 10.0);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    };
    (ticks, (0..9).find(is_whole).unwrap_or(9))
}

/// The range, or a small range around it if it is empty: a figure cannot show an axis of zero width.
fn widened(range: Range<f64>) -> Range<f64> {
    let centre = f64::midpoint(range.start, range.end);
    let least = (centre.abs() * 1e-9).max(1e-9);
    if range.end - range.start >= least { range } else { centre - least..centre + least }
}

/// A tick's label, with a true minus sign.
fn number(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}").replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_fall_on_round_numbers_of_the_unit() {
        let axis = Axis::of_durations("delay", 0.0..41.3e6, 5.0);
        assert_eq!(axis.label, "delay (ms)");
        assert_eq!(labels(&axis), ["0", "10", "20", "30", "40"]);
        let axis = Axis::of_durations("gap", 19.985e6..20.015e6, 4.0);
        assert_eq!(labels(&axis), ["19.99", "20.00", "20.01"]);
    }

    #[test]
    fn negative_values_have_ticks_and_a_plain_zero() {
        let axis = Axis::of_durations("delay", -1500.0..900.0, 5.0);
        assert_eq!(labels(&axis), ["\u{2212}1.5", "\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5"]);
    }

    #[test]
    fn an_axis_of_no_width_is_given_some() {
        for value in [0.0, 5.0, -3e9, 9.2e18] {
            let axis = Axis::of_durations("delay", value..value, 5.0);
            assert!(axis.range.start < axis.range.end, "{value}");
            assert!(axis.ticks.len() <= MOST_TICKS, "{value}");
        }
    }

    #[test]
    fn counts_have_no_halves_and_decades_are_whole() {
        assert_eq!(labels(&Axis::of_counts("packets", 1.0)), ["0", "1"]);
        let axis = Axis::of_counts_by_decade("packets", 2500.0);
        assert_eq!(labels(&axis), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn decades_of_durations_are_named_in_their_units() {
        let axis = Axis::of_durations_by_decade("cost", 9.3..230_000.0);
        assert_eq!(labels(&axis), ["1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(Axis::decade(0.0).to_bits(), 0.0_f64.to_bits());
        for ns in [0.0, 100.0, f64::NAN] {
            let axis = Axis::of_durations_by_decade("cost", ns..ns);
            assert!(axis.range.start < axis.range.end && axis.ticks.len() >= 2, "{ns}");
        }
    }

    #[test]
    fn shares_are_percents_of_the_whole_by_decade() {
        let axis = Axis::of_shares_by_decade("packets", 0.0003);
        assert_eq!(labels(&axis), ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]);
        assert_eq!(labels(&Axis::of_shares_by_decade("packets", 1.0)), ["10 %", "100 %"]);
        assert!(Axis::of_shares_by_decade("packets", 0.0).ticks.len() <= MOST_TICKS);
        let axis = Axis::of_numbers("correlation", -0.3..1.0, 5.0);
        assert_eq!(labels(&axis), ["0.0", "0.5", "1.0"]);
    }

    #[test]
    fn names_stand_in_the_middle_of_their_places() {
        let axis = Axis::of_names(["TSC", "OS"].into_iter());
        assert_eq!((axis.range, axis.ticks[1].0), (0.0..2.0, 1.5));
    }

    #[test]
    fn rounding_up_goes_to_one_two_or_five() {
        for (value, round) in [(1.0, 1.0), (1.1, 2.0), (0.03, 0.05), (501.0, 1000.0)] {
            assert!((round_up(value) / round - 1.0).abs() < 1e-9, "{value}");
        }
    }
}
