//! Tasks that move between collectors.
//!
//! Each placement of a task has an epoch. A collector accepts batches only in the newest epoch of a task. After a move it
//! waits until the probes of all points have opened their deliveries. They state before which time all results are
//! stored. The latest of these times is the start of the new epoch: each probe still has all batches that are needed from
//! then on.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::results::{Begun, EpochBegin, Handover, PointBegin};
use super::{Channel, Collector, Refused, Results, SpoolOrigin, WINDOW, side};
use crate::Name;
use crate::task::Task;

/// Placement of a task at this collector. Tasks without one are here, in epoch 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskEpoch {
    /// Rises with each move of the task.
    pub epoch: u64,
    /// The task is at another collector now. Its results are kept.
    pub is_former: bool,
}

/// Placements of tasks that have moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEpochs {
    /// Newest placement by task number.
    pub placed: BTreeMap<u64, TaskEpoch>,
    /// Begins of tasks at other collectors, after they had been here.
    pub handovers: Vec<(u64, Handover)>,
}

/// What a probe states about earlier placements of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierDelivery {
    /// Epoch of the placement that the probe has; none if it is of an earlier version.
    pub epoch: Option<u64>,
    /// All results before this time are stored, in nanoseconds since 1970 (UTC); none if it has no such receipt.
    pub settled_until: Option<i64>,
    /// Begin of the observations in its first batch, in nanoseconds since 1970 (UTC); none without batches.
    pub begin: Option<i64>,
}

/// A delivery that was opened.
pub enum Opened {
    /// Batches can be taken.
    Channel(Channel),
    /// The task moved here, and the probe of the other point has not opened its delivery yet.
    Waiting,
}

/// Epochs that have begun, by task and epoch.
pub type AllBegun = BTreeMap<(u64, u64), Begun>;

/// Opening of a point in a new epoch.
#[derive(Clone, Copy, Debug)]
struct PointOpening {
    origin: SpoolOrigin,
    earlier: EarlierDelivery,
}

/// Epochs of a collector's tasks.
pub(super) struct Epochs {
    placed: watch::Receiver<Arc<TaskEpochs>>,
    /// Openings of the points of tasks whose epoch has not begun, with the epoch.
    waiting: Mutex<HashMap<u64, (u64, [Option<PointOpening>; 2])>>,
    /// Epochs that have begun here.
    begun: watch::Sender<Arc<AllBegun>>,
}

impl Epochs {
    /// The epochs that have begun, as stored. No task has moved yet.
    pub(super) fn of(results: &Results) -> Self {
        let begun = results.begun().unwrap_or_else(|error| {
            warn!("cannot read which tasks moved here: {error}");
            Vec::new()
        });
        let begun: AllBegun = begun.into_iter().map(|it| ((it.task, it.epoch), it)).collect();
        let placed = watch::channel(Arc::default()).1;
        Self { placed, waiting: Mutex::default(), begun: watch::Sender::new(Arc::new(begun)) }
    }
}

impl Collector {
    /// Knows the placements of tasks.
    #[must_use]
    pub fn with_epochs(mut self, placed: watch::Receiver<Arc<TaskEpochs>>) -> Self {
        self.epochs.placed = placed;
        self
    }

    /// The epochs that have begun here, and their changes.
    #[must_use]
    pub fn begun(&self) -> watch::Receiver<Arc<AllBegun>> {
        self.epochs.begun.subscribe()
    }

    /// Changes of the placements of tasks.
    pub(super) fn placements(&self) -> watch::Receiver<Arc<TaskEpochs>> {
        self.epochs.placed.clone()
    }

    pub(super) fn epoch_of(&self, task: u64) -> TaskEpoch {
        self.epochs.placed.borrow().placed.get(&task).copied().unwrap_or_default()
    }

    /// Opens the delivery of a point by a probe from a spool. After a move of the task, the first batch follows what an
    /// earlier collector has stored.
    ///
    /// # Errors
    /// When the probe takes no part in the task, the task is at another collector, or results cannot be read or written.
    pub fn open_moved(
        self: &Arc<Self>,
        probe: &Name,
        (number, point): (u64, u32),
        origin: SpoolOrigin,
        earlier: EarlierDelivery,
    ) -> Result<Opened, Refused> {
        let (entered, point) = self.part(probe, number, point)?;
        let TaskEpoch { epoch, is_former } = self.epoch_of(number);
        if is_former || earlier.epoch.is_some_and(|it| it != epoch) {
            return Err(Refused::Moved(entered.name));
        }
        let is_waiting =
            epoch > 0 && !self.is_begun(number, &entered, epoch, (point, origin, earlier))?;
        if is_waiting {
            return Ok(Opened::Waiting);
        }
        Ok(Opened::Channel(self.begin(&entered, (number, point), origin, probe)?))
    }

