//! The figure of delay and loss over time, of a bounded series.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Series;

use super::frame::{Figure, Frame, ticks};
use super::over_time::{strokes, ticks_of_losses};
use crate::axis::Axis;
use crate::format::{approximate, duration, nanos, plural};
use crate::timeline::Slice;

/// One-way delay against the time of sending, with marks at slots in which packets were lost; nothing if no packet
/// arrived. `floor` is subtracted from all delays.
pub(crate) fn delay_series(
    series: &Series,
    what: &str,
    floor: i64,
    id: &str,
    size: (u32, u32),
) -> Option<Figure> {
    // Strokes are two pixels wide.
    let series = series.thinned(usize::try_from(size.0 / 2).unwrap_or(1));
    let (begins, _) = series.slots().next()?;
    let width = approximate(series.width().as_nanos());
    let since = |time: Time<Utc>| approximate((time - begins).as_nanos());
    let slices: Vec<_> = series
        .slots()
        .filter_map(|(time, slot)| {
            Some(Slice {
                at: (since(time) + width / 2.0) / 1e9,
                least: approximate(slot.min.saturating_sub(floor)),
                middle: slot.mean()? - approximate(floor),
                most: approximate(slot.max.saturating_sub(floor)),
            })
        })
        .collect();
    let least = slices.iter().map(|slice| slice.least).min_by(f64::total_cmp)?;
    let most = slices.iter().map(|slice| slice.most).max_by(f64::total_cmp)?;
    let losing = series.slots().filter(|(_, slot)| slot.lost > 0);
    let marks: Vec<_> = losing.map(|(time, _)| (since(time) + width / 2.0) / 1e9).collect();
    let lost = series.slots().map(|(_, slot)| slot.lost).sum();

    let (bottom, top) = (least.min(0.0), most.max(0.0));
    let height = (top - bottom).max(1.0);
    let losses = if marks.is_empty() { 0.0 } else { 0.1 * height };
    let (last, _) = series.slots().last()?;
    let x = Axis::of_durations("time of sending", 0.0..since(last) + width, ticks(size));
    let mut y = Axis::of_durations(what, bottom - losses..top + 0.05 * height, 5.0);
    // No ticks below the min delay: the losses are drawn there.
    let lowest = y.at(bottom);
    y.ticks.retain(|(tick, _)| *tick >= lowest - 1e-9);

    let title = format!("{what} over time, from {} to {}", duration(least), duration(most));
    let frame = Frame { id, size, title, caption: caption(series.width().as_nanos(), lost) };
    Some(frame.draw(&x, &y, |chart| {
        strokes(chart, &slices, &x, &y)?;
        ticks_of_losses(chart, &marks, &x, &y, bottom..bottom - losses)
    }))
}

/// How to read the figure.
fn caption(width_ns: i64, lost: u64) -> String {
    let how = format!(
        "Each stroke spans the smallest to the largest delay of the packets sent within {}; its dark \
         part is their mean.",
        nanos(width_ns)
    );
    match lost {
        0 => format!("{how} None was lost."),
        lost => format!(
            "{how} Red ticks at the bottom: when {} sent.",
            plural(lost, "lost packet was", "lost packets were")
        ),
    }
}
