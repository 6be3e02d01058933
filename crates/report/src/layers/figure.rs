//! The figure of the times in each layer.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use wirestamp_metrics::Summary;

use super::Layer;
use crate::axis::Axis;
use crate::figures::{Chart, Drawn, Figure, Frame, SERIES, letters};
use crate::format::{approximate, nanos};

/// From the shortest to the longest time in each layer; nothing if no packet was in any.
pub(super) fn spread(layers: &[Layer], size: (u32, u32), id: &str) -> Option<Figure> {
    let delays = || layers.iter().filter_map(|layer| layer.delay);
    let least = delays().map(|delay| delay.min).min()?;
    let most = delays().map(|delay| delay.max).max()?;
    let x = Axis::of_names(layers.iter().map(|layer| layer.short.as_str()));
    let y = Axis::of_durations_by_decade("time", approximate(least)..approximate(most));
    let caption = "Each layer by the point where it begins. Thin lines: from the shortest time to \
                   the longest. Thick lines: what 90 % of the packets stayed below. Dots: the median."
        .to_owned();
    let title = "Times that packets spent in each layer of the host".to_owned();
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (layer, (at, _)) in layers.iter().zip(&x.ticks) {
            if let Some(delay) = layer.delay {
                range(chart, *at, &delay)?;
            }
        }
        Ok(())
    }))
}

fn range(chart: &mut Chart<'_, '_>, at: f64, delay: &Summary) -> Drawn {
    let place = |nanos: i64| (at, Axis::decade(approximate(nanos)));
    let line = |to: i64, width| {
        PathElement::new(vec![place(delay.min), place(to)], SERIES[0].stroke_width(width))
    };
    chart.draw_series([line(delay.max, 1), line(delay.p90, 5)])?;
    let label = nanos(delay.p50);
    let label = Text::new(label, (10, 0), letters().pos(Pos::new(HPos::Left, VPos::Center)));
    chart.draw_series([EmptyElement::at(place(delay.p50))
        + Circle::new((0, 0), 5, SERIES[1].filled())
        + label])?;
    Ok(())
}
