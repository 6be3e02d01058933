//! Channels: delivery of a point's batches, and their way to results.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;
use tokio::sync::{Semaphore, watch};
use tokio::task::block_in_place;
use tracing::{info, warn};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::group_store::{GroupStore, Outcome};
use super::observed::{ObservedBatch, ObservedContent, Unacknowledged};
use super::placements::{Epochs, TaskEpoch};
use super::processor::Processor;
use super::{Delivery, ExporterStats, KafkaStats, Measured, ResultRange, Results, Settled, side};
use crate::task::{Measure, Removed, Task, Tasks};
use crate::{DatabaseError, Name};

/// The spool from which a delivery comes.
#[derive(Clone, Copy, Debug)]
pub struct SpoolOrigin {
    /// Random number of the spool.
    pub spool: i64,
    /// Number of its first batch, or of the next one if it is empty.
    pub first: u64,
    /// Random number of the run of the probe; 0 if it is unknown.
    pub instance: u64,
}

/// Deliveries that may wait for the database at a time. What waits together is stored together.
const TURNS: usize = 64;

/// Receives batches and stores results.
pub struct Collector {
    store: GroupStore,
    /// Limits the deliveries that wait for the database at a time: each blocks a thread.
    turns: Semaphore,
    tasks: watch::Receiver<Arc<Tasks>>,
    pub(super) removed: watch::Receiver<Arc<Removed>>,
    ongoing: Mutex<HashMap<u64, Arc<Ongoing>>>,
    /// Notified when results are stored.
    stored: watch::Sender<()>,
    /// Why results cannot be stored; none if they can.
    trouble: watch::Sender<Option<String>>,
    exporter_stats: ExporterStats,
    pub(super) epochs: Epochs,
    kafka_stats: KafkaStats,
}

/// Why a delivery is rejected.
#[derive(Debug, Error)]
pub enum Refused {
    /// The task does not exist.
    #[error("there is no task {0}")]
    NoSuchTask(u64),
    /// The probe takes no part in the task.
    #[error("probe {probe} does not observe point {point} of task {task}")]
    NotYours {
        /// Task.
        task: Name,
        /// Requested point.
        point: u32,
        /// The probe.
        probe: Name,
    },
    /// The task is at another collector, or has come back from one: the probe uses an earlier placement.
    #[error("task {0} moved to another collector")]
    Moved(Name),
    /// Another call delivers from a newer spool, or results could not be stored.
    #[error("another call replaced this one for task {0}; reconnect")]
    Superseded(u64),
    /// A batch was skipped.
    #[error("wrong batch number: expected {0}")]
    OutOfTurn(u64),
    /// Results cannot be stored.
    #[error("cannot store results: {0}")]
    Results(#[from] DatabaseError),
}

/// A task with deliveries.
struct Ongoing {
    task: u64,
    name: Name,
    state: Mutex<State>,
    /// Notified of each change of the state.
    changed: watch::Sender<()>,
}

struct State {
    processor: Processor,
    /// Batches to be archived when they are acknowledged.
    unacknowledged: Unacknowledged,
    /// Everything before this time is stored.
    settled_until: Time<Utc>,
    spools: [Option<i64>; 2],
    /// Runs of the probes that delivered last; 0 if unknown.
    instances: [u64; 2],
    acknowledged: [u64; 2],
    /// The state is ahead of the stored results and must be discarded.
    is_lost: bool,
}

/// Delivery of one point of a task.
pub struct Channel {
    collector: Arc<Collector>,
    ongoing: Arc<Ongoing>,
    point: Point,
    spool: i64,
    epoch: u64,
    changed: watch::Receiver<()>,
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

    /// Opens the delivery of a point by a probe from a spool.
    ///
    /// # Errors
    /// When the probe takes no part in the task, or results cannot be read or written.
    pub fn open(
        self: &Arc<Self>,
        probe: &Name,
        (task, point): (u64, u32),
        origin: SpoolOrigin,
    ) -> Result<Channel, Refused> {
        let (entered, point) = self.part(probe, task, point)?;
        self.begin(&entered, (task, point), origin, probe)
    }

    /// Opens the delivery of a foreign exporter, which has no spool: batches that are not settled are lost with this
    /// process.
    ///
    /// # Errors
    /// When the task has no foreign points, or results cannot be read or written.
    pub(super) fn open_reported(
        self: &Arc<Self>,
        (number, point): (u64, Point),
        spool: i64,
        exporter: &impl fmt::Display,
    ) -> Result<Channel, Refused> {
        let found = self.tasks.borrow().get(&number).map(|it| it.task.clone());
        let is_meant = |task: &Task| matches!(task.measure, Measure::ReportedDelay(_));
        let task = found.filter(is_meant).ok_or(Refused::NoSuchTask(number))?;
        let origin = SpoolOrigin { spool, first: 1, instance: 0 };
        self.begin(&task, (number, point), origin, exporter)
    }

