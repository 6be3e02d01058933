//! Counts of intervals that contain a move of the task.
//!
//! Batches do not end where intervals end. So an interval that contains the start of an epoch has counts of two
//! collectors, or of two epochs of one collector. These parts are kept for the handover.

use std::ops::Range;

use rusqlite::{Transaction, params};
use wirestamp_clock::{Time, Utc};

use super::{Step, hours};
use crate::protocol::Count;

/// Batches of a counting task of which the parts in earlier intervals are kept. More than a probe delivers through Kafka
/// without a receipt (`probe/kafka/outbox.rs`); on a connection it reads its receipts at once.
const TAIL: u64 = 256;

/// Keeps the parts of a batch in intervals that began before it.
pub(super) fn keep_tail<'a>(
    change: &Transaction<'_>,
    task: u64,
    number: u64,
    counts: impl Iterator<Item = &'a Count>,
) -> rusqlite::Result<()> {
    let query = "INSERT INTO count_tail VALUES (?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET packets = packets + excluded.packets,
                     bytes = bytes + excluded.bytes, missed = missed + excluded.missed,
                     watched = watched + excluded.watched";
    let (task, mut is_any) = (task.cast_signed(), false);
    for Count { begin, packets, bytes, missed, watched } in counts {
        let (begin, watched) = (begin.as_nanos(), watched.as_nanos());
        let [packets, bytes, missed] = [*packets, *bytes, *missed].map(u64::cast_signed);
        let values = params![task, number.cast_signed(), begin, packets, bytes, missed, watched];
        change.prepare_cached(query)?.execute(values)?;
        is_any = true;
    }
    if is_any {
        // Those of an earlier epoch here stay until its handover.
        let query = "DELETE FROM count_tail WHERE task = ?1 AND number < ?2 AND number >
                         ifnull((SELECT max(behind) FROM epoch WHERE task = ?1), 0)";
        let oldest = number.saturating_sub(TAIL).cast_signed();
        change.prepare_cached(query)?.execute(params![task, oldest])?;
    }
    Ok(())
}

/// Keeps the counts of the interval that contains the start of an epoch: they are of an earlier epoch. A later handover
/// of that one must not delete what the new epoch adds.
pub(super) fn keep_earlier(
    change: &Transaction<'_>,
    task: u64,
    epoch: u64,
    start: i64,
) -> rusqlite::Result<()> {
    let query = "INSERT OR REPLACE INTO count_earlier
                 SELECT task, ?2, begin, packets, bytes, missed, watched FROM count
                 WHERE task = ?1 AND step = 0 AND begin < ?3 ORDER BY begin DESC LIMIT 1";
    change.execute(query, params![task.cast_signed(), epoch.cast_signed(), start])?;
    Ok(())
}

/// Deletes the counts from a time on that were stored before an epoch began here. Returns whether there were any.
pub(super) fn delete_earlier(
    change: &Transaction<'_>,
    task: u64,
    start: i64,
    epoch: u64,
) -> rusqlite::Result<bool> {
    let from = "count_earlier WHERE task = ?1 AND epoch = ?2";
    let values = params![task.cast_signed(), epoch.cast_signed()];
    // None: what is here was stored in that epoch.
    let Some(kept) = parts(change, from, values)?.pop() else { return Ok(false) };
    change.execute(&format!("DELETE FROM {from}"), values)?;
    let [begin, ..] = kept;
    let mut has_changed = delete(change, task, start..begin)?;
    if begin >= start {
        subtract(change, task, &[kept])?;
        delete_empty(change, task, begin..begin.saturating_add(1))?;
        has_changed = true;
    }
    Ok(has_changed)
}

/// Deletes counts of intervals that begin in a time range, also from minutes and hours. Returns whether there were any.
pub(super) fn delete(
    change: &Transaction<'_>,
    task: u64,
    range: Range<i64>,
) -> rusqlite::Result<bool> {
    let its = "count WHERE task = ?1 AND step = 0 AND begin >= ?2 AND begin < ?3";
    let values = params![task.cast_signed(), range.start, range.end];
    let counts = parts(change, its, values)?;
    subtract(change, task, &counts)?;
    change.execute(&format!("DELETE FROM {its}"), values)?;
    delete_empty(change, task, range)?;
    Ok(!counts.is_empty())
}

/// Deletes intervals of which nothing is left.
fn delete_empty(change: &Transaction<'_>, task: u64, range: Range<i64>) -> rusqlite::Result<()> {
    let query = "DELETE FROM count WHERE task = ?1 AND begin >= ?2 AND begin < ?3 AND packets = 0
                 AND bytes = 0 AND missed = 0 AND watched = 0";
    change.execute(query, params![task.cast_signed(), range.start, range.end])?;
    Ok(())
}

/// Subtracts the parts of batches in intervals that began before a time: those above the first number, up to the last
/// one. Returns whether there were any.
pub(super) fn subtract_tail(
    change: &Transaction<'_>,
    task: u64,
    (above, last): (u64, u64),
    start: i64,
) -> rusqlite::Result<bool> {
    let tail = "count_tail WHERE task = ?1 AND number > ?2 AND number <= ?3";
    let values = params![task.cast_signed(), above.cast_signed(), last.cast_signed()];
    let parts = parts(change, &format!("{tail} AND begin < {start}"), values)?;
    subtract(change, task, &parts)?;
    change.execute(&format!("DELETE FROM {tail}"), values)?;
    Ok(!parts.is_empty())
}

/// Begin, packets, bytes, missed packets, observed time.
type Part = [i64; 5];

/// Counts that a query selects.
fn parts(
    change: &Transaction<'_>,
    from: &str,
    values: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Part>> {
    let query = format!("SELECT begin, packets, bytes, missed, watched FROM {from}");
    let mut statement = change.prepare(&query)?;
    let rows = statement.query_map(values, |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
    })?;
    rows.collect()
}

/// Subtracts counts from their intervals and from the minutes and hours that contain these.
fn subtract(change: &Transaction<'_>, task: u64, parts: &[Part]) -> rusqlite::Result<()> {
    let query = "UPDATE count SET packets = max(packets - ?4, 0), bytes = max(bytes - ?5, 0),
                     missed = max(missed - ?6, 0), watched = max(watched - ?7, 0)
                 WHERE task = ?1 AND step = ?2 AND begin = ?3";
    let mut statement = change.prepare_cached(query)?;
    for [begin, packets, bytes, missed, watched] in parts {
        for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
            let begin = Time::<Utc>::from_nanos(*begin).interval_begin(step.length()).as_nanos();
            let (task, step) = (task.cast_signed(), step.seconds());
            statement.execute(params![task, step, begin, packets, bytes, missed, watched])?;
        }
    }
    let first = parts.iter().map(|[begin, ..]| *begin).min();
    first.map_or(Ok(()), |first| hours::archive_again(change, task, Time::from_nanos(first)))
}
