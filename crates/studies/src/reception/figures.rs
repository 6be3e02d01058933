//! The figures of the experiment.

use std::ops::Range;

use plotters::prelude::*;

use super::findings::{CellFindings, ReceptionResult, error, range_of_errors};
use super::paper::{FIGURE_2, FIGURES_5_AND_6, LOADS};
use crate::experiment::{Estimate, Runs, mean};
use crate::replicas::Block;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{Chart, Drawn, FIRST_SERIES, Figure, Frame, SERIES, ticks};
use wirestamp_report::format::{count, duration, real};

/// The techniques of the time series: what the paper draws, and stamps of the softIRQ.
pub(super) const SERIES_OF: [&str; 2] = ["ring:kernel", "xdp-pass:xdp"];
/// The sources of the technique whose main effects the paper draws.
pub(super) const RING: [&str; 2] = ["ring:kernel", "ring:raw"];

/// Max strokes of a series: as many as a narrow screen shows.
const STROKES: usize = 150;
/// Of this number of strokes, one may be longer than the axis at each end: the axis is not that of a single interruption.
const LONGER: usize = 50;

/// The errors of the runs that decide the claim on the fluctuation, one after the other, as Figure 2; none if nothing was
/// measured.
pub(super) fn over_time(runs: &Runs<Block>, size: (u32, u32), id: &str) -> Option<Figure> {
    let series = SERIES_OF.map(|technique| strokes(runs, technique));
    let all: Vec<_> = series.iter().flatten().collect();
    let range = all.iter().map(|it| it.errors.clone()).reduce(union)?;
    let packets = all.iter().map(|it| it.packets.end).reduce(f64::max)?;
    let cells = SERIES_OF.iter().filter_map(|technique| cell_of(runs, technique));
    let caption = format!(
        "All {} runs with {} bytes at {}, idle, that decide the claim on the fluctuation, one after the other. Each stroke \
         spans the errors of up to {} packets of a run in a row; the mark in it is their mean. Strokes are cut off at the \
         ends of the axis: the errors range from {} to {}.",
        cells.map(|cell| runs.of_cell(cell).count()).max()?,
        FIGURE_2.0,
        FIGURE_2.1,
        count(all.iter().map(|it| it.sent).max()?),
        duration(range.start),
        duration(range.end),
    );
    let x = Axis::of_numbers("packets (millions)", 0.0..packets, ticks(size));
    let y = Axis::of_durations("measured delay less the true one", usual_range(&all)?, 5.0);
    let title = "Error of the measured delay over time".to_owned();
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (strokes, colour) in series.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            draw_strokes(chart, strokes, *colour, &y)?;
        }
        Ok(())
    }))
}

/// Some packets in a row.
struct Stroke {
    sent: u64,
    /// Their place among the packets of all runs, in millions.
    packets: Range<f64>,
    errors: Range<f64>,
    mean: f64,
}

/// The range of most strokes.
fn usual_range(strokes: &[&Stroke]) -> Option<Range<f64>> {
    let (mut starts, mut ends): (Vec<_>, Vec<_>) =
        strokes.iter().map(|it| (it.errors.start, it.errors.end)).unzip();
    starts.sort_by(f64::total_cmp);
    ends.sort_by(|one, other| other.total_cmp(one));
    let longer = strokes.len() / LONGER;
    Some(*starts.get(longer)?..*ends.get(longer)?)
}

/// The cell of a technique under the conditions of Figure 2.
fn cell_of(runs: &Runs<Block>, technique: &str) -> Option<usize> {
    let (frame_bytes, speed) = (FIGURE_2.0.to_string(), FIGURE_2.1);
    let wanted = [technique, &frame_bytes, speed, LOADS[0]];
    runs.design.cells().iter().position(|cell| runs.design.levels(cell) == wanted)
}

