//! Lines through points, a figure that a template describes: function `plot`.

use serde::Deserialize;
use wirestamp_report::axis::Axis;
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
    /// Points of each line: abscissa, ordinate, and its interval of 95 % confidence.
    series: Vec<Vec<Point>>,
    /// How many of the lines, from the first, are measured here. Nothing is drawn if they have no point.
    here: Option<usize>,
}

/// Abscissa, ordinate, and half the width of its interval.
type Point = (f64, f64, Option<f64>);

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
        let ends = points().flat_map(|(_, y, ci95)| {
            let y = self.y.drawn(*y);
            [y, y + ci95.unwrap_or(0.0)]
        });
        let y = self.y.axis(5.0, ends.collect());
        let point = |&(at, mean, ci95): &Point| {
            let mean = self.y.drawn(mean);
            let ends = ci95.map(|ci95| [mean - ci95, mean + ci95].map(|end| self.y.on(end, &y)));
            (self.x.on(at, &x), self.y.on(mean, &y), ends)
        };
        let drawn: Vec<Line> =
            self.series.iter().map(|line| line.iter().map(point).collect()).collect();
        let (title, mut caption) = (self.title.clone(), self.caption.clone());
        if self.y.scale == Scale::Decades && points().any(|(.., ci95)| ci95.is_some()) {
            caption +=
                " Strokes are intervals of 95 % confidence, cut off at the ends of the axis.";
        }
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
                let sizes = values.into_iter().map(|value| self.drawn(value));
                let most = sizes.clone().fold(1.0, f64::max);
                let least = sizes.fold(most, f64::min);
                Axis::of_durations_by_decade(&self.label, least..most)
            }
        }
    }

    /// What is drawn of a value: on a logarithmic scale its size.
    fn drawn(&self, value: f64) -> f64 {
        if self.scale == Scale::Decades { value.abs() } else { value }
    }

    /// Where such a value lies on the axis. On a logarithmic scale, what is below 1 ns is at 1 ns.
    fn on(&self, value: f64, axis: &Axis) -> f64 {
        match self.scale {
            Scale::Numbers | Scale::Counts | Scale::Durations => axis.at(value),
            Scale::Decades => Axis::decade(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(scale: Scale, series: Vec<Vec<Point>>) -> Plot {
        let quantity = |scale| Quantity { label: "size".to_owned(), scale, limit: None };
        Plot {
            title: "title".to_owned(),
            caption: "Caption.".to_owned(),
            x: quantity(Scale::Numbers),
            y: quantity(scale),
            names: vec!["here".to_owned()],
            series,
            here: None,
        }
    }

    #[test]
    fn interval_on_a_logarithmic_scale_is_drawn_and_named() {
        let strokes = |figure: &Figure| figure.svg.0.matches("<polyline ").count();
        let drawn = |ci95: Option<f64>, scale: Scale| {
            let points = vec![(1.0, -500.0, ci95), (2.0, 20.0, ci95)];
            plot(scale, vec![points]).draw((1000, 300), "id").unwrap()
        };
        // The second interval goes below zero.
        let (with, without) = (drawn(Some(90.0), Scale::Decades), drawn(None, Scale::Decades));
        assert_eq!(strokes(&with), strokes(&without) + 2);
        assert!(!with.svg.0.contains("NaN"));
        assert!(with.caption.contains("cut off at the ends of the axis"), "{}", with.caption);
        assert_eq!(without.caption, "Caption.");
        assert_eq!(drawn(Some(90.0), Scale::Numbers).caption, "Caption.");
    }
}
