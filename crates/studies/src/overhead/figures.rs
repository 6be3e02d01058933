//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{CellFindings, LAGS, OverheadResult};
use super::paper::{Method, Traffic};
use super::series::stray;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::density::{Density, middle, spanning};
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, INK, SERIES};
use wirestamp_report::format::{length, real};

/// The names of the methods, in the order of the colours.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Method::ALL.into_iter().map(Method::name)
}

/// At most one packet of a method in this many lies beyond the axis, so that outliers do not squeeze the others.
const ONE_BEYOND_IN: usize = 200;

/// The density points of the overheads with a pattern, as Figures 2 and 4; none if nothing was
/// measured.
pub(super) fn density(
    findings: &OverheadResult,
    pattern: Traffic,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let cells = cells(findings, pattern);
    let series: Vec<_> = cells.iter().map(|cell| cell.overheads.as_slice()).collect();
    let ends = series.iter().filter_map(|series| middle(series, 0, ONE_BEYOND_IN));
    let shown = ends.reduce(spanning)?;
    let what = "overhead of a stamp";
    let title = format!("Density points of the overhead of a stamp, {}", pattern.place()[2]);
    let density = Density { what, title, unit: "packets", series, shown, step: findings.step_ns };
    Some(density.draw(size, id))
}

/// Both methods with a pattern.
fn cells(findings: &OverheadResult, pattern: Traffic) -> Vec<&CellFindings> {
    Method::ALL.into_iter().filter_map(|method| findings.cell(method, pattern)).collect()
}

/// Auto-correlation of the overheads; `None` if nothing was measured.
pub(super) fn autocorrelation(
    findings: &OverheadResult,
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
        "1: the overhead of a packet determines that of a later one; 0: no relation. Without a relation, 95 % of \
         the values lie between the thin lines, ±{stray:.2}."
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
