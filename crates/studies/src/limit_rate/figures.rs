//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{CellResult, LimitRateResult, SeriesResult, thousands};
use super::model::{Area, Model};
use super::paper::{PROCESSORS, Processor};
use super::setting::Level;
use super::sweeps::Sweep;
use crate::experiment::Estimate;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, Line, SERIES, lines, ticks};

/// Quantity of a figure of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Loss,
    Load,
}

impl Shown {
    const fn words(self) -> &'static str {
        match self {
            Self::Loss => "packet loss",
            Self::Load => "CPU load",
        }
    }

    fn of(self, cell: &CellResult) -> Option<Estimate> {
        match self {
            Self::Loss => cell.loss_percent,
            Self::Load => cell.load_percent,
        }
    }
}

/// Loss or load of a series, a line for each level of its first factor; none if nothing was measured.
pub(super) fn series(
    found: &SeriesResult,
    sweep: &Sweep,
    shown: Shown,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let is_rate = sweep.points.iter().any(|point| matches!(point, Level::Rate(_)));
    let at = |cell: &CellResult| if is_rate { thousands(cell.at) } else { cell.at };
    let all = of_lines(found, |cell| Some((at(cell), shown.of(cell)?)));
    let y = percents(shown.words(), &all)?;
    let x = abscissa(sweep.factors[1], &all, size);
    let title = format!("{} in function of the {}", shown.words(), sweep.factors[1]);
    let caption = "Strokes are intervals of 95 % confidence.".to_owned();
    Some(lines(Frame { id, size, title, caption }, &x, &y, &all))
}

/// Loss or load of the report's processors, as Figure 2-9.
pub(super) fn in_the_report(shown: Shown, size: (u32, u32), id: &str) -> Option<Figure> {
    let of = |processor: &Processor| {
        let point = |&(rate, loss, load): &(f64, f64, f64)| {
            let mean = if shown == Shown::Loss { loss } else { load };
            (thousands(rate), Estimate { mean, ci95: None })
        };
        processor.rows.iter().map(point).collect::<Line>()
    };
    let all: Vec<_> = PROCESSORS.iter().map(of).collect();
    let y = percents(shown.words(), &all)?;
    let x = abscissa("rate", &all, size);
    let title = format!("{} in function of the rate, in the report", shown.words());
    let caption = "From Figures 2-3, 2-5 and 2-7 of the report.".to_owned();
    Some(lines(Frame { id, size, title, caption }, &x, &y, &all))
}

/// Captured against delivered frames, as Figure 2-10; none if nothing was measured.
pub(super) fn captured(found: &SeriesResult, size: (u32, u32), id: &str) -> Option<Figure> {
    let point = |cell: &CellResult| {
        let (rate, loss) = (thousands(cell.rate?.mean), cell.loss_percent?);
        let captured = rate * (1.0 - loss.mean / 100.0);
        Some((rate, Estimate { mean: captured, ci95: loss.ci95.map(|ci95| rate * ci95 / 100.0) }))
    };
    let all = of_lines(found, point);
    let most = all.iter().flatten().map(|(at, _)| *at).reduce(f64::max)?.max(1.0);
    let x = Axis::of_numbers(RATE, 0.0..most * 1.02, ticks(size));
    let y = Axis::of_numbers("captured (thousands/s)", 0.0..most * 1.05, 5.0);
    let caption = "Where a line leaves the diagonal the probe is saturated.".to_owned();
    let title = "Captured and delivered packets".to_owned();
    Some(lines(Frame { id, size, title, caption }, &x, &y, &all))
}

