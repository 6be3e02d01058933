//! Tables and queries of a spool.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tracing::warn;

use super::batch::{Batch, DroppedBatches, Held};
use crate::database::{DatabaseSchema, unsigned};

/// Body of a batch whose bytes changed: no protobuf message is this. Its times may have changed, too, so the collector has to
/// treat it as malformed: nothing is observed until the begin of the next batch.
pub(super) const UNREADABLE: [u8; 1] = [0xff];

/// "WSSP".
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_5350,
    version: 4,
    tables: TABLES,
    upgrades: &[(1, FROM_1), (2, FROM_2), (3, FROM_3)],
};

/// Channels with a spool number of their own.
const FROM_1: &str = "
    BEGIN;
    ALTER TABLE channel ADD COLUMN stream INTEGER;
    PRAGMA user_version = 2;
    COMMIT;";

/// Channels with the time before which all results are stored.
const FROM_2: &str = "
    BEGIN;
    ALTER TABLE channel ADD COLUMN settled INTEGER;
    PRAGMA user_version = 3;
    COMMIT;";

/// Batches with a checksum; earlier ones have none.
const FROM_3: &str = "
    BEGIN;
    ALTER TABLE batch ADD COLUMN checksum INTEGER;
    PRAGMA user_version = 4;
    COMMIT;";

/// Bytes per batch besides its body: roughly the rest of a row and the index.
pub(super) const ENTRY_OVERHEAD: u64 = 64;

