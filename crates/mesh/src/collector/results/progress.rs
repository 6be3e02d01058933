//! Progress of tasks: what was delivered, and the time before which results are final.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::Step;
use crate::collector::{Settled, side};
use crate::database::unsigned;

/// Progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Everything before this time is final.
    pub settled_until: Time<Utc>,
    /// Epoch of the placement in which the last batches were received; 0 if the task has not moved.
    pub epoch: u64,
    /// Deliveries of each point.
    pub delivered: [Delivered; 2],
}

/// Stored deliveries of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Spool number; none before the first delivery.
    pub spool: Option<i64>,
    /// Last acknowledged batch of the spool.
    pub acknowledged: u64,
    /// Packets dropped by the probe, in all its spools.
    pub dropped: u64,
    /// No batch of the spool is acknowledged; the time before it is not observed.
    pub is_unknown: bool,
}

pub(super) fn progress(database: &Connection, task: u64) -> rusqlite::Result<Progress> {
    let query = "SELECT settled_until, epoch FROM task WHERE number = ?";
    let task = task.cast_signed();
    let mut statement = database.prepare_cached(query)?;
    let stored = statement.query_row([task], |row| Ok((row.get(0)?, unsigned(row, 1)?)));
    let (settled_until, epoch) = stored.optional()?.unwrap_or((i64::MIN, 0));
    let query =
        "SELECT spool, acknowledged, given_up, unknown FROM point WHERE task = ? AND point = ?";
    let mut statement = database.prepare_cached(query)?;
    let mut delivered = |point| {
        let found = statement.query_row(params![task, number(point)], |row| {
            Ok(Delivered {
                spool: Some(row.get(0)?),
                acknowledged: unsigned(row, 1)?,
                dropped: unsigned(row, 2)?,
                is_unknown: row.get(3)?,
            })
        });
        Ok::<_, rusqlite::Error>(found.optional()?.unwrap_or_default())
    };
    Ok(Progress {
        settled_until: Time::from_nanos(settled_until),
        epoch,
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
    // If more results of an hour arrive, it is archived again.
    let hour = settled.first().map(|first| first.interval_begin(Step::Hour.length()).as_nanos());
    let query = "INSERT INTO task (number, settled_until, late) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET settled_until = ?2, late = late + ?3,
                     archived_until = MIN(archived_until, ?4)";
    let mut statement = change.prepare_cached(query)?;
    let until = settled.until.as_nanos();
    statement.execute(params![task, until, late, hour.unwrap_or(i64::MAX)])?;
    let query = "UPDATE point SET acknowledged = ?3, given_up = given_up + ?4,
                     unknown = unknown AND acknowledged = ?3
                 WHERE task = ?1 AND point = ?2";
    let mut statement = change.prepare_cached(query)?;
    for point in [Point::A, Point::B] {
        let [up_to, dropped] =
            [settled.acknowledged, settled.dropped].map(|it| it[side(point)].cast_signed());
        statement.execute(params![task, number(point), up_to, dropped])?;
    }
    Ok(())
}

/// Number of a point in the tables.
pub(super) fn number(point: Point) -> u8 {
    u8::from(point == Point::B)
}