/// The fitted model of the whole core with its trials, as Figure 2-11; none if nothing fits.
pub(super) fn model(findings: &LimitRateResult, size: (u32, u32), id: &str) -> Option<Figure> {
    let model = findings.models.first()?.model?;
    let cells = findings.series.iter().find(|series| series.name == "cpu")?;
    let line = &cells.cells.first()?.line;
    let cells: Vec<_> = cells.cells.iter().filter(|cell| cell.line == *line).collect();
    let most = cells.iter().filter_map(|cell| Some(cell.rate?.mean)).reduce(f64::max)?;
    let loads = cells.iter().filter_map(|cell| Some(cell.load_percent?.mean));
    let top = loads.chain([model.load_percent(most)]).fold(1.0, f64::max) * 1.1;
    let x = Axis::of_numbers(RATE, 0.0..thousands(most).max(1.0) * 1.02, ticks(size));
    let y = Axis::of_numbers("CPU load (%)", 0.0..top, 5.0);
    let title = "CPU and packet loss behaviour model, fitted".to_owned();
    let caption = "The line is fitted to the trials without loss. Areas, from left to right: no packet \
                   loss, sporadic packet loss, big packet loss; those that no trial reached are not drawn."
        .to_owned();
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (area, from, to) in areas(&model, most) {
            let corners = [(thousands(from), 0.0), (thousands(to), top)];
            chart.draw_series([Rectangle::new(corners, colour(area).mix(0.12).filled())])?;
        }
        let end = |rate: f64| (thousands(rate), model.load_percent(rate).clamp(0.0, top));
        let stroke = SERIES[FIRST_SERIES].stroke_width(2);
        chart.draw_series([PathElement::new(vec![end(0.0), end(most)], stroke)])?;
        let point = |cell: &&CellResult| {
            let at = (thousands(cell.rate?.mean), cell.load_percent?.mean);
            Some(Circle::new(at, 4, colour(cell.area?).filled()))
        };
        chart.draw_series(cells.iter().filter_map(point))?;
        Ok(())
    }))
}

/// The names of the areas, in the order of their colours.
pub(super) const AREAS: [&str; 3] = ["no packet loss", "sporadic packet loss", "big packet loss"];

const RATE: &str = "packets delivered (thousands/s)";

const fn colour(area: Area) -> RGBColor {
    match area {
        Area::NoLoss => SERIES[FIRST_SERIES],
        Area::Sporadic => SERIES[FIRST_SERIES + 1],
        Area::Big => SERIES[FIRST_SERIES + 2],
    }
}

/// The areas with their ends, in frames a second.
fn areas(model: &Model, most: f64) -> Vec<(Area, f64, f64)> {
    let big = model.lowest_with_big_loss.unwrap_or(most);
    let some = model.lowest_with_loss.unwrap_or(most).min(big);
    let all = [(Area::NoLoss, 0.0, some), (Area::Sporadic, some, big), (Area::Big, big, most)];
    all.into_iter().filter(|(_, from, to)| from < to).collect()
}

fn of_lines(
    found: &SeriesResult,
    point: impl Fn(&CellResult) -> Option<(f64, Estimate)>,
) -> Vec<Line> {
    let mut names: Vec<&str> = found.cells.iter().map(|cell| cell.line.as_str()).collect();
    names.dedup();
    let of = |name: &str| {
        let mut line: Line =
            found.cells.iter().filter(|cell| cell.line == name).filter_map(&point).collect();
        line.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        line
    };
    names.into_iter().map(of).collect()
}

fn percents(what: &str, all: &[Line]) -> Option<Axis> {
    let ends = all.iter().flatten().map(|(_, it)| it.mean + it.ci95.unwrap_or(0.0));
    let means = all.iter().flatten().map(|(_, it)| it.mean).reduce(f64::max)?;
    let most = ends.filter(|end| end.is_finite()).fold(means, f64::max).clamp(1.0, 110.0);
    Some(Axis::of_numbers(&format!("{what} (%)"), 0.0..most.max(means) * 1.05, 5.0))
}

fn abscissa(factor: &str, all: &[Line], size: (u32, u32)) -> Axis {
    let most = all.iter().flatten().map(|(at, _)| *at).fold(1.0, f64::max);
    let label = match factor {
        "rate" => RATE,
        "frame" => "frame size (bytes)",
        "gap" => "time between packets (µs)",
        _ => "duration (s)",
    };
    Axis::of_numbers(label, 0.0..most * 1.02, ticks(size))
}
