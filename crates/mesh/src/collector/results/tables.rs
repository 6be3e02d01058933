//! Tables of the database of results.

use crate::database::DatabaseSchema;

/// "WSRE".
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_5245,
    version: 8,
    tables: TABLES,
    upgrades: &[
        (3, HISTOGRAMS),
        (4, RETURN_PATHS),
        (5, EPOCHS),
        (6, EARLIER_COUNTS),
        (7, OBSERVED),
    ],
};

/// Tasks from before version 8 archive no observations.
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
    PRAGMA user_version = 8;
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

/// Epochs from before version 7 have no counts of earlier ones.
const EARLIER_COUNTS: &str = "
    BEGIN;
    CREATE TABLE count_earlier (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, begin INTEGER NOT NULL,
        packets INTEGER NOT NULL, bytes INTEGER NOT NULL, missed INTEGER NOT NULL,
        watched INTEGER NOT NULL,
        PRIMARY KEY (task, epoch)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 7;
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
/// `count_earlier` has the counts of the interval that contains the start of an epoch, of earlier epochs here.
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
    CREATE TABLE count_earlier (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, begin INTEGER NOT NULL,
        packets INTEGER NOT NULL, bytes INTEGER NOT NULL, missed INTEGER NOT NULL,
        watched INTEGER NOT NULL,
        PRIMARY KEY (task, epoch)
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
    PRAGMA user_version = 8;
    COMMIT;";
