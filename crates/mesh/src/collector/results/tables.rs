//! The tables of results, and what is asked of them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};
use wirestamp_clock::Time;
use wirestamp_metrics::{Counts, Point, Summary};

use super::{Delivered, Measured, Progress};
use crate::collector::{NotSynchronised, Settled, side};
use crate::database::{Form, unsigned};

/// "WSRE".
pub(super) const FORM: Form = Form { application: 0x5753_5245, version: 1, tables: TABLES };

/// Times and delays are in nanoseconds.
const TABLES: &str = "
    BEGIN;
    CREATE TABLE task (
        number INTEGER PRIMARY KEY, settled_until INTEGER NOT NULL, late INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE point (
        task INTEGER NOT NULL, point INTEGER NOT NULL, spool INTEGER NOT NULL,
        acknowledged INTEGER NOT NULL, given_up INTEGER NOT NULL, unknown INTEGER NOT NULL,
        PRIMARY KEY (task, point)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE window (
        task INTEGER NOT NULL, begin INTEGER NOT NULL,
        sent INTEGER NOT NULL, received INTEGER NOT NULL, matched INTEGER NOT NULL,
        lost INTEGER NOT NULL, duplicated INTEGER NOT NULL, reordered INTEGER NOT NULL,
        unexpected INTEGER NOT NULL, given_up_sent INTEGER NOT NULL,
        given_up_received INTEGER NOT NULL, identical INTEGER NOT NULL,
        error INTEGER, not_synchronised TEXT, contradicts INTEGER NOT NULL,
        delay_count INTEGER, delay_min INTEGER, delay_mean REAL, delay_stddev REAL,
        delay_p50 INTEGER, delay_p90 INTEGER, delay_p99 INTEGER, delay_p999 INTEGER,
        delay_max INTEGER,
        above_count INTEGER, above_min INTEGER, above_mean REAL, above_stddev REAL,
        above_p50 INTEGER, above_p90 INTEGER, above_p99 INTEGER, above_p999 INTEGER,
        above_max INTEGER,
        variation_count INTEGER, variation_min INTEGER, variation_mean REAL,
        variation_stddev REAL, variation_p50 INTEGER, variation_p90 INTEGER,
        variation_p99 INTEGER, variation_p999 INTEGER, variation_max INTEGER,
        PRIMARY KEY (task, begin)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x57535245;
    PRAGMA user_version = 1;
    COMMIT;";

/// The columns of a window ahead of its three summaries, and of each of these.
const AHEAD: usize = 15;
const SUMMARY: usize = 9;

pub(super) fn progress(database: &Connection, task: u64) -> rusqlite::Result<Progress> {
    let query = "SELECT settled_until FROM task WHERE number = ?";
    let task = task.cast_signed();
    let settled: Option<i64> = database.query_row(query, [task], |row| row.get(0)).optional()?;
    let query =
        "SELECT spool, acknowledged, given_up, unknown FROM point WHERE task = ? AND point = ?";
    let delivered = |point| {
        let found = database.query_row(query, params![task, number(point)], |row| {
            Ok(Delivered {
                spool: Some(row.get(0)?),
                acknowledged: unsigned(row, 1)?,
                given_up: unsigned(row, 2)?,
                is_unknown: row.get(3)?,
            })
        });
        Ok::<_, rusqlite::Error>(found.optional()?.unwrap_or_default())
    };
    Ok(Progress {
        settled_until: Time::from_nanos(settled.unwrap_or(i64::MIN)),
        delivered: [delivered(Point::A)?, delivered(Point::B)?],
    })
}

pub(super) fn begin_spool(
    change: &Transaction<'_>,
    task: u64,
    point: Point,
    (spool, behind): (i64, u64),
) -> rusqlite::Result<()> {
    let query = "INSERT INTO point VALUES (?1, ?2, ?3, ?4, 0, TRUE)
                 ON CONFLICT DO UPDATE SET spool = ?3, acknowledged = ?4, unknown = TRUE";
    let (task, behind) = (task.cast_signed(), behind.cast_signed());
    change.execute(query, params![task, number(point), spool, behind])?;
    Ok(())
}

pub(super) fn settle(
    change: &Transaction<'_>,
    task: u64,
    settled: &Settled,
) -> rusqlite::Result<()> {
    let (task, late) = (task.cast_signed(), settled.late.cast_signed());
    let query = "INSERT INTO task VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET settled_until = ?2, late = late + ?3";
    let mut statement = change.prepare_cached(query)?;
    statement.execute(params![task, settled.until.as_nanos(), late])?;
    let query = "UPDATE point SET acknowledged = ?3, given_up = given_up + ?4,
                     unknown = unknown AND acknowledged = ?3
                 WHERE task = ?1 AND point = ?2";
    let mut statement = change.prepare_cached(query)?;
    for point in [Point::A, Point::B] {
        let [up_to, given_up] =
            [settled.acknowledged, settled.given_up].map(|it| it[side(point)].cast_signed());
        statement.execute(params![task, number(point), up_to, given_up])?;
    }
    Ok(())
}

/// What a point is called in the tables.
fn number(point: Point) -> u8 {
    u8::from(point == Point::B)
}

pub(super) fn insert(
    change: &Transaction<'_>,
    task: u64,
    measured: &Measured,
) -> rusqlite::Result<()> {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, .. } = measured;
    let Counts { sent, received, matched, lost, duplicated, reordered, unexpected, .. } = *counts;
    let Counts { given_up_sent, given_up_received, identical, .. } = *counts;
    let numbers = [
        task,
        measured.begin_ns.cast_unsigned(),
        sent,
        received,
        matched,
        lost,
        duplicated,
        reordered,
        unexpected,
        given_up_sent,
        given_up_received,
        identical,
    ];
    let mut values: Vec<Value> = numbers.map(|it| it.cast_signed().into()).into();
    values.push(measured.error_ns.into());
    values.push(measured.not_synchronised.map(|it| it.name().to_owned()).into());
    values.push(measured.contradicts_the_clocks.into());
    for summary in [delay_ns, above_minimum_ns, variation_ns] {
        match summary {
            Some(summary) => values.extend(columns(summary)),
            None => values.extend([const { Value::Null }; SUMMARY]),
        }
    }
    let places = vec!["?"; values.len()].join(", ");
    let query = format!("INSERT INTO window VALUES ({places})");
    change.prepare_cached(&query)?.execute(params_from_iter(values))?;
    Ok(())
}

fn columns(summary: &Summary) -> [Value; SUMMARY] {
    let Summary { count, min, mean, stddev, p50, p90, p99, p999, max } = *summary;
    [
        count.cast_signed().into(),
        min.into(),
        mean.into(),
        stddev.into(),
        p50.into(),
        p90.into(),
        p99.into(),
        p999.into(),
        max.into(),
    ]
}

pub(super) fn measured(
    database: &Connection,
    task: u64,
    (from, until): (i64, i64),
    most: u32,
) -> rusqlite::Result<Vec<Measured>> {
    let query = "SELECT * FROM window WHERE task = ? AND begin >= ? AND begin < ?
                 ORDER BY begin LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let rows = statement.query_map(params![task.cast_signed(), from, until, most], window)?;
    rows.collect()
}

fn window(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let why: Option<String> = row.get(13)?;
    Ok(Measured {
        begin_ns: row.get(1)?,
        counts: Counts {
            sent: unsigned(row, 2)?,
            received: unsigned(row, 3)?,
            matched: unsigned(row, 4)?,
            lost: unsigned(row, 5)?,
            duplicated: unsigned(row, 6)?,
            reordered: unsigned(row, 7)?,
            unexpected: unsigned(row, 8)?,
            given_up_sent: unsigned(row, 9)?,
            given_up_received: unsigned(row, 10)?,
            identical: unsigned(row, 11)?,
        },
        error_ns: row.get(12)?,
        not_synchronised: why.and_then(|name| NotSynchronised::named(&name)),
        contradicts_the_clocks: row.get(14)?,
        delay_ns: summary(row, AHEAD)?,
        above_minimum_ns: summary(row, AHEAD + SUMMARY)?,
        variation_ns: summary(row, AHEAD + 2 * SUMMARY)?,
    })
}

fn summary(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Summary>> {
    let count: Option<i64> = row.get(first)?;
    let Some(count) = count else { return Ok(None) };
    Ok(Some(Summary {
        count: count.cast_unsigned(),
        min: row.get(first + 1)?,
        mean: row.get(first + 2)?,
        stddev: row.get(first + 3)?,
        p50: row.get(first + 4)?,
        p90: row.get(first + 5)?,
        p99: row.get(first + 6)?,
        p999: row.get(first + 7)?,
        max: row.get(first + 8)?,
    }))
}
