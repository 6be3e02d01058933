//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{ActiveDelayResult, CellFindings};
use super::paper::FRAME;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, SERIES};

/// The delays whose differences are shown.
pub(super) const DELAYS: [&str; 3] = ["least", "mean", "longest"];

/// A line of a figure: the number of a test, and a difference in nanoseconds, whatever its sign.
type Line = Vec<(f64, f64)>;

/// Tests with frames as long as the paper's.
fn drawn(findings: &ActiveDelayResult) -> impl Iterator<Item = &CellFindings> {
    findings.cells.iter().filter(|cell| cell.frame == FRAME)
}

/// The names of the lines, in the order of their colours.
pub(super) fn names(findings: &ActiveDelayResult) -> Vec<String> {
    let here = drawn(findings).map(|cell| format!("here, {}", cell.name));
    here.chain(["the paper".to_owned()]).collect()
}

/// By how much active and passive measurement differ in one of [`DELAYS`], test by test as Figures 3-44 to
/// 3-46; none if nothing was measured.
pub(super) fn differences(
    findings: &ActiveDelayResult,
    delay: usize,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let numbered = |values: Vec<f64>| -> Line {
        let numbers = (1..).map(f64::from as fn(u32) -> f64);
        numbers.zip(values.into_iter().map(f64::abs)).filter(|at| at.1.is_finite()).collect()
    };
    let here = drawn(findings).map(|cell| {
        numbered(cell.differences_ns.iter().map(|differences| differences[delay]).collect())
    });
    let mut lines: Vec<Line> = here.collect();
    if lines.iter().all(Vec::is_empty) {
        return None;
    }
    let published = findings.published.iter().map(|test| test.differences_ms()[delay] * 1e6);
    lines.push(numbered(published.collect()));
    let points = || lines.iter().flatten();
    let most = points().map(|at| at.1).fold(1.0, f64::max);
    let least = points().map(|at| at.1).fold(most, f64::min);
    let end = points().map(|at| at.0).fold(1.0, f64::max);
    let x = Axis::of_numbers("number of the test", 0.0..end * 1.04, end);
    let what = format!("difference of the {} delay", DELAYS[delay]);
    let y = Axis::of_durations_by_decade(&what, least..most);
    let caption = "Whatever its sign; what is below 1 ns is drawn at 1 ns.".to_owned();
    let title = format!("{what}, active and passive");
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (line, colour) in lines.iter().zip(SERIES.iter().cycle().skip(FIRST_SERIES)) {
            let at = line.iter().map(|(number, ns)| (x.at(*number), Axis::decade(*ns)));
            chart.draw_series(LineSeries::new(at.clone(), colour.stroke_width(2)))?;
            chart.draw_series(at.map(|at| Circle::new(at, 4, colour.filled())))?;
        }
        Ok(())
    }))
}
