//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{CellResult, LimitRateResult, thousands};
use super::model::{Area, Model};
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, SERIES, ticks};

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
