//! Results of several tasks, stored in one transaction: with many tasks, waiting for the disk takes most of the time.

use std::mem;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Results, Settled};
use crate::DatabaseError;

/// The database, and the results that wait for it.
pub(super) struct GroupStore {
    pub(super) results: Mutex<Results>,
    waiting: Mutex<Vec<Arc<Entry>>>,
}

/// Results of a task that wait for the database.
struct Entry {
    task: u64,
    settled: Settled,
    outcome: OnceLock<Outcome>,
}

/// Result of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stored,
    /// Their task was removed; they are discarded.
    Removed,
}

impl GroupStore {
    /// Stores results in this database.
    pub(super) fn new(results: Results) -> Self {
        Self { results: Mutex::new(results), waiting: Mutex::default() }
    }

    /// Stores final results of a task, unless it was removed. If the database is in use, they wait together with those of
    /// other tasks, and the first caller that gets the database stores all of them.
    ///
    /// `is_removed` is asked while the database is locked: what is stored before a task is removed, the removal deletes.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing of this task is stored.
    pub(super) fn store(
        &self,
        task: u64,
        settled: Settled,
        is_removed: impl Fn(u64) -> bool,
    ) -> Result<Outcome, DatabaseError> {
        let own = Arc::new(Entry { task, settled, outcome: OnceLock::new() });
        self.waiting.lock().push(Arc::clone(&own));
        let mut results = self.results.lock();
        if let Some(outcome) = own.outcome.get() {
            return Ok(*outcome);
        }
        let mut group = mem::take(&mut *self.waiting.lock());
        if !group.iter().any(|it| Arc::ptr_eq(it, &own)) {
            // The transaction of an earlier group failed.
            group.push(Arc::clone(&own));
        }
        group.retain(|it| {
            let is_kept = !is_removed(it.task);
            if !is_kept {
                it.decide(Outcome::Removed);
            }
            is_kept
        });
        let stored = results.store_all(group.iter().map(|it| (it.task, &it.settled)));
        if stored.is_ok() {
            group.iter().for_each(|it| it.decide(Outcome::Stored));
        }
        if let Some(outcome) = own.outcome.get() {
            return Ok(*outcome);
        }
        if group.len() > 1 {
            // The failure may be of another task, whose caller stores it again.
            return results.store(task, &own.settled).map(|()| Outcome::Stored);
        }
        stored.map(|()| Outcome::Stored)
    }
}

impl Entry {
    /// The first decision counts; there is only one.
    fn decide(&self, outcome: Outcome) {
        self.outcome.get_or_init(|| outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use wirestamp_clock::Time;

    use super::*;

    const TASKS: u64 = 20;
    const REMOVED: u64 = 5;

    fn store() -> (tempfile::TempDir, GroupStore) {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::open(&folder.path().join("results.sqlite")).unwrap();
        (folder, GroupStore::new(results))
    }

    fn settled(until: i64) -> Settled {
        Settled::nothing(Time::from_nanos(until))
    }

    #[test]
    fn waiting_results_are_stored_except_of_removed_tasks() {
        let (_folder, store) = store();
        thread::scope(|scope| {
            let busy = store.results.lock();
            let store = &store;
            let is_removed = |task| task == REMOVED;
            for task in 1..=TASKS {
                scope.spawn(move || {
                    store.store(task, settled(task.cast_signed()), is_removed).unwrap()
                });
            }
            while store.waiting.lock().len() < usize::try_from(TASKS).unwrap() {
                thread::yield_now();
            }
            drop(busy);
        });
        assert!(store.waiting.lock().is_empty());
        for task in 1..=TASKS {
            let progress = store.results.lock().progress(task).unwrap();
            let expected = if task == REMOVED { i64::MIN } else { task.cast_signed() };
            assert_eq!(progress.settled_until, Time::from_nanos(expected));
        }
    }

    /// A transaction that failed left nothing in the queue.
    #[test]
    fn entry_of_a_failed_group_is_stored_later() {
        let (_folder, store) = store();
        thread::scope(|scope| {
            let busy = store.results.lock();
            let waiting = scope.spawn(|| store.store(7, settled(70), |_| false));
            while store.waiting.lock().is_empty() {
                thread::yield_now();
            }
            store.waiting.lock().clear();
            drop(busy);
            assert_eq!(waiting.join().unwrap().unwrap(), Outcome::Stored);
        });
        let progress = store.results.lock().progress(7).unwrap();
        assert_eq!(progress.settled_until, Time::from_nanos(70));
    }
}
