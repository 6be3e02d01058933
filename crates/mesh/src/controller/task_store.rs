//! The tasks, stored in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use tokio::sync::watch;

use crate::database::{Database, DatabaseSchema, unsigned};
use crate::task::{Removed, Task, TaskRecord, Tasks, shards, without_shards};
use crate::{DatabaseError, Name, secret};

/// "WSPL".
const SCHEMA: DatabaseSchema = DatabaseSchema {
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

/// Origin of a task.
const API: &str = "api";
const FILE: &str = "file";

/// The stored tasks.
pub struct TaskStore {
    database: Mutex<Database>,
    tasks: watch::Sender<Arc<Tasks>>,
    removed: watch::Sender<Arc<Removed>>,
}

/// Result of creating a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The task was created with this number.
    Created(u64),
    /// The same task exists with this number.
    Unchanged(u64),
}

/// Result of removing a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The task was removed.
    Removed,
    /// The task has not ended.
    Running,
    /// There is no task of this name and number.
    NoSuchTask,
}

impl TaskStore {
    /// Opens the file of tasks. Created if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read or written, or another process has it open.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let database = Database::open(path, &SCHEMA)?;
        let tasks = watch::Sender::new(Arc::new(database.read(all)?));
        let removed = watch::Sender::new(Arc::new(database.read(removed)?));
        Ok(Self { database: Mutex::new(database), tasks, removed })
    }

    /// The tasks and their changes. Each shard has a number.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Tasks>> {
        self.tasks.subscribe()
    }

    /// The removed tasks and their changes.
    #[must_use]
    pub fn removed(&self) -> watch::Receiver<Arc<Removed>> {
        self.removed.subscribe()
    }

    /// Creates a task. A different task of the same name is ended.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn enter(&self, task: &Task, now: Timestamp) -> Result<Change, DatabaseError> {
        let mut database = self.database.lock();
        if let Some((number, _)) = self.current(&task.name).filter(|(_, it)| it.task == *task) {
            return Ok(Change::Unchanged(number));
        }
        let number = database.change(|change| insert(change, API, task, now))?;
        self.publish_named(&database, &task.name)?;
        Ok(Change::Created(number))
    }

    /// Creates the tasks of a file, and ends earlier tasks from files that are no longer in it. All of it is one
    /// transaction.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn follow(&self, tasks: &[Task], now: Timestamp) -> Result<(), DatabaseError> {
        let mut database = self.database.lock();
        let before = self.tasks.borrow().clone();
        let running = without_shards(&before).filter(|(_, it)| it.ended.is_none());
        let running: BTreeMap<_, _> = running.map(|(_, it)| (&it.task.name, &it.task)).collect();
        let names: BTreeSet<_> = tasks.iter().map(|task| &task.name).collect();
        database.change(|change| {
            let of_files: Vec<String> = {
                let query = "SELECT name FROM task WHERE origin = ? AND ended IS NULL";
                let mut statement = change.prepare(query)?;
                statement.query_map([FILE], |row| row.get(0))?.collect::<Result<_, _>>()?
            };
            let of_files = of_files.into_iter().filter_map(|name| Name::try_from(name).ok());
            for name in of_files.filter(|name| !names.contains(name)) {
                end(change, &name, now)?;
            }
            let is_other = |task: &&Task| running.get(&task.name).is_none_or(|it| *it != *task);
            tasks.iter().filter(is_other).try_for_each(|it| insert(change, FILE, it, now).map(drop))
        })?;
        self.publish(&database)
    }

    /// Ends the current task of a name. Returns its number, if there was one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn end(&self, name: &Name, now: Timestamp) -> Result<Option<u64>, DatabaseError> {
        let mut database = self.database.lock();
        let number = self.current(name).map(|(number, _)| number);
        if number.is_some() {
            database.change(|change| end(change, name, now))?;
            self.publish_named(&database, name)?;
        }
        Ok(number)
    }

    /// Removes an ended task. Its number stays known, so that its results are deleted and late batches are discarded.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove(&self, name: &Name, number: u64) -> Result<Removal, DatabaseError> {
        let mut database = self.database.lock();
        let shards = match self.find(name, Some(number)) {
            None => return Ok(Removal::NoSuchTask),
            Some((_, TaskRecord { ended: None, .. })) => return Ok(Removal::Running),
            Some((_, it)) => shards(number, &it),
        };
        database.change(|change| {
            shards.into_iter().try_for_each(|number| {
                let number = [number.cast_signed()];
                change.execute("INSERT INTO removed VALUES (?)", number)?;
                change.execute("DELETE FROM task WHERE number = ?", number).map(drop)
            })
        })?;
        // A collector that has no task of a number then has it among the removed ones.
        self.removed.send_replace(Arc::new(database.read(removed)?));
        self.publish(&database)?;
        Ok(Removal::Removed)
    }

    /// The current task of a name.
    #[must_use]
    pub fn current(&self, name: &Name) -> Option<(u64, TaskRecord)> {
        let tasks = self.tasks.borrow();
        let mut open =
            without_shards(&tasks).filter(|(_, it)| it.ended.is_none() && it.task.name == *name);
        open.next().map(|(number, entered)| (*number, entered.clone()))
    }

    /// The task of a name with this number, or its newest one; also if it was ended.
    #[must_use]
    pub fn find(&self, name: &Name, number: Option<u64>) -> Option<(u64, TaskRecord)> {
        let tasks = self.tasks.borrow();
        let is_it = |it: &u64| number.is_none_or(|number| *it == number);
        let found = without_shards(&tasks)
            .rev()
            .find(|(number, it)| it.task.name == *name && is_it(number));
        found.map(|(number, entered)| (*number, entered.clone()))
    }

    /// The secret of the two probes of a current authenticated task; none for others. Send it to these probes only.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn secret(&self, task: u64) -> Result<Option<Vec<u8>>, DatabaseError> {
        let query = "SELECT secret FROM task WHERE number = ?";
        self.database.lock().read(|it| it.query_row(query, [task.cast_signed()], |row| row.get(0)))
    }

    fn publish(&self, database: &Database) -> Result<(), DatabaseError> {
        self.tasks.send_replace(Arc::new(database.read(all)?));
        Ok(())
    }

    /// Publishes the tasks of a name, when only these have changed. To read all of many tasks takes long.
    fn publish_named(&self, database: &Database, name: &Name) -> Result<(), DatabaseError> {
        let changed = database.read(|database| named(database, name))?;
        self.tasks.send_modify(|tasks| Arc::make_mut(tasks).extend(changed));
        Ok(())
    }
}

