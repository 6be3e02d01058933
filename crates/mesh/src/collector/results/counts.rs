//! Table of counted intervals: those of the task, and longer ones.

use crate::protocol::Count;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};
use wirestamp_clock::{Time, Utc};

use super::{Counted, ResultRange, Step, Sum};
use crate::database::unsigned;

/// Adds a count to the stored intervals.
pub(super) fn add(change: &Transaction<'_>, task: u64, count: &Count) -> rusqlite::Result<()> {
    let query = "INSERT INTO count VALUES (?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET
                     packets = MIN(packets + excluded.packets, 1 << 62),
                     bytes = MIN(bytes + excluded.bytes, 1 << 62),
                     missed = MIN(missed + excluded.missed, 1 << 62),
                     watched = MIN(watched + excluded.watched, 1 << 62)";
    let mut statement = change.prepare_cached(query)?;
    let Count { begin, packets, bytes, missed, watched } = *count;
    for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
        let begin = begin.interval_begin(step.length()).as_nanos();
        let [packets, bytes, missed] = [packets, bytes, missed].map(u64::cast_signed);
        let key = [task.cast_signed(), step.seconds(), begin];
        let values = [packets, bytes, missed, watched.as_nanos()];
        statement.execute(params_from_iter(key.into_iter().chain(values)))?;
    }
    Ok(())
}

pub(super) fn counted(
    database: &Connection,
    task: u64,
    range: &ResultRange,
) -> rusqlite::Result<Vec<Counted>> {
    let ResultRange { step, from, until, most } = *range;
    let query = "SELECT begin, packets, bytes, missed, watched FROM count
                 WHERE task = ? AND step = ? AND begin >= ? AND begin < ?
                 ORDER BY begin LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), step.seconds(), from, until, most];
    let rows = statement.query_map(values, interval)?;
    rows.collect()
}

/// The newest intervals of a task from a time on, at most `most`, ordered by time.
pub(super) fn newest(
    database: &Connection,
    task: u64,
    from: Time<Utc>,
    most: u32,
) -> rusqlite::Result<Vec<Counted>> {
    let query = "SELECT begin, packets, bytes, missed, watched FROM count
                 WHERE task = ? AND step = ? AND begin >= ? ORDER BY begin DESC LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let step = Step::AsMeasured.seconds();
    let values = params![task.cast_signed(), step, from.as_nanos(), most];
    let rows = statement.query_map(values, interval)?;
    let mut newest = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    newest.reverse();
    Ok(newest)
}

/// Sum of the hours, which are never deleted. As exact as the floats of Prometheus, without overflow.
pub(super) fn sum(database: &Connection, task: u64) -> rusqlite::Result<Sum> {
    let query = "SELECT CAST(MIN(TOTAL(packets), 1 << 62) AS INTEGER),
                     CAST(MIN(TOTAL(bytes), 1 << 62) AS INTEGER),
                     CAST(MIN(TOTAL(missed), 1 << 62) AS INTEGER),
                     CAST(MIN(TOTAL(watched), 1 << 62) AS INTEGER)
                 FROM count WHERE task = ? AND step = ?";
    let values = [task.cast_signed(), Step::Hour.seconds()];
    database.prepare_cached(query)?.query_row(values, |row| {
        let (packets, bytes) = (unsigned(row, 0)?, unsigned(row, 1)?);
        Ok(Sum { packets, bytes, missed: unsigned(row, 2)?, watched_ns: unsigned(row, 3)? })
    })
}

fn interval(row: &Row<'_>) -> rusqlite::Result<Counted> {
    Ok(Counted {
        begin_ns: row.get(0)?,
        packets: unsigned(row, 1)?,
        bytes: unsigned(row, 2)?,
        missed: unsigned(row, 3)?,
        watched_ns: row.get(4)?,
    })
}