    /// Whether an epoch has begun. It begins with the opening of the last point.
    fn is_begun(
        &self,
        number: u64,
        task: &Task,
        epoch: u64,
        (point, origin, earlier): (Point, SpoolOrigin, EarlierDelivery),
    ) -> Result<bool, Refused> {
        let mut waiting = self.epochs.waiting.lock();
        if self.results().progress(number)?.epoch >= epoch {
            return Ok(true);
        }
        let (of, openings) = waiting.entry(number).or_default();
        if *of != epoch {
            (*of, *openings) = (epoch, [None; 2]);
        }
        openings[side(point)] = Some(PointOpening { origin, earlier });
        let known: Vec<_> = [Point::A, Point::B]
            .into_iter()
            .zip(*openings)
            .filter_map(|(point, opening)| Some((point, opening?)))
            .collect();
        if known.len() < task.measure.probes().len() {
            return Ok(false);
        }
        let begin = EpochBegin {
            epoch,
            start: start(&known).map(Time::from_nanos),
            points: known.iter().map(|(point, opening)| opening.begin(*point)).collect(),
        };
        let stored = {
            let mut results = self.results();
            self.check_not_removed(number)?;
            results.begin_epoch(number, &begin)
        };
        self.noted(stored)?;
        waiting.remove(&number);
        drop(waiting);
        self.supersede(number);
        let first = begin.points.first();
        let begun = Begun {
            task: number,
            epoch,
            start: begin.start.map(|it| it.as_nanos()),
            spool: first.map_or(0, |it| it.spool),
            behind: first.map_or(0, |it| it.behind),
        };
        info!("task {} moved here; receiving it in epoch {epoch}", task.name);
        self.epochs.begun.send_modify(|all| {
            Arc::make_mut(all).insert((number, epoch), begun);
        });
        Ok(true)
    }

    /// Deletes results that belong to the collectors to which tasks moved. Ends the deliveries of these tasks.
    pub fn hand_over(&self) {
        let placed = Arc::clone(&self.epochs.placed.borrow());
        let former = placed.placed.iter().filter(|(_, it)| it.is_former);
        former.for_each(|(task, _)| self.supersede(*task));
        for (task, handover) in &placed.handovers {
            let done = self.results().hand_over(*task, handover);
            if let Err(error) = self.noted(done.map(drop)) {
                warn!("cannot delete results of task {task}, which moved: {error}");
            }
        }
    }
}

impl PointOpening {
    fn begin(&self, point: Point) -> PointBegin {
        let SpoolOrigin { spool, first, .. } = self.origin;
        let is_unknown = self.earlier.settled_until.is_none();
        PointBegin { point, spool, behind: first.saturating_sub(1), is_unknown }
    }
}

/// Start of an epoch with these openings, in nanoseconds since 1970 (UTC).
fn start(openings: &[(Point, PointOpening)]) -> Option<i64> {
    let settled = openings.iter().map(|(_, it)| it.earlier.settled_until);
    match openings {
        // Without a receipt, all that is in the spool belongs to this collector, and everything before it to others.
        [(_, PointOpening { origin, earlier })] => {
            earlier.settled_until.or_else(|| earlier.begin.filter(|_| origin.first <= 1))
        }
        // Batches that were acknowledged without a time may be missing: results of earlier collectors count.
        _ if openings
            .iter()
            .any(|(_, it)| it.earlier.settled_until.is_none() && it.origin.first > 1) =>
        {
            None
        }
        // Without any receipt, this collector computes all windows of these spools.
        _ => settled.flatten().max().or_else(|| {
            let begins = openings.iter().map(|(_, it)| it.earlier.begin);
            let first = begins.collect::<Option<Vec<_>>>()?.into_iter().min()?;
            Some(Time::<Utc>::from_nanos(first).interval_begin(WINDOW).as_nanos())
        }),
    }
}