    pub(super) fn begin(
        self: &Arc<Self>,
        entered: &Task,
        (task, point): (u64, Point),
        SpoolOrigin { spool, first, instance }: SpoolOrigin,
        who: &impl fmt::Display,
    ) -> Result<Channel, Refused> {
        let name = &entered.name;
        let (here, behind) = (side(point), first.saturating_sub(1));
        let TaskEpoch { epoch, is_former } = self.epoch_of(task);
        if is_former {
            return Err(Refused::Moved(name.clone()));
        }
        let ongoing = loop {
            let ongoing = self.ongoing(task, entered)?;
            let mut state = ongoing.state.lock();
            if state.is_lost {
                continue;
            }
            let before = state.spools[here];
            if before == Some(spool) && state.acknowledged[here] >= behind {
                let known = std::mem::replace(&mut state.instances[here], instance);
                if known == instance || known == 0 || instance == 0 {
                    drop(state);
                    break ongoing;
                }
                // What another run delivers may differ from what was received and is not acknowledged: its folder may
                // have been restored.
                state.is_lost = true;
                drop(state);
                ongoing.changed.send_replace(());
                continue;
            }
            info!("{who} delivers to task {name}, from batch {first} of a new spool");
            let begun = {
                let mut results = self.results();
                self.check_not_removed(task)?;
                results.begin_spool(task, point, spool, behind)
            };
            self.noted(begun)?;
            // Unsettled data of the other spool is discarded: part of it may be delivered again.
            state.is_lost = before.is_some();
            (state.spools[here], state.instances[here]) = (Some(spool), instance);
            state.acknowledged[here] = behind;
            state.processor.number_anew(point, behind);
            drop(state);
            ongoing.changed.send_replace(());
        };
        let changed = ongoing.changed.subscribe();
        Ok(Channel { collector: Arc::clone(self), ongoing, point, spool, epoch, changed })
    }

    /// The task and its point, if the probe observes it.
    pub(super) fn part(
        &self,
        probe: &Name,
        task: u64,
        point: u32,
    ) -> Result<(Task, Point), Refused> {
        let tasks = self.tasks.borrow();
        let task = &tasks.get(&task).ok_or(Refused::NoSuchTask(task))?.task;
        let mut own = [(0, Point::A), (1, Point::B)].into_iter().zip(task.measure.probes());
        let found = own.find(|((number, _), of)| *number == point && *of == probe);
        let name = || task.name.clone();
        let not_yours = || Refused::NotYours { task: name(), point, probe: probe.clone() };
        let ((_, point), _) = found.ok_or_else(not_yours)?;
        Ok((task.clone(), point))
    }

    fn ongoing(&self, task: u64, entered: &Task) -> Result<Arc<Ongoing>, DatabaseError> {
        let mut all = self.ongoing.lock();
        // A discarded state is rebuilt from the stored results.
        if let Some(ongoing) = all.get(&task).filter(|it| !it.state.lock().is_lost) {
            return Ok(Arc::clone(ongoing));
        }
        let progress = self.results().progress(task)?;
        let processor = Processor::new(&entered.measure, &progress);
        let unacknowledged = Unacknowledged::new(&entered.measure);
        let acknowledged = progress.delivered.map(|it| it.acknowledged);
        let spools = progress.delivered.map(|it| it.spool);
        let instances = [0; 2];
        let settled_until = progress.settled_until;
        let is_lost = false;
        let state = Mutex::new(State {
            processor,
            unacknowledged,
            settled_until,
            spools,
            instances,
            acknowledged,
            is_lost,
        });
        let (name, changed) = (entered.name.clone(), watch::Sender::default());
        let ongoing = Arc::new(Ongoing { task, name, state, changed });
        all.insert(task, Arc::clone(&ongoing));
        Ok(ongoing)
    }

