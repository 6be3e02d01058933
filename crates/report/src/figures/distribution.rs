//! Histograms of one stream: its delays, and the times between its arrivals.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::frame::{Chart, Drawn, Figure, Frame, INK, SERIES, letters, ticks};
use crate::axis::Axis;
use crate::format::{approximate, duration, nanos, plural, real};
use crate::histogram::Histogram;
use wirestamp_metrics::{Distribution, Summary};

use crate::report::Stream;

/// How often each one-way delay occurred; nothing if no packet was received.
pub(crate) fn delay_histogram(stream: &Stream, id: &str, size: (u32, u32)) -> Option<Figure> {
    let delays: Vec<i64> = stream.delays.iter().map(|(_, delay)| *delay).collect();
    let histogram = Histogram::of(&[&delays])?;
    let marks = stream.delay.as_ref().map_or(Vec::new(), |Summary { p50, p99, .. }| {
        vec![("median", approximate(*p50)), ("99 %", approximate(*p99))]
    });
    Some(distribution(&histogram, "one-way delay", "packets", &marks, id, size))
}

/// How often each value of a distribution occurred, with its median and 99th percentile; nothing if
/// it has none.
pub(crate) fn of_distribution(
    values: &Distribution,
    what: &str,
    id: &str,
    size: (u32, u32),
) -> Option<Figure> {
    /// Values in one bucket of a distribution differ by at most 0.1 %.
    const RESOLUTION: f64 = 1e-3;
    let histogram = Histogram::of_counted(&[values.buckets()], RESOLUTION)?;
    let Summary { p50, p99, .. } = values.summary()?;
    let marks = [("median", approximate(p50)), ("99 %", approximate(p99))];
    Some(distribution(&histogram, what, "packets", &marks, id, size))
}

/// How often each time between arrivals occurred, one curve for each observation point; nothing
/// if there is no pair of arrivals.
pub(crate) fn interarrival(stream: &Stream, id: &str, size: (u32, u32)) -> Option<Figure> {
    let series: Vec<&[i64]> = stream.interarrival.iter().map(|(_, gaps)| gaps.as_slice()).collect();
    let histogram = Histogram::of(&series)?;
    Some(distribution(&histogram, "time between arrivals", "gaps", &[], id, size))
}

/// A histogram: the first series as an area, the others as lines above it, and `marks` on the
/// axis.
fn distribution(
    histogram: &Histogram,
    what: &str,
    unit: &str,
    marks: &[(&str, f64)],
    id: &str,
    size: (u32, u32),
) -> Figure {
    let most = real(histogram.most());
    let by_decade = histogram.spans_decades();
    let x = Axis::of_durations(what, ends(&histogram.edges), ticks(size));
    let y = if by_decade { Axis::of_counts_by_decade } else { Axis::of_counts }(unit, most);
    let height = |count| if by_decade { real(count).log10() } else { real(count) };
    let caption = caption(histogram, unit);
    let title = format!("Histogram of {what}");
    Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (index, counts) in histogram.counts.iter().enumerate() {
            let outlines = staircases(&histogram.edges, counts, &x, height, y.range.start);
            let colour = SERIES[index % SERIES.len()];
            if index == 0 {
                let area = colour.mix(0.3).filled();
                chart.draw_series(outlines.iter().map(|o| Polygon::new(o.clone(), area)))?;
            }
            // Later series are thicker, so that lines that coincide remain distinguishable.
            let line = colour.stroke_width(if index == 0 { 1 } else { 2 });
            chart.draw_series(outlines.into_iter().map(|o| PathElement::new(o, line)))?;
        }
        let shown = marks.iter().map(|(name, at)| (*name, x.at(*at)));
        for (row, (name, at)) in (0..).zip(shown.filter(|(_, at)| x.range.contains(at))) {
            mark(chart, &x, &y, name, at, row)?;
        }
        Ok(())
    })
}

/// A vertical line at `at`, with its name next to its top. Names in different rows do not overlap.
fn mark(chart: &mut Chart<'_, '_>, x: &Axis, y: &Axis, name: &str, at: f64, row: i32) -> Drawn {
    chart.draw_series([PathElement::new(vec![(at, y.range.start), (at, y.range.end)], INK)])?;
    let is_right = at > x.range.start + 0.75 * (x.range.end - x.range.start);
    let (side, gap) = if is_right { (HPos::Right, -5) } else { (HPos::Left, 5) };
    let style = letters().pos(Pos::new(side, VPos::Top));
    let label = Text::new(name.to_owned(), (gap, 2 + 16 * row), style);
    chart.draw_series([EmptyElement::at((at, y.range.end)) + label])?;
    Ok(())
}

/// The outlines of a histogram, one for each run of bins that are not empty. Each begins and ends on the axis, at
/// `base`, and has no steps between bins of equal height.
fn staircases(
    edges: &[f64],
    counts: &[u64],
    x: &Axis,
    height: impl Fn(u64) -> f64,
    base: f64,
) -> Vec<Vec<(f64, f64)>> {
    let bins: Vec<_> = edges.iter().zip(edges.iter().skip(1)).zip(counts).collect();
    let runs = bins.chunk_by(|(_, a), (_, b)| (**a > 0) == (**b > 0));
    let filled = runs.filter(|run| run.iter().all(|(_, count)| **count > 0));
    let outline = |run: &[((&f64, &f64), &u64)]| {
        let mut outline = Vec::new();
        let mut level = base;
        for level_run in run.chunk_by(|(_, a), (_, b)| a == b) {
            let [((start, _), count), ..] = level_run else { continue };
            outline.push((x.at(**start), level));
            level = height(**count);
            outline.push((x.at(**start), level));
        }
        if let [.., ((_, end), _)] = run {
            outline.extend([(x.at(**end), level), (x.at(**end), base)]);
        }
        outline
    };
    filled.map(outline).collect()
}

/// The first and the last border.
fn ends(edges: &[f64]) -> Range<f64> {
    edges.first().copied().unwrap_or(0.0)..edges.last().copied().unwrap_or(1.0)
}

/// How to read the figure.
fn caption(histogram: &Histogram, unit: &str) -> String {
    let bins = format!("Bins of {}.", duration(histogram.width()));
    let (least, most) = histogram.extremes;
    match histogram.outside {
        0 => bins,
        outside => format!(
            "{bins} Not on the axis: {} far out; smallest value {}, largest {}.",
            plural(outside, unit.trim_end_matches('s'), unit),
            nanos(least),
            nanos(most)
        ),
    }
}
