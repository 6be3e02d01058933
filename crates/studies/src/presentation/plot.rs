//! Lines through points, a figure that a template describes: function `plot`.

use serde::Deserialize;
use wirestamp_report::axis::Axis;
use wirestamp_report::estimate::Estimate;
use wirestamp_report::figures::{Figure, Frame, Line, lines, ticks};

use crate::account::Part;

/// Arguments of the function `plot` of templates.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plot {
    /// Short text for readers who do not see the figure.
    title: String,
    caption: String,
    x: Quantity,
    y: Quantity,
    /// Names of the lines, in the order of their colours.
    names: Vec<String>,
    /// Points of each line: abscissa, ordinate, and its interval of 95 % confidence, which is not drawn on a
    /// logarithmic scale.
    series: Vec<Vec<(f64, f64, Option<f64>)>>,
    /// How many of the lines, from the first, are measured here. Nothing is drawn if they have no point.
    here: Option<usize>,
}

/// Quantity on an axis.
#[derive(Clone, Debug, Deserialize)]
struct Quantity {
    label: String,
    #[serde(default)]
    scale: Scale,
    /// Max value that the axis goes to.
    limit: Option<f64>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scale {
    /// From zero, without a unit.
    #[default]
    Numbers,
    /// Whole numbers from zero.
    Counts,
    /// Nanoseconds from zero.
    Durations,
    /// Nanoseconds, logarithmic. The size of a value is drawn, whatever its sign; below 1 ns, at 1 ns.
    Decades,
}

impl Plot {
    /// The figure under a heading.
    pub(super) fn part(&self, heading: &str, id: &str) -> Part {
        let names = self.names.iter().map(String::as_str);
        Part::figure(heading, id, names, |size, id| self.draw(size, id))
    }

    fn draw(&self, size: (u32, u32), id: &str) -> Option<Figure> {
        let here = self.here.unwrap_or(self.series.len());
        self.series.iter().take(here).flatten().next()?;
        let points = || self.series.iter().flatten();
        let x = self.x.axis(ticks(size), points().map(|(x, ..)| *x).collect());
        let ends = points().flat_map(|(_, y, ci95)| [*y, y + ci95.unwrap_or(0.0)]);
        let y = self.y.axis(5.0, ends.collect());
        let point = |&(at, mean, ci95): &(f64, f64, Option<f64>)| {
            // An interval has no symmetry on a logarithmic axis, and may go below zero.
            let ci95 = ci95.filter(|_| self.y.scale != Scale::Decades).map(|ci95| y.at(ci95));
            (self.x.on(at, &x), Estimate::new(self.y.on(mean, &y), ci95))
        };
        let drawn: Vec<Line> =
            self.series.iter().map(|line| line.iter().map(point).collect()).collect();
        let (title, caption) = (self.title.clone(), self.caption.clone());
        Some(lines(Frame { id, size, title, caption }, &x, &y, &drawn))
    }
}

impl Quantity {
    /// The axis of these values.
    fn axis(&self, ticks: f64, mut values: Vec<f64>) -> Axis {
        values.retain(|value| value.is_finite());
        let limit = self.limit.unwrap_or(f64::INFINITY);
        let end = values.iter().copied().fold(1.0, f64::max).min(limit) * 1.04;
        match self.scale {
            Scale::Numbers => Axis::of_numbers(&self.label, 0.0..end, ticks),
            Scale::Counts => Axis::of_counts(&self.label, end),
            Scale::Durations => Axis::of_durations(&self.label, 0.0..end, ticks),
            Scale::Decades => {
                let sizes = values.into_iter().map(f64::abs);
                let most = sizes.clone().fold(1.0, f64::max);
                let least = sizes.fold(most, f64::min);
                Axis::of_durations_by_decade(&self.label, least..most)
            }
        }
    }

    /// Where a value lies on the axis.
    fn on(&self, value: f64, axis: &Axis) -> f64 {
        match self.scale {
            Scale::Numbers | Scale::Counts | Scale::Durations => axis.at(value),
            Scale::Decades => Axis::decade(value.abs()),
        }
    }
}