/// The blocks of all runs of a technique under the conditions of Figure 2. Where there are many, a stroke has several of a run.
fn strokes(runs: &Runs<Block>, technique: &str) -> Vec<Stroke> {
    let Some(cell) = cell_of(runs, technique) else { return Vec::new() };
    let blocks: usize = runs.of_cell(cell).map(<[Block]>::len).sum();
    let blocks_of_a_stroke = blocks.div_ceil(STROKES).max(1);
    let parts = runs.of_cell(cell).flat_map(|run| run.chunks(blocks_of_a_stroke));
    let stroke = |begin: &mut f64, blocks: &[Block]| {
        let sent = blocks.iter().map(|block| block.sent).sum();
        let packets = *begin..*begin + real(sent) / 1e6;
        *begin = packets.end;
        let errors = range_of_errors(blocks).zip(error(blocks));
        Some(errors.map(|(errors, mean)| Stroke { sent, packets, errors, mean }))
    };
    parts.scan(0.0, stroke).flatten().collect()
}

fn draw_strokes(
    chart: &mut Chart<'_, '_>,
    strokes: &[Stroke],
    colour: RGBColor,
    y: &Axis,
) -> Drawn {
    let pale = colour.mix(0.45).stroke_width(2);
    let middle = |stroke: &Stroke| f64::midpoint(stroke.packets.start, stroke.packets.end);
    let on_axis = |error: f64| y.at(error).clamp(y.range.start, y.range.end);
    chart.draw_series(strokes.iter().map(|stroke| {
        let ends = [stroke.errors.start, stroke.errors.end];
        PathElement::new(ends.map(|end| (middle(stroke), on_axis(end))).to_vec(), pale)
    }))?;
    chart.draw_series(
        strokes
            .iter()
            .map(|stroke| Circle::new((middle(stroke), on_axis(stroke.mean)), 2, colour.filled())),
    )?;
    Ok(())
}

/// Deviation by level with the ring, as Figure 4; `None` if nothing was measured.
pub(super) fn main_effects(
    findings: &ReceptionResult,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let levels = levels(findings);
    let of = |technique: &str| -> Vec<Option<f64>> {
        levels
            .iter()
            .map(|(_, is_at)| mean_deviation(findings, technique, is_at.as_ref()))
            .collect()
    };
    let series = RING.map(of);
    let range = series.iter().flatten().flatten().map(|it| *it..*it).reduce(union)?;
    let x = Axis::of_names(levels.iter().map(|(name, _)| name.as_str()));
    let y = Axis::of_durations_by_decade("standard deviation", range);
    let caption = "Each point is the mean of all cells of that level, with the shared ring (mmap).";
    let title = "Main effects on the deviation of the error".to_owned();
    let frame = Frame { id, size, title, caption: caption.to_owned() };
    Some(frame.draw(&x, &y, |chart| {
        for (values, colour) in series.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            let points = values.iter().zip(&x.ticks);
            let points = points.filter_map(|(value, (at, _))| Some((*at, Axis::decade((*value)?))));
            chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?;
        }
        Ok(())
    }))
}

/// Whether a cell is at a level.
type IsAt = Box<dyn Fn(&CellFindings) -> bool>;

