//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{CellFindings, JitterResult};
use super::flows::SOURCES;
use super::paper::{AMD_K6, PENTIUM_4, PUBLISHED, Published};
use crate::experiment::Estimate;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, SERIES};

/// The frames by which the report compares its probes.
const COMPARED: u16 = 300;

/// Something that Figures 3-12 and 3-13 show of each flow.
pub(super) struct Measure {
    /// The heading, and what is on the axis.
    pub(super) what: &'static str,
    /// A word for the figure's identity.
    pub(super) id: &'static str,
    here: fn(&CellFindings) -> Option<f64>,
    /// In microseconds.
    published: fn(&Published) -> f64,
}

/// The panels of the report's figures.
pub(super) const MEASURES: [Measure; 4] = [
    Measure {
        what: "error of the longest time",
        id: "max",
        here: |cell| size(cell.max_error),
        published: |row| row.max_us - row.period_us,
    },
    Measure {
        what: "error of the least time",
        id: "min",
        here: |cell| size(cell.min_error),
        published: |row| row.min_us - row.period_us,
    },
    Measure {
        what: "error of the mean time",
        id: "mean",
        here: |cell| size(cell.mean_error),
        published: |row| row.mean_error_us,
    },
    Measure {
        what: "jitter of the stamps",
        id: "jitter",
        here: |cell| size(cell.jitter),
        published: |row| row.deviation_us,
    },
];

fn size(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|estimate| estimate.mean.abs())
}

/// A line of a figure: from packet to packet, and a figure of that flow, both in nanoseconds.
type Line = Vec<(f64, f64)>;

/// Names of the lines of [`compared`], in the order of their colours.
pub(super) fn probes() -> Vec<String> {
    let here = SOURCES.iter().map(|source| format!("{source}, here"));
    here.chain([PENTIUM_4, AMD_K6].map(|probe| format!("{probe}, in the report"))).collect()
}

/// A measure of both sources and of both probes of the report, for frames of 300 bytes, as Figures 3-12
/// and 3-13; none if nothing was measured.
pub(super) fn compared(
    findings: &JitterResult,
    measure: &Measure,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let here = SOURCES.map(|source| {
        let source = source.to_string();
        let cells = findings.of_source(&source);
        let cells: Vec<_> = cells.filter(|cell| cell.frame_bytes == COMPARED).collect();
        line(&cells, measure)
    });
    if here.iter().all(Vec::is_empty) {
        return None;
    }
    let published = [PENTIUM_4, AMD_K6].map(|probe| {
        let rows = PUBLISHED.iter();
        let rows = rows.filter(|row| row.probe == probe && row.frame_bytes == COMPARED);
        rows.map(|row| (row.period_us * 1e3, (measure.published)(row).abs() * 1e3)).collect()
    });
    let lines: Vec<Line> = here.into_iter().chain(published).collect();
    Some(draw(&lines, &format!("{}, frames of {COMPARED} bytes", measure.what), size, id))
}

/// Sizes of frames that a figure has colours for: all, or every other one from the second on.
pub(super) fn sizes(findings: &JitterResult) -> Vec<u16> {
    let mut sizes: Vec<_> = findings.cells.iter().map(|cell| cell.frame_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > SERIES.len() {
        let odd = sizes.iter().skip(1).step_by(2).copied();
        sizes = sizes.iter().take(1).copied().chain(odd).collect();
    }
    sizes
}

/// A measure of one source for several sizes of frames, as Figure 3-10; none if nothing was measured.
pub(super) fn by_size(
    findings: &JitterResult,
    source: &str,
    measure: &Measure,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let of_size = |bytes: u16| {
        let cells = findings.of_source(source).filter(|cell| cell.frame_bytes == bytes);
        line(&cells.collect::<Vec<_>>(), measure)
    };
    let lines: Vec<_> = sizes(findings).into_iter().map(of_size).collect();
    let is_measured = lines.iter().any(|line| !line.is_empty());
    is_measured.then(|| draw(&lines, &format!("{}, {source}", measure.what), size, id))
}

fn line(cells: &[&CellFindings], measure: &Measure) -> Line {
    let point = |cell: &&CellFindings| Some((f64::from(cell.period_ns), (measure.here)(cell)?));
    cells.iter().filter_map(point).collect()
}

fn draw(lines: &[Line], what: &str, size: (u32, u32), id: &str) -> Figure {
    let span = |of: fn(&(f64, f64)) -> f64| {
        let values = || lines.iter().flatten().map(of);
        values().fold(f64::INFINITY, f64::min)..values().fold(1.0, f64::max)
    };
    let x = Axis::of_durations_by_decade("from packet to packet", span(|point| point.0));
    let y = Axis::of_durations_by_decade("size", span(|point| point.1));
    let caption = "Whatever its sign; what is below 1 ns is drawn at 1 ns.".to_owned();
    Frame { id, size, title: what.to_owned(), caption }.draw(&x, &y, |chart| {
        for (line, colour) in lines.iter().zip(SERIES.iter().cycle().skip(FIRST_SERIES)) {
            let points = line.iter().map(|(x, y)| (Axis::decade(*x), Axis::decade(*y)));
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            chart.draw_series(points.map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        Ok(())
    })
}
