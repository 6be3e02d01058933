//! Stored rows of windows, as sent to the controller. It merges those of several collectors as a collector merges its own.

use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, params, params_from_iter};
use serde::{Deserialize, Serialize};
use wirestamp_clock::Time;

use super::tables::SCHEMA;
use super::{Measured, ResultRange, Results, ShardWindow, Step, windows};
use crate::DatabaseError;
use crate::database::Database;

/// Tables with rows for each window.
const TABLES: [&str; 3] = ["window", "histogram", "return_path"];

/// Columns before the values: task, step and begin.
const KEY: usize = 3;

/// A row of a window.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct StoredRow {
    table: String,
    /// Begin of the window, in nanoseconds since 1970 (UTC).
    pub(crate) begin: i64,
    /// Whether it is a minute of which no seconds are stored any more.
    is_minute: bool,
    values: Vec<StoredValue>,
}

/// A value of SQLite.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
enum StoredValue {
    Null,
    Integer(i64),
    /// Bits of the number, which JSON would round.
    Real(u64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<Value> for StoredValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Integer(value) => Self::Integer(value),
            Value::Real(value) => Self::Real(value.to_bits()),
            Value::Text(value) => Self::Text(value),
            Value::Blob(value) => Self::Blob(value),
        }
    }
}

impl From<StoredValue> for Value {
    fn from(value: StoredValue) -> Self {
        match value {
            StoredValue::Null => Self::Null,
            StoredValue::Integer(value) => Self::Integer(value),
            StoredValue::Real(bits) => Self::Real(f64::from_bits(bits)),
            StoredValue::Text(value) => Self::Text(value),
            StoredValue::Blob(value) => Self::Blob(value),
        }
    }
}

/// Rows of a task that begin in a time range: seconds, and minutes whose seconds were deleted.
pub(super) fn found(
    database: &Connection,
    task: u64,
    range: std::ops::Range<i64>,
) -> rusqlite::Result<Vec<StoredRow>> {
    let mut rows = Vec::new();
    let minute = Step::Minute.length().as_nanos();
    for table in TABLES {
        let query = format!(
            "SELECT * FROM {table} WHERE task = ?1 AND begin >= ?2 AND begin < ?3 AND (step = 0 OR (
                 step = 60 AND NOT EXISTS (
                     SELECT 1 FROM window AS second WHERE second.task = ?1 AND second.step = 0
                     AND second.begin >= {table}.begin AND second.begin < {table}.begin + ?4)))
             ORDER BY begin"
        );
        let mut statement = database.prepare_cached(&query)?;
        let columns = statement.column_count();
        let values = params![task.cast_signed(), range.start, range.end, minute];
        let found = statement.query_map(values, |row| {
            let values = (KEY..columns).map(|column| Ok(row.get::<_, Value>(column)?.into()));
            Ok(StoredRow {
                table: table.to_owned(),
                begin: row.get(2)?,
                is_minute: row.get::<_, i64>(1)? > 0,
                values: values.collect::<rusqlite::Result<_>>()?,
            })
        })?;
        for row in found {
            rows.push(row?);
        }
    }
    Ok(rows)
}

/// The window that a collector with the rows of all these collectors would have; none without rows. A second that two
/// collectors have counts once.
///
/// # Errors
/// When the rows are not valid.
pub(crate) fn merged(
    step: Step,
    begin: i64,
    collectors: &[Vec<StoredRow>],
) -> Result<Option<Measured>, DatabaseError> {
    let range = range(step, begin);
    Ok(database(&range, collectors)?.measured(0, &range)?.pop())
}

/// As [`merged`], with the histograms.
///
/// # Errors
/// When the rows are not valid.
pub(crate) fn merged_shard(
    step: Step,
    begin: i64,
    collectors: &[Vec<StoredRow>],
) -> Result<Option<ShardWindow>, DatabaseError> {
    let range = range(step, begin);
    Ok(database(&range, collectors)?.shard_windows(0, &range)?.pop())
}

/// One window of this length.
fn range(step: Step, begin: i64) -> ResultRange {
    let until = begin.saturating_add(step.length().as_nanos());
    ResultRange { step, from: begin, until, most: 1 }
}

/// A database with the rows of all these collectors, and the window that they are merged to.
fn database(range: &ResultRange, collectors: &[Vec<StoredRow>]) -> Result<Results, DatabaseError> {
    let ResultRange { from: begin, until, .. } = *range;
    let mut results = Results { database: Database::in_memory(&SCHEMA)? };
    results.database.change(|change| {
        for (place, rows) in (0..).zip(collectors) {
            rows.iter().try_for_each(|row| insert(change, row, place))?;
        }
        windows::merge(change, 0, Time::from_nanos(begin), Time::from_nanos(until))
    })?;
    Ok(results)
}

/// Inserts a row as one of a second. A minute without seconds is one, too: those of two collectors differ by their place.
fn insert(change: &Transaction<'_>, row: &StoredRow, place: i64) -> rusqlite::Result<()> {
    // Other tables would be an error of the collector.
    let Some(table) = TABLES.iter().find(|table| **table == row.table) else { return Ok(()) };
    let begin = if row.is_minute { row.begin.saturating_add(place) } else { row.begin };
    let key = [0, 0, begin].map(Value::Integer);
    let values = key.into_iter().chain(row.values.iter().cloned().map(Value::from));
    let values: Vec<_> = values.collect();
    let places = vec!["?"; values.len()].join(", ");
    let query = format!("INSERT OR IGNORE INTO {table} VALUES ({places})");
    change.prepare_cached(&query)?.execute(params_from_iter(values))?;
    Ok(())
}
