//! Lines through estimates, each with its interval.

use plotters::prelude::*;

use super::frame::{Drawn, FIRST_SERIES, Figure, Frame, SERIES};
use crate::axis::Axis;

/// Points of a line: place on the abscissa, the value there, and the ends of its interval, all in the units of the axes.
pub type Line = Vec<(f64, f64, Option<[f64; 2]>)>;

/// Draws the lines in the order of the colours. A stroke at each point shows its 95 % confidence interval, cut off at
/// the ends of the axis.
pub fn lines(frame: Frame<'_>, x: &Axis, y: &Axis, lines: &[Line]) -> Figure {
    let on_axis = |value: f64| value.clamp(y.range.start, y.range.end);
    frame.draw(x, y, |chart| -> Drawn {
        for (line, colour) in lines.iter().zip(SERIES.iter().cycle().skip(FIRST_SERIES)) {
            let means: Vec<_> = line.iter().map(|(at, mean, _)| (*at, on_axis(*mean))).collect();
            chart.draw_series(LineSeries::new(means.clone(), colour.stroke_width(2)))?;
            chart.draw_series(means.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
            let interval = |(at, _, ends): &(f64, f64, Option<[f64; 2]>)| {
                let ends = ends.filter(|ends| ends.iter().all(|end| end.is_finite()))?;
                Some(PathElement::new(
                    ends.map(|end| (*at, on_axis(end))),
                    colour.mix(0.6).stroke_width(2),
                ))
            };
            chart.draw_series(line.iter().filter_map(interval))?;
        }
        Ok(())
    })
}
