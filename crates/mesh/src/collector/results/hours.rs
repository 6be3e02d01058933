//! Hours of results, and their archiving.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use wirestamp_clock::{Time, Utc};

use super::{Hour, Step, windows};

/// The next hour to archive, if it is complete: `next_results` returns the earliest time of further results, given the
/// settled time. Missing minutes and the hour itself are merged.
pub(super) fn next(
    change: &Transaction<'_>,
    task: u64,
    next_results: impl FnOnce(Time<Utc>) -> Time<Utc>,
) -> rusqlite::Result<Option<Hour>> {
    let Some((settled_until, begin)) = oldest(change, task)? else { return Ok(None) };
    let hour = Hour { begin, settled_until };
    if hour.end() > next_results(settled_until) {
        return Ok(None);
    }
    windows::merge(change, task, settled_until, hour.end())?;
    Ok(Some(hour))
}

/// Settled time of a task, and begin of its first hour that is not archived.
fn oldest(database: &Connection, task: u64) -> rusqlite::Result<Option<(Time<Utc>, Time<Utc>)>> {
    // Each task has results in only one of these tables.
    let query = "SELECT settled_until, COALESCE(
            (SELECT MIN(begin) FROM window
             WHERE task = number AND step = 0 AND begin >= IFNULL(archived_until, begin)),
            (SELECT MIN(begin) FROM count
             WHERE task = number AND step = 0 AND begin >= IFNULL(archived_until, begin)),
            (SELECT MIN(last) FROM flow
             WHERE task = number AND last >= IFNULL(archived_until, last)))
        FROM task WHERE number = ?";
    let found = database.query_row(query, [task.cast_signed()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
    });
    let Some((settled_until, Some(oldest))) = found.optional()? else { return Ok(None) };
    let begin = Time::from_nanos(oldest).interval_begin(Step::Hour.length());
    Ok(Some((Time::from_nanos(settled_until), begin)))
}

/// Marks an hour as archived, unless more results have arrived since it was read.
pub(super) fn archived(change: &Transaction<'_>, task: u64, hour: &Hour) -> rusqlite::Result<()> {
    let query = "UPDATE task SET archived_until = ?2
                 WHERE number = ?1 AND (settled_until = ?3 OR ?3 >= ?2)";
    let (end, settled_until) = (hour.end().as_nanos(), hour.settled_until.as_nanos());
    change.execute(query, params![task.cast_signed(), end, settled_until])?;
    Ok(())
}

/// Archives the hour that contains this time again, and those after it: results have changed.
pub(super) fn archive_again(
    change: &Transaction<'_>,
    task: u64,
    first: Time<Utc>,
) -> rusqlite::Result<()> {
    let hour = first.interval_begin(Step::Hour.length()).as_nanos();
    let query = "UPDATE task SET archived_until = min(archived_until, ?2) WHERE number = ?1";
    change.prepare_cached(query)?.execute(params![task.cast_signed(), hour])?;
    Ok(())
}

/// Deletes archived hours that ended before a time, and old flows.
///
/// The seconds of the current minute stay: the minute is merged again when more arrive.
pub(super) fn forget(
    change: &Transaction<'_>,
    task: u64,
    before: Time<Utc>,
) -> rusqlite::Result<()> {
    let hour = before.interval_begin(Step::Hour.length()).as_nanos();
    let minute = Step::Minute.length().as_nanos();
    for table in ["window", "histogram", "return_path", "count"] {
        let query = format!(
            "DELETE FROM {table} WHERE task = ?1 AND step = 0 AND begin < ?2 AND begin <
             (SELECT MIN(archived_until, settled_until / ?3 * ?3) FROM task WHERE number = ?1)"
        );
        change.prepare_cached(&query)?.execute(params![task.cast_signed(), hour, minute])?;
    }
    let query = "DELETE FROM flow WHERE task = ?1 AND last < MIN(?2, (
                     SELECT archived_until FROM task WHERE number = ?1))";
    change.prepare_cached(query)?.execute(params![task.cast_signed(), before.as_nanos()])?;
    Ok(())
}
