//! Tables of results, and the progress of tasks.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use wirestamp_clock::Time;
use wirestamp_metrics::Point;

use super::{Delivered, Progress, Step};
use crate::collector::{Settled, side};
use crate::database::{DatabaseSchema, unsigned};

/// "WSRE".
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_5245,
    version: 7,
    tables: TABLES,
    upgrades: &[(3, HISTOGRAMS), (4, RETURN_PATHS), (5, EPOCHS), (6, OBSERVED)],
};

/// Tasks from before version 7 archive no observations.
const OBSERVED: &str = "
    BEGIN;
    CREATE TABLE observed_batch (
        id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, epoch INTEGER NOT NULL,
        point INTEGER NOT NULL, spool INTEGER NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, is_unknown INTEGER NOT NULL, message BLOB, until INTEGER,
        packets INTEGER, malformed TEXT
    ) STRICT;
    CREATE TABLE observed_hour (
        task INTEGER NOT NULL, hour INTEGER NOT NULL, epoch INTEGER NOT NULL,
        batch INTEGER NOT NULL, PRIMARY KEY (task, hour, epoch, batch)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 7;
    COMMIT;";

/// Tasks from before version 6 have not moved.
const EPOCHS: &str = "
    BEGIN;
    ALTER TABLE task ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE epoch (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER, spool INTEGER NOT NULL,
        behind INTEGER NOT NULL, PRIMARY KEY (task, epoch)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE count_tail (
        task INTEGER NOT NULL, number INTEGER NOT NULL, begin INTEGER NOT NULL,
        packets INTEGER NOT NULL, bytes INTEGER NOT NULL, missed INTEGER NOT NULL,
        watched INTEGER NOT NULL,
        PRIMARY KEY (task, number, begin)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 6;
    COMMIT;";

/// Windows from before version 4 have no histograms.
const HISTOGRAMS: &str = "
    BEGIN;
    CREATE TABLE histogram (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        delay BLOB NOT NULL, variation BLOB NOT NULL,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 4;
    COMMIT;";

/// Windows from before version 5 have no return paths.
const RETURN_PATHS: &str = "
    BEGIN;
    CREATE TABLE return_path (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        answered INTEGER NOT NULL, lost INTEGER NOT NULL, contradicts INTEGER NOT NULL,
        unknown_error INTEGER NOT NULL, round_trip_error INTEGER, delay_error INTEGER,
        round_trip_count INTEGER NOT NULL, round_trip_min INTEGER, round_trip_mean REAL,
        round_trip_squares REAL, round_trip_p50 INTEGER, round_trip_p90 INTEGER,
        round_trip_p99 INTEGER, round_trip_p999 INTEGER, round_trip_max INTEGER,
        delay_count INTEGER NOT NULL, delay_min INTEGER, delay_mean REAL, delay_squares REAL,
        delay_p50 INTEGER, delay_p90 INTEGER, delay_p99 INTEGER, delay_p999 INTEGER,
        delay_max INTEGER,
        round_trips BLOB NOT NULL, delays BLOB NOT NULL,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 5;
    COMMIT;";

/// Times and delays are in nanoseconds. `step` is the length of a window or interval in seconds, 0 as measured; the
/// others are merged from these. `squares` is the sum of squared distances from the mean, which can be merged.
/// Histograms are encoded by [`wirestamp_metrics::CompactHistogram`].
///
/// `epoch` is that of the placement of a task. Each epoch that began here has a `start`, from which this collector
/// computes the results. `count_tail` has the parts of the newest batches in intervals that began before the batch.
/// `observed_batch` has acknowledged batches that are not in a file yet ([`super::observed`]). Places (`id`) are not used
/// again, because they are part of file names.
const TABLES: &str = "
    BEGIN;
    CREATE TABLE task (
        number INTEGER PRIMARY KEY, settled_until INTEGER NOT NULL, late INTEGER NOT NULL,
        archived_until INTEGER, epoch INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE epoch (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER, spool INTEGER NOT NULL,
        behind INTEGER NOT NULL, PRIMARY KEY (task, epoch)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE point (
        task INTEGER NOT NULL, point INTEGER NOT NULL, spool INTEGER NOT NULL,
        acknowledged INTEGER NOT NULL, given_up INTEGER NOT NULL, unknown INTEGER NOT NULL,
        PRIMARY KEY (task, point)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE window (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        sent INTEGER NOT NULL, received INTEGER NOT NULL, matched INTEGER NOT NULL,
        lost INTEGER NOT NULL, duplicated INTEGER NOT NULL, reordered INTEGER NOT NULL,
        unexpected INTEGER NOT NULL, given_up_sent INTEGER NOT NULL,
        given_up_received INTEGER NOT NULL, identical INTEGER NOT NULL,
        error INTEGER, not_synchronised TEXT, contradicts INTEGER NOT NULL,
        delay_count INTEGER NOT NULL, delay_min INTEGER, delay_mean REAL, delay_squares REAL,
        delay_p50 INTEGER, delay_p90 INTEGER, delay_p99 INTEGER, delay_p999 INTEGER,
        delay_max INTEGER,
        variation_count INTEGER NOT NULL, variation_min INTEGER, variation_mean REAL,
        variation_squares REAL, variation_p50 INTEGER, variation_p90 INTEGER,
        variation_p99 INTEGER, variation_p999 INTEGER, variation_max INTEGER,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE histogram (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        delay BLOB NOT NULL, variation BLOB NOT NULL,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE return_path (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        answered INTEGER NOT NULL, lost INTEGER NOT NULL, contradicts INTEGER NOT NULL,
        unknown_error INTEGER NOT NULL, round_trip_error INTEGER, delay_error INTEGER,
        round_trip_count INTEGER NOT NULL, round_trip_min INTEGER, round_trip_mean REAL,
        round_trip_squares REAL, round_trip_p50 INTEGER, round_trip_p90 INTEGER,
        round_trip_p99 INTEGER, round_trip_p999 INTEGER, round_trip_max INTEGER,
        delay_count INTEGER NOT NULL, delay_min INTEGER, delay_mean REAL, delay_squares REAL,
        delay_p50 INTEGER, delay_p90 INTEGER, delay_p99 INTEGER, delay_p999 INTEGER,
        delay_max INTEGER,
        round_trips BLOB NOT NULL, delays BLOB NOT NULL,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE count (
        task INTEGER NOT NULL, step INTEGER NOT NULL, begin INTEGER NOT NULL,
        packets INTEGER NOT NULL, bytes INTEGER NOT NULL, missed INTEGER NOT NULL,
        watched INTEGER NOT NULL,
        PRIMARY KEY (task, step, begin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE count_tail (
        task INTEGER NOT NULL, number INTEGER NOT NULL, begin INTEGER NOT NULL,
        packets INTEGER NOT NULL, bytes INTEGER NOT NULL, missed INTEGER NOT NULL,
        watched INTEGER NOT NULL,
        PRIMARY KEY (task, number, begin)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE flow (
        task INTEGER NOT NULL, key TEXT NOT NULL, last INTEGER NOT NULL, report TEXT NOT NULL,
        PRIMARY KEY (task, key)
    ) STRICT;
    CREATE INDEX flow_last ON flow (task, last);
    CREATE TABLE observed_batch (
        id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, epoch INTEGER NOT NULL,
        point INTEGER NOT NULL, spool INTEGER NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, is_unknown INTEGER NOT NULL, message BLOB, until INTEGER,
        packets INTEGER, malformed TEXT
    ) STRICT;
    CREATE TABLE observed_hour (
        task INTEGER NOT NULL, hour INTEGER NOT NULL, epoch INTEGER NOT NULL,
        batch INTEGER NOT NULL, PRIMARY KEY (task, hour, epoch, batch)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x57535245;
    PRAGMA user_version = 7;
    COMMIT;";

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
