//! The collector: what its deliveries share, and its stored results.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, watch};
use tokio::task::block_in_place;
use wirestamp_clock::{Time, Utc};

use super::group_store::GroupStore;
use super::ongoing::Ongoing;
use super::placements::Epochs;
use super::{ArchiveCounts, ExporterStats, KafkaStats, Measured, ResultRange, Results};
use crate::DatabaseError;
use crate::task::{Measure, Removed, Tasks};

/// Deliveries that may wait for the database at a time. What waits together is stored together.
const TURNS: usize = 64;

/// Receives batches and stores results.
pub struct Collector {
    pub(super) store: GroupStore,
    /// Limits the deliveries that wait for the database at a time: each blocks a thread.
    turns: Semaphore,
    pub(super) tasks: watch::Receiver<Arc<Tasks>>,
    pub(super) removed: watch::Receiver<Arc<Removed>>,
    pub(super) ongoing: Mutex<HashMap<u64, Arc<Ongoing>>>,
    /// Notified when results are stored.
    pub(super) stored: watch::Sender<()>,
    /// Why results cannot be stored; none if they can.
    trouble: watch::Sender<Option<String>>,
    exporter_stats: ExporterStats,
    pub(super) epochs: Epochs,
    kafka_stats: KafkaStats,
    /// What the archive has written.
    pub(super) archived: watch::Sender<ArchiveCounts>,
}

impl Collector {
    /// A collector that stores results in `results` and accepts batches of `tasks`.
    #[must_use]
    pub fn new(results: Results, tasks: watch::Receiver<Arc<Tasks>>) -> Self {
        let epochs = Epochs::of(&results);
        Self {
            store: GroupStore::new(results),
            turns: Semaphore::new(TURNS),
            tasks,
            removed: watch::channel(Arc::default()).1,
            ongoing: Mutex::default(),
            stored: watch::Sender::default(),
            trouble: watch::Sender::default(),
            exporter_stats: ExporterStats::default(),
            epochs,
            kafka_stats: KafkaStats::default(),
            archived: watch::Sender::default(),
        }
    }

    /// Statistics of foreign exporters.
    #[must_use]
    pub fn exporter_stats(&self) -> &ExporterStats {
        &self.exporter_stats
    }

    /// Statistics of records from Kafka.
    #[must_use]
    pub fn kafka_stats(&self) -> &KafkaStats {
        &self.kafka_stats
    }

    /// What the archive has written, and its changes.
    #[must_use]
    pub fn archived(&self) -> watch::Receiver<ArchiveCounts> {
        self.archived.subscribe()
    }

    /// Notified of new results.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.stored.subscribe()
    }

    /// Why the last results could not be stored; none if they could.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Notes whether results could be stored.
    pub(super) fn noted(&self, stored: Result<(), DatabaseError>) -> Result<(), DatabaseError> {
        let now = stored.as_ref().err().map(ToString::to_string);
        self.trouble.send_if_modified(|trouble| {
            let is_other = *trouble != now;
            *trouble = now;
            is_other
        });
        stored
    }

    /// Measured windows of a task, with MOS if it names a codec: see [`Results::measured`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measured(&self, task: u64, range: &ResultRange) -> Result<Vec<Measured>, DatabaseError> {
        let measured = self.results().measured(task, range)?.into_iter();
        let measure = self.measure(task);
        Ok(measured.map(|it| of_task(it, measure.as_ref())).collect())
    }

    /// The newest window of a task.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self, task: u64) -> Result<Option<Measured>, DatabaseError> {
        let newest = self.results().newest(task)?;
        Ok(newest.map(|it| of_task(it, self.measure(task).as_ref())))
    }

    /// Time up to which the results of a task are final: see [`Results::progress`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn settled_until(&self, task: u64) -> Result<Time<Utc>, DatabaseError> {
        Ok(self.results().progress(task)?.settled_until)
    }

    /// Ends the deliveries of a task: what is not stored is discarded.
    pub(super) fn supersede(&self, task: u64) {
        let Some(ongoing) = self.ongoing.lock().remove(&task) else { return };
        ongoing.discard();
    }

    /// What a task measures.
    fn measure(&self, task: u64) -> Option<Measure> {
        Some(self.tasks.borrow().get(&task)?.task.measure.clone())
    }

    /// The tasks whose batches are accepted.
    pub(super) fn tasks(&self) -> &watch::Receiver<Arc<Tasks>> {
        &self.tasks
    }

    /// Reads or changes the state of a task for a delivery.
    pub(super) async fn in_turn<T>(&self, act: impl FnOnce() -> T) -> T {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        block_in_place(act)
    }

    /// The stored results, locked.
    pub fn results(&self) -> MutexGuard<'_, Results> {
        self.store.results.lock()
    }
}

/// Adds what depends on the task: the MOS if it names a codec, and why an active test has no return path.
pub(crate) fn of_task(measured: Measured, measure: Option<&Measure>) -> Measured {
    let is_active = matches!(measure, Some(Measure::ActiveDelay(_)));
    let measured = if is_active { measured.of_active_test() } else { measured };
    match measure.and_then(Measure::codec) {
        Some(codec) => measured.rated(codec),
        None => measured,
    }
}
