//! Table of windows, including merged longer ones.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_metrics::{Counts, Summary};

use super::histograms::{self, Histograms};
use super::{Measured, ResultRange, Spread, Step};
use crate::collector::Window;
use crate::database::unsigned;

/// Number of columns before the two distributions, and of each distribution.
const AHEAD: usize = 16;
const SPREAD: usize = 9;

pub(super) fn insert(
    change: &Transaction<'_>,
    task: u64,
    begin: Time<Utc>,
    window: &Window,
) -> rusqlite::Result<()> {
    let counts = window.quality.counts();
    let Counts { sent, received, matched, lost, duplicated, reordered, unexpected, .. } = *counts;
    let Counts { undetermined_sent, undetermined_received, identical, .. } = *counts;
    let key = [task.cast_signed(), Step::AsMeasured.seconds(), begin.as_nanos()];
    let counts = [
        sent,
        received,
        matched,
        lost,
        duplicated,
        reordered,
        unexpected,
        undetermined_sent,
        undetermined_received,
        identical,
    ];
    let numbers = key.into_iter().chain(counts.map(u64::cast_signed));
    let mut values: Vec<Value> = numbers.map(Value::from).collect();
    let error = window.error();
    values.push(error.ok().map(Span::as_nanos).into());
    values.push(error.err().map(|why| why.as_ref().to_owned()).into());
    values.push(window.contradicts_the_clocks().into());
    for distribution in [window.quality.delay(), window.quality.variation()] {
        values.extend(columns(distribution.summary().as_ref()));
    }
    let places = vec!["?"; values.len()].join(", ");
    let query = format!("INSERT INTO window VALUES ({places})");
    change.prepare_cached(&query)?.execute(params_from_iter(values))?;
    histograms::insert(change, (task, Step::AsMeasured, begin), &Histograms::from(window))
}

fn columns(summary: Option<&Summary>) -> [Value; SPREAD] {
    let Some(summary) = summary else {
        let mut none = [const { Value::Null }; SPREAD];
        none[0] = Value::Integer(0);
        return none;
    };
    let Summary { count, min, mean, stddev, p50, p90, p99, p999, max } = *summary;
    let squares = stddev * stddev * count_to_f64(count.saturating_sub(1));
    [
        count.cast_signed().into(),
        min.into(),
        mean.into(),
        squares.into(),
        p50.into(),
        p90.into(),
        p99.into(),
        p999.into(),
        max.into(),
    ]
}

/// Merges windows into longer ones that ended between two times.
pub(super) fn merge(
    change: &Transaction<'_>,
    task: u64,
    before: Time<Utc>,
    until: Time<Utc>,
) -> rusqlite::Result<()> {
    for (of, step) in [(Step::AsMeasured, Step::Minute), (Step::Minute, Step::Hour)] {
        let length = step.length();
        let [from, until] = [before, until].map(|it| it.interval_begin(length).as_nanos());
        if from < until {
            let query = format!(
                "INSERT OR REPLACE INTO window
                 SELECT task, ?2, begin / ?3 * ?3, SUM(sent), SUM(received), SUM(matched),
                     SUM(lost), SUM(duplicated), SUM(reordered), SUM(unexpected),
                     SUM(given_up_sent), SUM(given_up_received), SUM(identical),
                     CASE WHEN MAX(not_synchronised) IS NULL THEN MAX(error) END,
                     MAX(not_synchronised), MAX(contradicts), {}, {}
                 FROM window WHERE task = ?1 AND step = ?4 AND begin >= ?5 AND begin < ?6
                 GROUP BY begin / ?3",
                together("delay"),
                together("variation")
            );
            let values =
                [task.cast_signed(), step.seconds(), length.as_nanos(), of.seconds(), from, until];
            change.prepare_cached(&query)?.execute(values)?;
            histograms::merge(change, task, (of, step), from..until)?;
        }
    }
    Ok(())
}

/// SQL to merge distributions. Percentiles come from histograms.
fn together(name: &str) -> String {
    let total = format!("TOTAL({name}_count * {name}_mean)");
    let count = format!("SUM({name}_count)");
    let squares = format!("TOTAL({name}_squares + {name}_count * {name}_mean * {name}_mean)");
    format!(
        "{count}, MIN({name}_min), CASE WHEN {count} > 0 THEN {total} / {count} END,
         CASE WHEN {count} > 0 THEN MAX(0.0, {squares} - {total} * {total} / {count}) END,
         NULL, NULL, NULL, NULL, MAX({name}_max)"
    )
}

pub(super) fn measured(
    database: &Connection,
    task: u64,
    range: &ResultRange,
) -> rusqlite::Result<Vec<Measured>> {
    let ResultRange { step, from, until, most } = *range;
    let query = "SELECT * FROM window WHERE task = ? AND step = ? AND begin >= ? AND begin < ?
                 ORDER BY begin LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), step.seconds(), from, until, most];
    let rows = statement.query_map(values, window)?;
    rows.collect()
}

pub(super) fn newest(database: &Connection, task: u64) -> rusqlite::Result<Option<Measured>> {
    let query = "SELECT * FROM window WHERE task = ? AND step = ? ORDER BY begin DESC LIMIT 1";
    let values = [task.cast_signed(), Step::AsMeasured.seconds()];
    database.prepare_cached(query)?.query_row(values, window).optional()
}

fn window(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let why: Option<String> = row.get(14)?;
    let delay = spread(row, AHEAD)?;
    Ok(Measured {
        begin_ns: row.get(2)?,
        counts: Counts {
            sent: unsigned(row, 3)?,
            received: unsigned(row, 4)?,
            matched: unsigned(row, 5)?,
            lost: unsigned(row, 6)?,
            duplicated: unsigned(row, 7)?,
            reordered: unsigned(row, 8)?,
            unexpected: unsigned(row, 9)?,
            undetermined_sent: unsigned(row, 10)?,
            undetermined_received: unsigned(row, 11)?,
            identical: unsigned(row, 12)?,
        },
        error_ns: row.get(13)?,
        above_minimum_ns: delay.as_ref().map(Spread::above_minimum),
        delay_ns: delay.filter(|_| why.is_none()),
        not_synchronised: why.and_then(|name| name.parse().ok()),
        contradicts_the_clocks: row.get(15)?,
        variation_ns: spread(row, AHEAD + SPREAD)?,
        mos: None,
        no_mos: None,
    })
}

fn spread(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Spread>> {
    let count = unsigned(row, first)?;
    if count == 0 {
        return Ok(None);
    }
    let squares: f64 = row.get(first + 3)?;
    let stddev = if count > 1 { (squares / count_to_f64(count - 1)).sqrt() } else { 0.0 };
    Ok(Some(Spread {
        count,
        min: row.get(first + 1)?,
        mean: row.get(first + 2)?,
        stddev,
        p50: row.get(first + 4)?,
        p90: row.get(first + 5)?,
        p99: row.get(first + 6)?,
        p999: row.get(first + 7)?,
        max: row.get(first + 8)?,
    }))
}