    /// Ends the deliveries of a task: what is not stored is discarded.
    pub(super) fn supersede(&self, task: u64) {
        let Some(ongoing) = self.ongoing.lock().remove(&task) else { return };
        ongoing.state.lock().is_lost = true;
        ongoing.changed.send_replace(());
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

impl Channel {
    /// Number of the last batch that is not needed again.
    ///
    /// # Errors
    /// When the channel was superseded.
    pub fn up_to(&self) -> Result<u64, Refused> {
        Ok(self.state()?.acknowledged[side(self.point)])
    }

    /// Time before which all results are stored, in nanoseconds since 1970 (UTC); none if there are none yet. They need
    /// no batch up to [`Self::up_to`], which is returned, too.
    ///
    /// # Errors
    /// When the channel was superseded.
    pub fn settled(&self) -> Result<(u64, Option<i64>), Refused> {
        let state = self.state()?;
        let settled_until = state.settled_until.as_nanos();
        let settled_until = (settled_until > i64::MIN).then_some(settled_until);
        Ok((state.acknowledged[side(self.point)], settled_until))
    }

    /// Epoch of the task's placement.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether batches should wait until the other point catches up.
    ///
    /// # Errors
    /// When the channel was superseded.
    pub fn is_ahead(&self) -> Result<bool, Refused> {
        Ok(self.state()?.processor.is_ahead(self.point))
    }

    /// Waits until either point of the task has delivered something.
    pub async fn changed(&mut self) {
        // The sender is part of `ongoing`.
        drop(self.changed.changed().await);
    }

    /// Takes a batch. A malformed batch is skipped, and its time counts as not observed.
    ///
    /// # Errors
    /// When the number is not the next one, or results cannot be stored. Then all unacknowledged batches must be
    /// delivered again.
    pub fn take(&self, number: u64, message: &[u8]) -> Result<(), Refused> {
        self.deliver(|state, point| {
            let is_unknown = state.processor.is_unknown(point);
            let (delivery, why) = state.processor.take(point, number, message);
            if let Some(why) = &why {
                warn!("task {}: skipped batch {number}: {why}", self.ongoing.name);
            }
            if delivery == Delivery::Taken && state.unacknowledged.is_archived() {
                let content = match why {
                    Some(why) => ObservedContent::Malformed(why),
                    None => ObservedContent::Observations(message.to_vec()),
                };
                state.unacknowledged.push(self.observed(number..=number, is_unknown, content));
            }
            delivery
        })
    }

    /// A batch to be archived.
    fn observed(
        &self,
        numbers: RangeInclusive<u64>,
        is_unknown: bool,
        content: ObservedContent,
    ) -> ObservedBatch {
        let Self { point, spool, epoch, .. } = *self;
        ObservedBatch { point, spool, epoch, numbers, is_unknown, content }
    }

    /// Skips batches that the probe dropped, with `packets` packets before `until`, in nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub fn give_up(
        &self,
        numbers: &RangeInclusive<u64>,
        until: i64,
        packets: u64,
    ) -> Result<(), Refused> {
        let until = Time::from_nanos(until);
        self.deliver(|state, point| {
            let is_unknown = state.processor.is_unknown(point);
            let delivery = state.processor.give_up(point, numbers, until, packets);
            if delivery == Delivery::Taken && state.unacknowledged.is_archived() {
                let content = ObservedContent::Dropped { until, packets };
                state.unacknowledged.push(self.observed(numbers.clone(), is_unknown, content));
            }
            delivery
        })
    }

    fn deliver(&self, act: impl FnOnce(&mut State, Point) -> Delivery) -> Result<(), Refused> {
        let Ongoing { task, name, changed, .. } = &*self.ongoing;
        let mut state = self.state()?;
        // Stays set if anything below fails, or panics.
        state.is_lost = true;
        let delivery = act(&mut state, self.point);
        if delivery == Delivery::Taken
            && let Some(mut settled) = state.processor.settle()
        {
            settled.observed = state.unacknowledged.take(settled.acknowledged, settled.until);
            let Settled { acknowledged, late, until, .. } = settled;
            let is_removed = |task| self.collector.is_removed(task);
            let stored = match self.collector.store.store(*task, settled, is_removed) {
                Ok(Outcome::Removed) => return Err(Refused::Superseded(*task)),
                stored => stored.map(drop),
            };
            if let Err(error) = self.collector.noted(stored) {
                changed.send_replace(());
                return Err(error.into());
            }
            state.acknowledged = acknowledged;
            state.settled_until = until;
            self.collector.stored.send_replace(());
            if late > 0 {
                warn!("task {name}: {late} packets arrived after their windows were final");
            }
        }
        state.is_lost = false;
        drop(state);
        match delivery {
            Delivery::Expected(number) => return Err(Refused::OutOfTurn(number)),
            Delivery::Duplicate => {}
            Delivery::Taken => {
                changed.send_replace(());
            }
        }
        Ok(())
    }

    /// The state of the task, unless the channel was superseded.
    fn state(&self) -> Result<MutexGuard<'_, State>, Refused> {
        let Ongoing { task, name, state, .. } = &*self.ongoing;
        let here = TaskEpoch { epoch: self.epoch, is_former: false };
        if self.collector.epoch_of(*task) != here {
            return Err(Refused::Moved(name.clone()));
        }
        let state = state.lock();
        let is_newest = state.spools[side(self.point)] == Some(self.spool);
        if is_newest && !state.is_lost { Ok(state) } else { Err(Refused::Superseded(*task)) }
    }
}
