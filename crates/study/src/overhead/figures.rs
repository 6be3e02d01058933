//! The figures of the experiment.

use std::collections::BTreeMap;

use plotters::prelude::*;

use super::findings::{CellFindings, Findings, LAGS};
use super::paper::{Method, Traffic};
use super::series::stray;
use crate::report::axis::{Axis, round_up};
use crate::report::figures::{FIRST_SERIES, Figure, Frame, INK, SERIES, ticks};
use crate::report::format::{duration, length, plural, real};

/// The names of the methods, in the order of the colours.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Method::ALL.into_iter().map(Method::name)
}

/// One packet in so many lies beyond the axis: outliers would squeeze all others into a corner.
const ONE_BEYOND_IN: usize = 200;

/// The bins that the axis has room for.
const BINS: f64 = 400.0;

/// The density points of the overheads with a pattern, as Figures 2 and 4; none if nothing was
/// measured.
pub(super) fn density(
    findings: &Findings,
    pattern: Traffic,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let cells = cells(findings, pattern);
    let (least, most) = shown(&cells)?;
    let step = findings.step_ns.max(1.0);
    let width = step * (round_up((most - least).max(step) / BINS) / step).ceil();
    let bins: Vec<_> = cells.iter().map(|cell| bins(cell, width, most)).collect();
    let beyond: u64 = bins.iter().map(|(_, beyond)| beyond).sum();
    let least_share = cells.iter().map(|cell| 1.0 / real(length(&cell.overheads).max(1)));
    let x = Axis::of_durations("overhead of a stamp", least..most + width, ticks(size));
    let y = Axis::of_shares_by_decade("packets", least_share.fold(1.0, f64::min));
    let caption = format!(
        "Each point is a bin of {}{}.",
        duration(width),
        if beyond == 0 {
            String::new()
        } else {
            format!("; {} not on the axis", plural(beyond, "longer overhead is", "longer ones are"))
        }
    );
    let title = format!("Density points of the overhead of a stamp, {}", pattern.place()[2]);
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for ((bins, _), colour) in bins.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            let points = bins.iter().map(|(at, share)| (x.at(*at), share.log10()));
            let foot = y.range.start;
            let bar = |(at, top)| PathElement::new(vec![(at, foot), (at, top)], colour.mix(0.35));
            chart.draw_series(points.clone().map(bar))?;
            chart.draw_series(points.map(|point| Circle::new(point, 2, colour.filled())))?;
        }
        Ok(())
    }))
}

/// Both methods with a pattern.
fn cells(findings: &Findings, pattern: Traffic) -> Vec<&CellFindings> {
    Method::ALL.into_iter().filter_map(|method| findings.cell(method, pattern)).collect()
}

/// From the least overhead to the longest that is on the axis.
fn shown(cells: &[&CellFindings]) -> Option<(f64, f64)> {
    let end = |cell: &&CellFindings| {
        let mut sorted = cell.overheads.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1 + sorted.len() / ONE_BEYOND_IN)?;
        Some((*sorted.first()?, *sorted.get(last)?))
    };
    let ends = cells.iter().filter_map(end);
    ends.reduce(|(least, most), (first, last)| (least.min(first), most.max(last)))
}

/// The middle of each bin that is not empty with the share of the packets in it, and how many packets
/// lie beyond `most`.
fn bins(cell: &CellFindings, width: f64, most: f64) -> (Vec<(f64, f64)>, u64) {
    let all = real(length(&cell.overheads));
    let mut counts = BTreeMap::<i64, u64>::new();
    let mut beyond = 0;
    for overhead in &cell.overheads {
        if *overhead > most {
            beyond += 1;
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            let bin = (overhead / width).floor() as i64;
            *counts.entry(bin).or_default() += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred bins")]
    let middle = |bin: i64| (bin as f64 + 0.5) * width;
    (counts.into_iter().map(|(bin, count)| (middle(bin), real(count) / all)).collect(), beyond)
}

/// What an overhead tells of those after it; none if nothing was measured.
pub(super) fn autocorrelation(
    findings: &Findings,
    pattern: Traffic,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let cells = cells(findings, pattern);
    let values = || cells.iter().flat_map(|cell| cell.autocorrelation.iter().copied());
    let least = values().reduce(f64::min)?.min(0.0);
    let packets = cells.iter().map(|cell| length(&cell.overheads)).min()?;
    let stray = stray(packets);
    let lags = real(u64::try_from(LAGS).unwrap_or(0));
    let x = Axis::of_numbers("packets later", 0.0..lags + 0.5, 10.0);
    let y = Axis::of_numbers("auto-correlation", (least - 0.05).min(-1.5 * stray)..1.0, 5.0);
    let caption = format!(
        "1 if an overhead tells that of a later packet, 0 if it tells nothing. Between the thin lines, \
         ±{stray:.2}, lies what chance makes of nothing, 95 times in 100."
    );
    let title = format!("Auto-correlation of the overhead, {}", pattern.place()[2]);
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for level in [-stray, stray] {
            let line = vec![(x.range.start, level), (x.range.end, level)];
            chart.draw_series([PathElement::new(line, INK)])?;
        }
        for (cell, colour) in cells.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            let lags = (1..).map(f64::from as fn(u32) -> f64);
            let points: Vec<_> = lags.zip(cell.autocorrelation.iter().copied()).collect();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            chart.draw_series(points.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        Ok(())
    }))
}
