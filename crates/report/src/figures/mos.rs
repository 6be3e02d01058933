//! Figure: MOS of a call over time.

use plotters::prelude::*;
use wirestamp_metrics::CallOverTime;

use super::frame::{Figure, Frame, SERIES, ticks};
use crate::axis::Axis;
use crate::format::{approximate, nanos};

/// The MOS scale. The E-model reaches 4.5.
const SCALE: std::ops::Range<f64> = 1.0..4.6;

/// MOS of each interval of a call against the time of sending; `None` for a call of one interval.
pub(crate) fn mos_over_time(call: &CallOverTime, id: &str, size: (u32, u32)) -> Option<Figure> {
    let interval = approximate(call.interval.as_nanos());
    let begins = std::iter::successors(Some(0.0), |begin| Some(begin + interval));
    let intervals: Vec<(f64, f64)> = begins
        .zip(&call.intervals)
        .filter_map(|(begin, it)| Some((begin, it.as_ref()?.mos())))
        .collect();
    let [_, .., (last, _)] = intervals[..] else { return None };
    let (_, worst) = intervals.iter().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let x = Axis::of_durations("time of sending", 0.0..last + interval, ticks(size));
    let y = Axis::of_numbers("MOS", SCALE, 4.0);
    let caption = format!(
        "Each line is the MOS of {}, from their mean delay and loss; the worst is {worst:.2}.",
        nanos(call.interval.as_nanos())
    );
    let title = "MOS over time".to_owned();
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        let line = |&(begin, mos): &(f64, f64)| {
            let ends = vec![(x.at(begin), mos), (x.at(begin + interval), mos)];
            PathElement::new(ends, SERIES[0].stroke_width(3))
        };
        chart.draw_series(intervals.iter().map(line))?;
        Ok(())
    }))
}
