//! Tables and figures of the part `loss`.

use super::{Rate, Row};
use crate::figures::{Chart, Line};
use crate::results::Results;
use crate::statistics::Spread;

/// A number of a run, in the unit it is shown in.
type Number = fn(&Row) -> f64;

const LOSS: Number = |row| 100.0 * row.loss;
const CPU: Number = |row| row.cpu_seconds_per_million;
const RATE: Number = |row| row.frames_per_second / 1e6;

pub(super) fn print(rows: &[Row], results: &mut Results) {
    for frame_bytes in sizes(rows) {
        let of_size: Vec<&Row> = rows.iter().filter(|row| row.frame_bytes == frame_bytes).collect();
        for (what, number) in [
            ("loss in %", LOSS),
            ("CPU seconds a million packets written", CPU),
            ("millions of frames a second that were sent", RATE),
        ] {
            let caption =
                format!("Frames of {frame_bytes} bytes: {what}, median (least..greatest)");
            let (heads, lines) = grid(&of_size, number);
            results.table(&caption, &heads, &lines);
        }
    }
}

/// A line for each contender, a column for each rate.
fn grid(rows: &[&Row], number: Number) -> (Vec<String>, Vec<Vec<String>>) {
    let rates = rates(rows);
    let heads =
        std::iter::once("frames a second".to_owned()).chain(rates.iter().map(Rate::to_string));
    let line = |name: &String| {
        let cell = |rate: &Rate| {
            let spread = spread(rows.iter().copied(), name, *rate, number);
            spread.map_or_else(|| "-".into(), |spread| format!("{spread:.2}"))
        };
        std::iter::once(name.clone()).chain(rates.iter().map(cell)).collect()
    };
    (heads.collect(), contenders(rows).iter().map(line).collect())
}

pub(super) fn spread<'a>(
    rows: impl Iterator<Item = &'a Row>,
    contender: &str,
    rate: Rate,
    number: Number,
) -> Option<Spread> {
    let mine = rows.filter(|row| row.contender == contender && row.rate == rate);
    Spread::of(mine.map(number))
}

pub(super) fn draw(rows: &[Row], results: &mut Results) -> anyhow::Result<()> {
    for frame_bytes in sizes(rows) {
        let of_size: Vec<&Row> = rows.iter().filter(|row| row.frame_bytes == frame_bytes).collect();
        for (file, what, number) in
            [("loss", "loss (%)", LOSS), ("cpu", "CPU seconds a million packets", CPU)]
        {
            let chart = Chart {
                title: format!("{what}, frames of {frame_bytes} bytes"),
                x: "frames a second (millions)".into(),
                y: what.into(),
                lines: contenders(&of_size)
                    .iter()
                    .map(|name| line(&of_size, name, number))
                    .collect(),
            };
            let caption = "Medians, with the least and the greatest of the repetitions. Broken \
                           lines: stamps that are not the method's first choice.";
            results.figure(&format!("{file}-{frame_bytes}.svg"), chart.svg()?, caption)?;
        }
    }
    Ok(())
}

fn line(rows: &[&Row], name: &str, number: Number) -> Line {
    let point = |rate: &Rate| {
        let came = spread(rows.iter().copied(), name, *rate, RATE)?;
        Some((came.median, spread(rows.iter().copied(), name, *rate, number)?))
    };
    Line { name: name.to_owned(), points: rates(rows).iter().filter_map(point).collect() }
}

/// In the order of the runs.
fn contenders(rows: &[&Row]) -> Vec<String> {
    let mut names = Vec::new();
    for row in rows {
        if !names.contains(&row.contender) {
            names.push(row.contender.clone());
        }
    }
    names
}

fn rates(rows: &[&Row]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = rows.iter().map(|row| row.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

fn sizes(rows: &[Row]) -> Vec<u16> {
    let mut sizes: Vec<u16> = rows.iter().map(|row| row.frame_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