/// The levels of everything that is varied but the technique, by their names.
fn levels(findings: &ReceptionResult) -> Vec<(String, IsAt)> {
    let mut sizes: Vec<_> = findings.cells.iter().map(|cell| cell.conditions.frame_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut speeds: Vec<_> =
        findings.cells.iter().map(|cell| cell.conditions.speed.clone()).collect();
    speeds.sort_unstable();
    speeds.dedup();
    let sizes = sizes.into_iter().map(|size| -> (String, IsAt) {
        (format!("{size} B"), Box::new(move |cell| cell.conditions.frame_bytes == size))
    });
    let speeds = speeds.into_iter().rev().map(|speed| -> (String, IsAt) {
        (speed.clone(), Box::new(move |cell| cell.conditions.speed == speed))
    });
    let loads = [false, true].map(|stressed| -> (String, IsAt) {
        (
            LOADS[usize::from(stressed)].to_owned(),
            Box::new(move |cell| cell.conditions.stressed == stressed),
        )
    });
    sizes.chain(speeds).chain(loads).collect()
}

fn mean_deviation(
    findings: &ReceptionResult,
    technique: &str,
    is_at: &dyn Fn(&CellFindings) -> bool,
) -> Option<f64> {
    let cells =
        findings.cells.iter().filter(|cell| cell.conditions.technique == technique && is_at(cell));
    mean(&cells.filter_map(|cell| Some(cell.error_deviation_ns?.mean)).collect::<Vec<_>>())
}

/// Legend of the bars of a comparison, in the order of their colours.
pub(super) const BARS: [&str; 4] = [
    "stamped by the kernel, idle",
    "stamped by the kernel, stress",
    "stamped by the counter (raw), idle",
    "stamped by the counter (raw), stress",
];

/// The deviation of all techniques, idle and stressed, as Figure 5; none if nothing was measured.
pub(super) fn deviations(findings: &ReceptionResult, size: (u32, u32), id: &str) -> Option<Figure> {
    let deviation =
        |name: &str, stressed| findings.cell(name, FIGURES_5_AND_6, stressed)?.error_deviation_ns;
    let bars = bars(findings, &deviation, Axis::decade);
    let range = bars.iter().map(|bar| 10_f64.powf(bar.top)).map(|top| top..top).reduce(union)?;
    let y = Axis::of_durations_by_decade("standard deviation", range);
    compared(
        &bars,
        &y,
        Frame { id, size, title: "Deviation of the error".into(), caption: caption() },
    )
}

/// The share that all techniques measure at the line rate, idle and stressed, as Figure 6; none if nothing was measured.
pub(super) fn throughput(findings: &ReceptionResult, size: (u32, u32), id: &str) -> Option<Figure> {
    let measured = |name: &str, stressed| {
        let mut cells = findings.line_rate.iter();
        cells.find(|cell| cell.conditions.is(name, FIGURES_5_AND_6, stressed))?.measured_percent
    };
    let bars = bars(findings, &measured, |percent| percent);
    bars.first()?;
    let y = Axis::of_numbers("packets measured (%)", 0.0..105.0, 5.0);
    compared(&bars, &y, Frame { id, size, title: "Packets measured".into(), caption: caption() })
}

fn caption() -> String {
    let (frame_bytes, speed) = FIGURES_5_AND_6;
    format!("{frame_bytes} bytes at {speed}; thin lines are intervals of 95 % confidence.")
}

/// A bar of a comparison.
struct Bar {
    method: String,
    /// Which of [`BARS`].
    kind: u8,
    top: f64,
    /// The interval of 95 % confidence around it.
    whisker: [f64; 2],
}

/// The bars of all techniques; `at` says where on the axis a value is.
fn bars(
    findings: &ReceptionResult,
    of: &dyn Fn(&str, bool) -> Option<Estimate>,
    at: fn(f64) -> f64,
) -> Vec<Bar> {
    let all = findings.techniques.iter().flat_map(|name| [(name, false), (name, true)]);
    all.filter_map(|(name, stressed)| {
        let Estimate { mean, ci95, .. } = of(name, stressed)?;
        let (method, source) = name.split_once(':')?;
        let ci95 = ci95.unwrap_or(0.0);
        Some(Bar {
            method: method.to_owned(),
            kind: 2 * u8::from(source == "raw") + u8::from(stressed),
            top: at(mean),
            whisker: [mean - ci95, mean + ci95].map(at),
        })
    })
    .collect()
}

/// Bars side by side above the names of their methods.
fn compared(bars: &[Bar], y: &Axis, frame: Frame<'_>) -> Option<Figure> {
    const WIDTH: f64 = 0.2;
    let mut methods: Vec<_> = bars.iter().map(|bar| bar.method.as_str()).collect();
    methods.dedup();
    let x = Axis::of_names(methods.iter().copied());
    let shown = |value: f64| value.clamp(y.range.start, y.range.end);
    Some(frame.draw(&x, y, |chart| {
        for bar in bars {
            let Some((middle, _)) = x.ticks.iter().find(|(_, name)| *name == bar.method) else {
                continue;
            };
            let kind = usize::from(bar.kind);
            let colour = SERIES[(FIRST_SERIES + kind) % SERIES.len()];
            let left = middle + (f64::from(bar.kind) - 2.0) * WIDTH;
            let corners = [(left, y.range.start), (left + 0.9 * WIDTH, shown(bar.top))];
            chart.draw_series([Rectangle::new(corners, colour.mix(0.6).filled())])?;
            let whisker = bar.whisker.map(|end| (left + 0.45 * WIDTH, shown(end)));
            chart.draw_series([PathElement::new(whisker.to_vec(), colour.stroke_width(2))])?;
        }
        Ok(())
    }))
}

fn union(one: Range<f64>, other: Range<f64>) -> Range<f64> {
    one.start.min(other.start)..one.end.max(other.end)
}
