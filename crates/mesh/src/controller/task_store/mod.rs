//! The tasks, stored in a file.

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::database::Database;
use crate::task::{Removed, Task, TaskRecord, Tasks, shards, without_shards};
use crate::{DatabaseError, Name};
use tables::{API, FILE, SCHEMA};

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
        let tasks = watch::Sender::new(Arc::new(database.read(tables::all)?));
        let removed = watch::Sender::new(Arc::new(database.read(tables::removed)?));
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
        let number = database.change(|change| tables::insert(change, API, task, now))?;
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
            let of_files = tables::names_of_files(change)?;
            let of_files = of_files.into_iter().filter_map(|name| Name::try_from(name).ok());
            for name in of_files.filter(|name| !names.contains(name)) {
                tables::end(change, &name, now)?;
            }
            let is_other = |task: &&Task| running.get(&task.name).is_none_or(|it| *it != *task);
            tasks
                .iter()
                .filter(is_other)
                .try_for_each(|it| tables::insert(change, FILE, it, now).map(drop))
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
            database.change(|change| tables::end(change, name, now))?;
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
            shards.into_iter().try_for_each(|number| tables::remove(change, number))
        })?;
        // A collector that has no task of a number then has it among the removed ones.
        self.removed.send_replace(Arc::new(database.read(tables::removed)?));
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
        self.database.lock().read(|database| tables::secret_of(database, task))
    }

    fn publish(&self, database: &Database) -> Result<(), DatabaseError> {
        self.tasks.send_replace(Arc::new(database.read(tables::all)?));
        Ok(())
    }

    /// Publishes the tasks of a name, when only these have changed. To read all of many tasks takes long.
    fn publish_named(&self, database: &Database, name: &Name) -> Result<(), DatabaseError> {
        let changed = database.read(|database| tables::named(database, name))?;
        self.tasks.send_modify(|tasks| Arc::make_mut(tasks).extend(changed));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
