//! The figure of one-way delay against the time of sending.

use std::ops::Range;

use plotters::prelude::*;

use super::frame::{Chart, Drawn, Figure, Frame, LOST, SERIES, ticks};
use crate::axis::Axis;
use crate::format::{approximate, duration, length, nanos, plural};
use crate::report::Stream;
use crate::timeline::{Slice, moments, slice_length_ns, slices, span};

/// Above this number of packets, slices of time are drawn instead of packets, so that the figure stays well below
/// 150 kB.
const MOST_POINTS: usize = 1000;

/// Pixels of width for each slice of time and for each mark of a loss.
const SLICE_PIXELS: u32 = 2;

/// One-way delay against the time of sending, with the lost packets marked below; nothing if no
/// packet was received.
pub(crate) fn delay_over_time(stream: &Stream, id: &str, size: (u32, u32)) -> Option<Figure> {
    let delays = stream.delays.iter().map(|(_, delay)| *delay);
    let (least, most) = (delays.clone().min()?, delays.max()?);
    let times = span(stream.delays.iter().map(|(t, _)| *t).chain(stream.lost_at.iter().copied()));
    let shares = (size.0.saturating_sub(80) / SLICE_PIXELS).max(1);
    let each = stream.delays.len() <= MOST_POINTS;

    let (bottom, top) = (approximate(least).min(0.0), approximate(most).max(0.0));
    let height = (top - bottom).max(1.0);
    let losses = if stream.lost_at.is_empty() { 0.0 } else { 0.1 * height };
    let x = Axis::of_durations("time of sending", times.start * 1e9..times.end * 1e9, ticks(size));
    let mut y = Axis::of_durations("one-way delay", bottom - losses..top + 0.05 * height, 5.0);
    // No ticks below the min delay: the losses are drawn there.
    let floor = y.at(bottom);
    y.ticks.retain(|(tick, _)| *tick >= floor - 1e-9);

    let caption = caption(stream, each, slice_length_ns(&times, shares));
    let title = format!("One-way delay over time, from {} to {}", nanos(least), nanos(most));
    let frame = Frame { id, size, title, caption };
    Some(frame.draw(&x, &y, |chart| {
        if each {
            points(chart, stream, &x, &y)?;
        } else {
            strokes(chart, &slices(&stream.delays, &times, shares), &x, &y)?;
        }
        let marks = moments(&stream.lost_at, &times, shares);
        ticks_of_losses(chart, &marks, &x, &y, bottom..bottom - losses)
    }))
}

/// A red tick for each of `marks`, in seconds, between the min delay and the axis.
pub(super) fn ticks_of_losses(
    chart: &mut Chart<'_, '_>,
    marks: &[f64],
    x: &Axis,
    y: &Axis,
    room: Range<f64>,
) -> Drawn {
    let height = room.end - room.start;
    let (deep, shallow) = (y.at(room.start + 0.85 * height), y.at(room.start + 0.2 * height));
    chart.draw_series(marks.iter().map(|time| {
        let at = x.at(time * 1e9);
        PathElement::new(vec![(at, deep), (at, shallow)], LOST.stroke_width(SLICE_PIXELS))
    }))?;
    Ok(())
}

/// A point for each packet.
fn points(chart: &mut Chart<'_, '_>, stream: &Stream, x: &Axis, y: &Axis) -> Drawn {
    let finite = stream.delays.iter().filter(|(time, _)| time.is_finite());
    let at = |(time, delay): &(f64, i64)| (x.at(time * 1e9), y.at(approximate(*delay)));
    chart.draw_series(finite.map(|packet| Circle::new(at(packet), 2, SERIES[0].filled())))?;
    Ok(())
}

/// A pale stroke from the min to the max delay of each slice of time, with a dark mark at [`Slice::middle`].
pub(super) fn strokes(chart: &mut Chart<'_, '_>, slices: &[Slice], x: &Axis, y: &Axis) -> Drawn {
    let pale = SERIES[0].mix(0.4).stroke_width(SLICE_PIXELS);
    let dark = SERIES[0].stroke_width(SLICE_PIXELS);
    chart.draw_series(slices.iter().map(|slice| {
        let at = x.at(slice.at * 1e9);
        PathElement::new(vec![(at, y.at(slice.least)), (at, y.at(slice.most))], pale)
    }))?;
    chart.draw_series(slices.iter().map(|slice| {
        let at = (x.at(slice.at * 1e9), y.at(slice.middle));
        EmptyElement::at(at) + PathElement::new(vec![(-1, 0), (1, 0)], dark)
    }))?;
    Ok(())
}

/// How to read the figure.
fn caption(stream: &Stream, each: bool, slice_ns: f64) -> String {
    let how = if each {
        "Each point is one packet that arrived.".to_owned()
    } else {
        format!(
            "Each stroke spans the smallest to the largest delay of the packets sent within {}; \
             its dark part is their median.",
            duration(slice_ns)
        )
    };
    let losses = |count| plural(count, "lost packet", "lost packets");
    match (length(&stream.lost_at), stream.lost) {
        (0, 0) => format!("{how} None was lost."),
        (0, lost) => format!("{how} Not shown: {}.", losses(lost)),
        (marked, _) => format!("{how} Red ticks at the bottom: {}, when sent.", losses(marked)),
    }
}