/// Stores all shards of a task, and ends the current one of its name. Returns the number of the first shard.
fn insert(
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

fn end(change: &Transaction<'_>, name: &Name, now: Timestamp) -> rusqlite::Result<usize> {
    let query = "UPDATE task SET ended = ?, secret = NULL WHERE name = ? AND ended IS NULL";
    change.prepare_cached(query)?.execute(params![now.as_second(), name.as_ref()])
}

fn new_secret() -> rusqlite::Result<[u8; secret::BYTES]> {
    let failed = |why| format!("cannot read random numbers: {why}");
    secret::random().map_err(|why| rusqlite::Error::ToSqlConversionFailure(failed(why).into()))
}

fn all(database: &Connection) -> rusqlite::Result<Tasks> {
    let mut statement = database.prepare("SELECT number, body, made, ended, shard FROM task")?;
    let tasks = statement.query_map([], |row| Ok((unsigned(row, 0)?, entered(row)?)))?;
    tasks.collect()
}

fn named(database: &Connection, name: &Name) -> rusqlite::Result<Tasks> {
    let query = "SELECT number, body, made, ended, shard FROM task WHERE name = ?";
    let mut statement = database.prepare_cached(query)?;
    let tasks =
        statement.query_map([name.as_ref()], |row| Ok((unsigned(row, 0)?, entered(row)?)))?;
    tasks.collect()
}

fn removed(database: &Connection) -> rusqlite::Result<Removed> {
    let mut statement = database.prepare("SELECT number FROM removed")?;
    let numbers = statement.query_map([], |row| unsigned(row, 0))?;
    numbers.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> Task {
        serde_json::from_str(text).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn tasks_and_numbers_survive_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let plan = TaskStore::open(&path).unwrap();
        let mut last = plan.subscribe();
        let volume = task(r#"{"name":"v","measure":"volume","at":"a/eth0"}"#);
        let filtered = task(r#"{"name":"v","measure":"volume","at":"a/eth0","filter":"udp"}"#);
        assert_eq!(plan.enter(&volume, at(1)).unwrap(), Change::Created(1));
        assert!(last.has_changed().unwrap());
        assert_eq!(plan.enter(&volume, at(2)).unwrap(), Change::Unchanged(1));
        assert_eq!(plan.enter(&filtered, at(3)).unwrap(), Change::Created(2));
        let entered = |task: &Task, made, ended: Option<i64>| TaskRecord {
            task: task.clone(),
            made: at(made),
            ended: ended.map(at),
        };
        let wanted =
            Tasks::from([(1, entered(&volume, 1, Some(3))), (2, entered(&filtered, 3, None))]);
        assert_eq!(**last.borrow_and_update(), wanted);
        drop(plan);
        let plan = TaskStore::open(&path).unwrap();
        assert_eq!(**plan.subscribe().borrow(), wanted);
        assert_eq!(plan.end(&volume.name, at(4)).unwrap(), Some(2));
        assert_eq!(plan.end(&volume.name, at(5)).unwrap(), None);
        assert_eq!(plan.current(&volume.name), None);
        assert_eq!(plan.enter(&volume, at(6)).unwrap(), Change::Created(3));
    }

    #[test]
    fn only_ended_tasks_are_removed_and_numbers_are_not_reused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let plan = TaskStore::open(&path).unwrap();
        let mut removed = plan.removed();
        let flows = task(r#"{"name":"f","measure":"flows","at":"a/eth0"}"#);
        let other: Name = "other".parse().unwrap();
        plan.enter(&flows, at(1)).unwrap();
        assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::Running);
        plan.end(&flows.name, at(2)).unwrap();
        for (name, number) in [(&flows.name, 2), (&other, 1), (&flows.name, u64::MAX)] {
            assert_eq!(plan.remove(name, number).unwrap(), Removal::NoSuchTask);
        }
        assert!(!removed.has_changed().unwrap());
        assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::Removed);
        assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::NoSuchTask);
        assert_eq!(**removed.borrow_and_update(), Removed::from([1]));
        assert!(plan.subscribe().borrow().is_empty());
        drop(plan);
        let plan = TaskStore::open(&path).unwrap();
        assert_eq!(**plan.removed().borrow(), Removed::from([1]));
        assert_eq!(plan.enter(&flows, at(3)).unwrap(), Change::Created(2));
    }

    #[test]
    fn secret_is_stored_but_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let test = |rate| {
            let text = r#"{"name":"x","measure":"active-delay","from":"a","to":"b","authenticated":true,"rate":RATE}"#;
            task(&text.replace("RATE", rate))
        };
        let plan = TaskStore::open(&path).unwrap();
        plan.enter(&test("1"), at(1)).unwrap();
        let secret = plan.secret(1).unwrap().unwrap();
        assert_eq!(secret.len(), secret::BYTES);
        drop(plan);
        let plan = TaskStore::open(&path).unwrap();
        assert_eq!(plan.enter(&test("1"), at(2)).unwrap(), Change::Unchanged(1));
        assert_eq!(plan.secret(1).unwrap().as_ref(), Some(&secret));
        assert!(!format!("{:?}", plan.subscribe().borrow()).contains("secret"));
        // The new task has a new secret, and the old one is deleted.
        assert_eq!(plan.enter(&test("2"), at(3)).unwrap(), Change::Created(2));
        assert_eq!(plan.secret(1).unwrap(), None);
        assert_ne!(plan.secret(2).unwrap().unwrap(), secret);
        let open = task(r#"{"name":"o","measure":"active-delay","from":"a","to":"b"}"#);
        assert_eq!(plan.enter(&open, at(4)).unwrap(), Change::Created(3));
        assert_eq!(plan.secret(3).unwrap(), None);
    }

    #[test]
    fn store_without_secrets_is_upgraded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let tables = TABLES
            .replace(", secret BLOB,\n        shard INTEGER NOT NULL DEFAULT 0", "")
            .replace("task_shard ON task (name, shard)", "task_name ON task (name)")
            .replace("user_version = 4", "user_version = 1");
        let tables =
            tables.replace("CREATE TABLE removed (number INTEGER PRIMARY KEY) STRICT;", "");
        let before = Connection::open(&path).unwrap();
        before.execute_batch(&tables).unwrap();
        let body = r#"{"name":"x","measure":"active-delay","from":"a","to":"b"}"#;
        let query = "INSERT INTO task (name, body, origin, made) VALUES ('x', ?, 'api', 1)";
        before.execute(query, [body]).unwrap();
        drop(before);
        let plan = TaskStore::open(&path).unwrap();
        assert_eq!(plan.enter(&task(body), at(2)).unwrap(), Change::Unchanged(1));
        assert_eq!(plan.secret(1).unwrap(), None);
    }

    #[test]
    fn shards_have_successive_numbers_and_one_life() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let plan = TaskStore::open(&path).unwrap();
        let delay = |shards| {
            let text =
                r#"{"name":"d","measure":"passive-delay","from":"a/i","to":"b/i","shards":N}"#;
            task(&text.replace('N', shards))
        };
        let (three, one) = (delay("3"), delay("1"));
        assert_eq!(plan.enter(&three, at(1)).unwrap(), Change::Created(1));
        assert_eq!(plan.enter(&three, at(2)).unwrap(), Change::Unchanged(1));
        drop(plan);
        let plan = TaskStore::open(&path).unwrap();
        let of = || -> Vec<_> {
            let tasks = plan.subscribe().borrow().clone();
            tasks.iter().map(|(number, it)| (*number, it.task.shard, it.ended.is_some())).collect()
        };
        assert_eq!(of(), [(1, 0, false), (2, 1, false), (3, 2, false)]);
        let (number, first) = plan.find(&three.name, None).unwrap();
        assert_eq!((number, &first.task), (1, &three));
        assert_eq!(shards(number, &first).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(plan.find(&three.name, Some(2)), None);
        assert_eq!(plan.enter(&one, at(3)).unwrap(), Change::Created(4));
        assert_eq!(of(), [(1, 0, true), (2, 1, true), (3, 2, true), (4, 0, false)]);
        assert_eq!(plan.remove(&three.name, 3).unwrap(), Removal::NoSuchTask);
        assert_eq!(plan.remove(&three.name, 1).unwrap(), Removal::Removed);
        assert_eq!(**plan.removed().borrow(), Removed::from([1, 2, 3]));
        assert_eq!(of(), [(4, 0, false)]);
    }

    #[test]
    fn file_ends_only_tasks_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let plan = TaskStore::open(&folder.path().join("plan")).unwrap();
        let named =
            |name: &str| task(&format!(r#"{{"name":"{name}","measure":"flows","at":"a/b"}}"#));
        let [own, first, second] = ["own", "first", "second"].map(named);
        plan.enter(&own, at(1)).unwrap();
        plan.follow(&[first.clone(), second.clone()], at(2)).unwrap();
        plan.follow(std::slice::from_ref(&second), at(3)).unwrap();
        let is_open = [&own, &first, &second].map(|it| plan.current(&it.name).is_some());
        assert_eq!(is_open, [true, false, true]);
        assert_eq!(plan.current(&second.name).unwrap().1.made, at(2));
    }
}
