//! Tables and queries of the stored tasks.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};

use crate::database::{DatabaseSchema, unsigned};
use crate::task::{Removed, Task, TaskRecord, Tasks};
use crate::{Name, secret};

/// "WSPL".
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_504c,
    version: 4,
    tables: TABLES,
    upgrades: &[(1, SECRETS), (2, REMOVED), (3, SHARDS)],
};

/// Numbers are never reused. Times are in seconds since 1970. The shards of a task have successive numbers.
const TABLES: &str = "
    BEGIN;
    CREATE TABLE task (
        number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, body TEXT NOT NULL,
        origin TEXT NOT NULL, made INTEGER NOT NULL, ended INTEGER, secret BLOB,
        shard INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX task_shard ON task (name, shard) WHERE ended IS NULL;
    CREATE TABLE removed (number INTEGER PRIMARY KEY) STRICT;
    PRAGMA application_id = 0x5753504c;
    PRAGMA user_version = 4;
    COMMIT;";

/// Version 1 had no authenticated tasks.
const SECRETS: &str = "
    BEGIN;
    ALTER TABLE task ADD COLUMN secret BLOB;
    PRAGMA user_version = 2;
    COMMIT;";

/// Until version 2, tasks were not removed.
const REMOVED: &str = "
    BEGIN;
    CREATE TABLE removed (number INTEGER PRIMARY KEY) STRICT;
    PRAGMA user_version = 3;
    COMMIT;";

/// Until version 3, tasks had one shard.
const SHARDS: &str = "
    BEGIN;
    ALTER TABLE task ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;
    DROP INDEX task_name;
    CREATE UNIQUE INDEX task_shard ON task (name, shard) WHERE ended IS NULL;
    PRAGMA user_version = 4;
    COMMIT;";

/// Origin of a task: created over the API, or by a file.
pub(super) const API: &str = "api";
pub(super) const FILE: &str = "file";

/// Stores all shards of a task, and ends the current one of its name. Returns the number of the first shard.
pub(super) fn insert(
    change: &Transaction<'_>,
    origin: &str,
    task: &Task,
    now: Timestamp,
) -> rusqlite::Result<u64> {
    end(change, &task.name, now)?;
    let body = serde_json::to_string(task);
    let body = body.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    // A replaced task's secret is not reused: its probes may differ.
    let secret = task.measure.is_authenticated().then(new_secret).transpose()?;
    let query = "INSERT INTO task (name, body, origin, made, secret, shard)
                 VALUES (?, ?, ?, ?, ?, ?) RETURNING number";
    let mut statement = change.prepare_cached(query)?;
    let mut first = None;
    for shard in 0..task.measure.shards() {
        let values = params![task.name.as_ref(), body, origin, now.as_second(), secret, shard];
        let number = statement.query_row(values, |row| unsigned(row, 0))?;
        first.get_or_insert(number);
    }
    first.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

pub(super) fn end(
    change: &Transaction<'_>,
    name: &Name,
    now: Timestamp,
) -> rusqlite::Result<usize> {
    let query = "UPDATE task SET ended = ?, secret = NULL WHERE name = ? AND ended IS NULL";
    change.prepare_cached(query)?.execute(params![now.as_second(), name.as_ref()])
}

/// Names of the current tasks of files.
pub(super) fn names_of_files(change: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let query = "SELECT name FROM task WHERE origin = ? AND ended IS NULL";
    let mut statement = change.prepare(query)?;
    let names = statement.query_map([FILE], |row| row.get(0))?;
    names.collect()
}

/// Deletes a shard. Its number stays in the table of removed ones.
pub(super) fn remove(change: &Transaction<'_>, number: u64) -> rusqlite::Result<()> {
    let number = [number.cast_signed()];
    change.execute("INSERT INTO removed VALUES (?)", number)?;
    change.execute("DELETE FROM task WHERE number = ?", number).map(drop)
}

fn new_secret() -> rusqlite::Result<[u8; secret::BYTES]> {
    let failed = |why| format!("cannot read random numbers: {why}");
    secret::random().map_err(|why| rusqlite::Error::ToSqlConversionFailure(failed(why).into()))
}

pub(super) fn all(database: &Connection) -> rusqlite::Result<Tasks> {
    let mut statement = database.prepare("SELECT number, body, made, ended, shard FROM task")?;
    let tasks = statement.query_map([], |row| Ok((unsigned(row, 0)?, entered(row)?)))?;
    tasks.collect()
}

pub(super) fn named(database: &Connection, name: &Name) -> rusqlite::Result<Tasks> {
    let query = "SELECT number, body, made, ended, shard FROM task WHERE name = ?";
    let mut statement = database.prepare_cached(query)?;
    let tasks =
        statement.query_map([name.as_ref()], |row| Ok((unsigned(row, 0)?, entered(row)?)))?;
    tasks.collect()
}

pub(super) fn removed(database: &Connection) -> rusqlite::Result<Removed> {
    let mut statement = database.prepare("SELECT number FROM removed")?;
    let numbers = statement.query_map([], |row| unsigned(row, 0))?;
    numbers.collect()
}

/// The secret of an authenticated task; none for others, and after its end.
pub(super) fn secret_of(database: &Connection, task: u64) -> rusqlite::Result<Option<Vec<u8>>> {
    let query = "SELECT secret FROM task WHERE number = ?";
    database.query_row(query, [task.cast_signed()], |row| row.get(0))
}

fn entered(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    let damaged = |column, kind, why: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, kind, why)
    };
    let time = |column, seconds: i64| {
        Timestamp::from_second(seconds).map_err(|why| damaged(column, Type::Integer, why.into()))
    };
    let (body, made, ended): (String, i64, Option<i64>) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let mut task: Task =
        serde_json::from_str(&body).map_err(|why| damaged(1, Type::Text, why.into()))?;
    task.set_shard(row.get(4)?).map_err(|why| damaged(4, Type::Integer, why.into()))?;
    Ok(TaskRecord {
        task,
        made: time(2, made)?,
        ended: ended.map(|seconds| time(3, seconds)).transpose()?,
    })
}
