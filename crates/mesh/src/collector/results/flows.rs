//! Table of flows: the last report of each.

use rusqlite::{Connection, Transaction, params};
use tracing::warn;

use super::ResultRange;
use crate::collector::Flow;
use crate::database::unsigned;

/// Max flows per task: a port scan makes millions.
const MAX_FLOWS: u32 = 100_000;

/// Stores the last report of a flow, or deletes the flow.
pub(super) fn put(change: &Transaction<'_>, task: u64, flow: &Flow) -> rusqlite::Result<()> {
    let Flow { key, last, report } = flow;
    let Some(report) = report else {
        let query = "DELETE FROM flow WHERE task = ? AND key = ?";
        change.prepare_cached(query)?.execute(params![task.cast_signed(), key])?;
        return Ok(());
    };
    let query = "INSERT INTO flow VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (task, key) DO UPDATE SET last = ?3, report = ?4";
    let values = params![task.cast_signed(), key, last.as_nanos(), report];
    change.prepare_cached(query)?.execute(values)?;
    Ok(())
}

/// Deletes the flows with the oldest last packets, beyond the limit.
pub(super) fn bound(change: &Transaction<'_>, task: u64) -> rusqlite::Result<()> {
    let query = "DELETE FROM flow WHERE task = ?1 AND last < (
                     SELECT last FROM flow WHERE task = ?1 ORDER BY last DESC LIMIT 1 OFFSET ?2)";
    let gone = change.prepare_cached(query)?.execute(params![task.cast_signed(), MAX_FLOWS])?;
    if gone > 0 {
        warn!(
            "task number {task}: deleted {gone} flows beyond {MAX_FLOWS}; use a filter to observe fewer"
        );
    }
    Ok(())
}

pub(super) fn count(database: &Connection, task: u64) -> rusqlite::Result<u64> {
    let query = "SELECT COUNT(*) FROM flow WHERE task = ?";
    database.prepare_cached(query)?.query_row([task.cast_signed()], |row| unsigned(row, 0))
}

/// Number of flows whose first packet passed in a time range.
pub(super) fn begun(
    database: &Connection,
    task: u64,
    range: &std::ops::Range<i64>,
) -> rusqlite::Result<u64> {
    let mut statement = database.prepare_cached("SELECT key FROM flow WHERE task = ?")?;
    let mut rows = statement.query([task.cast_signed()])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        count += u64::from(Flow::first(&key).is_some_and(|first| range.contains(&first)));
    }
    Ok(count)
}

/// Whether older flows of the task may have been deleted, beyond the limit.
pub(super) fn is_bounded(database: &Connection, task: u64) -> rusqlite::Result<bool> {
    Ok(count(database, task)? > u64::from(MAX_FLOWS))
}

/// Reports of flows by their last packet, the latest first.
pub(super) fn found(
    database: &Connection,
    task: u64,
    range: &ResultRange,
) -> rusqlite::Result<Vec<String>> {
    let ResultRange { from, until, most, .. } = *range;
    let query = "SELECT report FROM flow WHERE task = ? AND last >= ? AND last < ?
                 ORDER BY last DESC LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), from, until, most];
    let rows = statement.query_map(values, |row| row.get(0))?;
    rows.collect()
}