const TABLES: &str = "
    BEGIN;
    CREATE TABLE stream (id INTEGER NOT NULL) STRICT;
    INSERT INTO stream VALUES (random());
    CREATE TABLE channel (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, next INTEGER NOT NULL,
        until INTEGER NOT NULL, stream INTEGER, settled INTEGER
    ) STRICT;
    CREATE TABLE batch (
        age INTEGER PRIMARY KEY, channel INTEGER NOT NULL, sequence INTEGER NOT NULL,
        items INTEGER NOT NULL, begin INTEGER NOT NULL, until INTEGER NOT NULL, body BLOB NOT NULL,
        checksum INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX batch_sequence ON batch (channel, sequence);
    CREATE TABLE given_up (
        channel INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        items INTEGER NOT NULL, begin INTEGER NOT NULL, until INTEGER NOT NULL,
        PRIMARY KEY (channel, first)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x57535350;
    PRAGMA user_version = 4;
    COMMIT;";

/// For each channel, the newest batch that may have been delivered.
pub(super) type NewestBatches = HashMap<i64, u64>;

/// All batches that were stored when the spool was opened.
pub(super) fn newest_batches(database: &Connection) -> rusqlite::Result<NewestBatches> {
    let mut statement = database.prepare("SELECT number, next - 1 FROM channel")?;
    let known = statement.query_map([], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?;
    known.collect()
}

/// Key of a channel; none if it has had no batch.
pub(super) fn number(database: &Connection, channel: &str) -> rusqlite::Result<Option<i64>> {
    let query = "SELECT number FROM channel WHERE name = ?";
    database.prepare_cached(query)?.query_row([channel], |row| row.get(0)).optional()
}

/// Number of the spool for a channel.
pub(super) fn stream(database: &Connection, channel: &str) -> rusqlite::Result<i64> {
    let query = "SELECT coalesce((SELECT stream FROM channel WHERE name = ?),
                                 (SELECT id FROM stream))";
    database.prepare_cached(query)?.query_row([channel], |row| row.get(0))
}

/// Gives a channel another number of its spool. Returns its key.
pub(super) fn begin_anew(change: &Transaction<'_>, channel: &str) -> rusqlite::Result<i64> {
    let query = "INSERT INTO channel (name, next, until, stream)
                 VALUES (?, 1, -9223372036854775808, random())
                 ON CONFLICT (name) DO UPDATE SET stream = random()
                 RETURNING number";
    change.query_row(query, [channel], |row| row.get(0))
}

/// Channels with entries.
pub(super) fn channels(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let query = "SELECT name FROM channel
                 WHERE number IN (SELECT channel FROM batch UNION SELECT channel FROM given_up)
                 ORDER BY name";
    let mut statement = database.prepare(query)?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Number of the channel's first batch that is stored, or else of the next one.
pub(super) fn first(database: &Connection, channel: &str) -> rusqlite::Result<u64> {
    let query = "SELECT coalesce(
                     min((SELECT min(sequence) FROM batch WHERE channel = number),
                         (SELECT min(first) FROM given_up WHERE channel = number)),
                     (SELECT min(sequence) FROM batch WHERE channel = number),
                     (SELECT min(first) FROM given_up WHERE channel = number),
                     next)
                 FROM channel WHERE name = ?";
    let first =
        database.prepare_cached(query)?.query_row([channel], |row| unsigned(row, 0)).optional()?;
    Ok(first.unwrap_or(1))
}

/// For each channel, the end of the last batch ever appended.
pub(super) fn reported_until(database: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut statement = database.prepare("SELECT name, until FROM channel ORDER BY name")?;
    let reported = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    reported.collect()
}

/// Current size in bytes.
pub(super) fn bytes(database: &Connection) -> rusqlite::Result<u64> {
    let query = "SELECT coalesce(sum(length(body) + ?), 0) FROM batch";
    database.query_row(query, [ENTRY_OVERHEAD.cast_signed()], |row| unsigned(row, 0))
}

/// Key of a channel and number of its next batch.
fn next_of(change: &Transaction<'_>, channel: &str, batch: &Batch) -> rusqlite::Result<(i64, i64)> {
    let query = "INSERT INTO channel (name, next, until) VALUES (?1, 2, ?2)
                 ON CONFLICT (name) DO UPDATE SET next = next + 1, until = max(until, ?2)
                 RETURNING number, next - 1";
    let values = params![channel, batch.times.end()];
    change.prepare_cached(query)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Inserts a batch that was dropped before.
pub(super) fn insert_dropped(
    change: &Transaction<'_>,
    channel: &str,
    batch: &Batch,
    known: &NewestBatches,
) -> rusqlite::Result<()> {
    let place = next_of(change, channel, batch)?;
    let times = (*batch.times.start(), *batch.times.end());
    record_drop(change, place, batch.items.cast_signed(), times, known)
}

/// CRC-32 of a batch and its number in a channel. SQLite does not notice changed bytes in a value, and changed observations
/// would count as lost.
fn checksum((channel, sequence): (i64, i64), batch: &Batch) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&channel.to_le_bytes());
    hasher.update(&sequence.to_le_bytes());
    hasher.update(&batch.items.to_le_bytes());
    hasher.update(&batch.times.start().to_le_bytes());
    hasher.update(&batch.times.end().to_le_bytes());
    hasher.update(&batch.body);
    hasher.finalize()
}

pub(super) fn insert(
    change: &Transaction<'_>,
    channel: &str,
    batch: &Batch,
) -> rusqlite::Result<()> {
    let Batch { items, times, body } = batch;
    let (channel, sequence) = next_of(change, channel, batch)?;
    let query = "INSERT INTO batch (channel, sequence, items, begin, until, body, checksum)
                 VALUES (?, ?, ?, ?, ?, ?, ?)";
    let (items, checksum) = (items.cast_signed(), checksum((channel, sequence), batch));
    let values = params![channel, sequence, items, times.start(), times.end(), body, checksum];
    change.prepare_cached(query)?.execute(values)?;
    Ok(())
}

/// Drops the oldest or the newest batch. Returns the bytes freed.
pub(super) fn give_up(
    change: &Transaction<'_>,
    is_newest: bool,
    known: &NewestBatches,
) -> rusqlite::Result<u64> {
    let query = "DELETE FROM batch
                 WHERE age = (SELECT iif(?, max(age), min(age)) FROM batch)
                 RETURNING channel, sequence, items, begin, until, length(body)";
    let (channel, sequence, items, begin, until, bytes) =
        change.prepare_cached(query)?.query_row([is_newest], |row| {
            let times: (i64, i64) = (row.get(3)?, row.get(4)?);
            let numbers: (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((numbers.0, numbers.1, numbers.2, times.0, times.1, unsigned(row, 5)?))
        })?;
    record_drop(change, (channel, sequence), items, (begin, until), known)?;
    Ok(bytes + ENTRY_OVERHEAD)
}

/// Records a dropped batch. Consecutive drops are merged, but not with one that may have been reported already.
fn record_drop(
    change: &Transaction<'_>,
    (channel, sequence): (i64, i64),
    items: i64,
    (begin, until): (i64, i64),
    known: &NewestBatches,
) -> rusqlite::Result<()> {
    let known = known.get(&channel).map_or(0, |known| known.cast_signed());
    let query = "UPDATE given_up SET last = ?2, items = items + ?3,
                     begin = min(begin, ?4), until = max(until, ?5)
                 WHERE channel = ?1 AND last = ?2 - 1 AND first > ?6";
    let values = params![channel, sequence, items, begin, until, known];
    if change.prepare_cached(query)?.execute(values)? == 0 {
        let query = "INSERT INTO given_up (channel, first, last, items, begin, until)
                     VALUES (?1, ?2, ?2, ?3, ?4, ?5)";
        let values = params![channel, sequence, items, begin, until];
        change.prepare_cached(query)?.execute(values)?;
    }
    Ok(())
}

/// Entries of a channel after a number, in order, up to `most_bytes`. The body of a batch that was changed on the disk is
/// [`UNREADABLE`].
pub(super) fn read(
    database: &Connection,
    channel: &str,
    behind: u64,
    most_bytes: u64,
    known: &mut NewestBatches,
) -> rusqlite::Result<Vec<Held>> {
    let query = "SELECT first, last, items, begin, given_up.until, NULL, number, NULL, 0 FROM given_up
                     JOIN channel ON number = channel WHERE name = ?1 AND last > ?2
                 UNION ALL
                 SELECT sequence, sequence, items, begin, batch.until, body, number, checksum, 1 FROM batch
                     JOIN channel ON number = channel WHERE name = ?1 AND sequence > ?2
                 ORDER BY 1";
    let mut statement = database.prepare_cached(query)?;
    let mut rows = statement.query(params![channel, behind.cast_signed()])?;
    let (mut held, mut bytes) = (Vec::new(), 0);
    while bytes < most_bytes.max(1)
        && let Some(row) = rows.next()?
    {
        let (items, times) = (unsigned(row, 2)?, row.get(3)?..=row.get(4)?);
        let (first, last) = (unsigned(row, 0)?, unsigned(row, 1)?);
        let newest = known.entry(row.get(6)?).or_default();
        *newest = last.max(*newest);
        bytes += ENTRY_OVERHEAD;
        if !row.get(8)? {
            held.push(Held::Dropped(DroppedBatches { sequences: first..=last, items, times }));
            continue;
        }
        let mut batch = Batch { items, times, body: row.get(5).unwrap_or_default() };
        if !is_intact(row, &batch)? {
            warn!(
                "batch {first} of point {channel} is damaged on the disk: its time counts as not observed"
            );
            batch.body = UNREADABLE.to_vec();
        }
        bytes += batch.body.len() as u64;
        held.push(Held::Batch(first, batch));
    }
    Ok(held)
}

/// Whether a batch has its checksum. Batches of earlier versions have none.
fn is_intact(row: &Row<'_>, batch: &Batch) -> rusqlite::Result<bool> {
    let place = (row.get(6)?, row.get(0)?);
    let is_it = |stored: i64| stored == i64::from(checksum(place, batch));
    Ok(row.get(7).is_ok_and(|stored: Option<i64>| stored.is_none_or(is_it)))
}

/// Stores the time before which all results of a channel are stored, in nanoseconds since 1970 (UTC). It never goes
/// back.
pub(super) fn settle(change: &Transaction<'_>, channel: &str, until: i64) -> rusqlite::Result<()> {
    let query = "UPDATE channel SET settled = max(coalesce(settled, ?2), ?2) WHERE name = ?1";
    change.prepare_cached(query)?.execute(params![channel, until])?;
    Ok(())
}

/// Time before which all results of a channel are stored, and begin of its first batch; none if unknown.
pub(super) fn known_times(
    database: &Connection,
    channel: &str,
) -> rusqlite::Result<(Option<i64>, Option<i64>)> {
    let query = "SELECT settled, (
                     SELECT min(begin) FROM (
                         SELECT begin FROM batch WHERE channel = number
                         UNION ALL SELECT begin FROM given_up WHERE channel = number))
                 FROM channel WHERE name = ?";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(database.query_row(query, [channel], row).optional()?.unwrap_or_default())
}

/// Deletes the entries of a channel up to a number. Returns the bytes freed.
pub(super) fn acknowledge(
    change: &Transaction<'_>,
    channel: &str,
    up_to: u64,
) -> rusqlite::Result<u64> {
    let up_to = up_to.cast_signed();
    let query = "DELETE FROM given_up
                 WHERE channel = (SELECT number FROM channel WHERE name = ?1) AND last <= ?2";
    change.prepare_cached(query)?.execute(params![channel, up_to])?;
    let query = "DELETE FROM batch
                 WHERE channel = (SELECT number FROM channel WHERE name = ?1) AND sequence <= ?2
                 RETURNING length(body)";
    let mut statement = change.prepare_cached(query)?;
    let freed = statement.query_map(params![channel, up_to], |row| unsigned(row, 0))?;
    freed.map(|bytes| Ok(bytes? + ENTRY_OVERHEAD)).sum()
}
