//! Tables and figures of the part `stamps`.

use super::Row;
use super::flow::BOUND;
use crate::figures::{SpanRow, Spans};
use crate::results::Results;
use crate::statistics::{Spread, micros, real};

/// A number of a row, in microseconds.
type Number = fn(&Row) -> f64;

const COLUMNS: [(&str, Number); 7] = [
    ("p50", |row| micros(row.error_p50)),
    ("p99", |row| micros(row.error_p99)),
    ("p99-p50", |row| micros(row.error_spread)),
    ("std.dev.", |row| row.error_stddev / 1e3),
    ("interval p50", |row| micros(row.interval_p50)),
    ("interval p99", |row| micros(row.interval_p99)),
    ("interval std.dev.", |row| row.interval_stddev / 1e3),
];

pub(super) fn print(rows: &[Row], results: &mut Results) {
    for flow in flows(rows) {
        for busy in [false, true] {
            let of_run = |row: &&Row| row.flow == flow && row.busy_core == busy;
            let of_run: Vec<&Row> = rows.iter().filter(of_run).collect();
            let with = if busy { "a busy core" } else { "idle cores" };
            let caption = format!(
                "A packet every {flow}, {with}: stamp minus send time, and what intervals are off \
                 by, in us, median (least..greatest) of the repetitions; {}",
                set_apart(&of_run)
            );
            let heads: Vec<String> = std::iter::once("")
                .chain(COLUMNS.map(|(head, _)| head))
                .map(str::to_owned)
                .collect();
            let lines: Vec<_> =
                contenders(&of_run).iter().map(|name| line(&of_run, name)).collect();
            results.table(&caption, &heads, &lines);
        }
    }
}

/// Share of packets that are excluded, because the sender was interrupted.
fn set_apart(rows: &[&Row]) -> String {
    let sum = |number: fn(&Row) -> u64| rows.iter().map(|row| number(row)).sum::<u64>();
    let share = |part: u64| 100.0 * real(part) / real(sum(|row| row.sent).max(1));
    let bound = BOUND.as_nanos() / 1000;
    format!(
        "set apart: {:.3} % sent more than {bound} us after they could, {:.3} % by a call of more than \
         {bound} us",
        share(sum(|row| row.late)),
        share(sum(|row| row.held)),
    )
}

fn line(rows: &[&Row], name: &str) -> Vec<String> {
    let cell = |(_, number): &(&str, Number)| {
        let mine = rows.iter().filter(|row| row.contender == name);
        Spread::of(mine.map(|row| number(row))).map_or_else(|| "-".into(), |it| format!("{it:.2}"))
    };
    std::iter::once(name.to_owned()).chain(COLUMNS.iter().map(cell)).collect()
}

pub(super) fn draw(rows: &[Row], results: &mut Results) -> anyhow::Result<()> {
    for flow in flows(rows) {
        let of_flow: Vec<&Row> = rows.iter().filter(|row| row.flow == flow).collect();
        let span = |name: &str, busy: bool| {
            let median = |number: Number| {
                let mine = of_flow.iter().filter(|r| r.contender == name && r.busy_core == busy);
                Some(Spread::of(mine.map(|row| number(row)))?.median)
            };
            Some((median(|row| micros(row.error_p50))?, median(|row| micros(row.error_p99))?))
        };
        let spans = |name: String| {
            let (idle, busy) = (span(&name, false), span(&name, true));
            SpanRow { name, idle, busy }
        };
        let figure = Spans {
            title: format!("Error of stamps, a packet every {flow}"),
            rows: contenders(&of_flow).into_iter().map(spans).collect(),
        };
        let caption = "Medians of the repetitions. xdp/xdp and ring/raw+spin have packets of their own, the \
                       others have \
                       the same ones.";
        let file = format!("stamps-{}.svg", flow.replace(' ', "-"));
        results.figure(&file, figure.svg()?, caption)?;
    }
    Ok(())
}

pub(super) fn flows(rows: &[Row]) -> Vec<&'static str> {
    let mut flows: Vec<_> = rows.iter().map(|row| row.flow).collect();
    flows.dedup();
    flows.sort_unstable();
    flows.dedup();
    flows
}

fn contenders(rows: &[&Row]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        if !names.contains(&row.contender) {
            names.push(row.contender.clone());
        }
    }
    names
}
