//! Tasks that move between collectors.
//!
//! Each placement of a task has an epoch. A collector accepts batches only in the newest epoch of a task. After a move it
//! waits until the probes of all points have opened their deliveries. They state before which time all results are
//! stored. The latest of these times is the start of the new epoch: each probe still has all batches that are needed from
//! then on.

use std::sync::Arc;

use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::Time;
use wirestamp_metrics::Point;

use super::placements::{
    AllBegun, EarlierDelivery, PointOpening, TaskEpoch, TaskEpochs, WaitingOpenings, start,
};
use super::results::{Begun, EpochBegin};
use super::{Channel, Collector, Refused, SpoolOrigin, side};
use crate::Name;
use crate::task::Task;

/// A delivery that was opened.
pub enum Opened {
    /// Batches can be taken.
    Channel(Channel),
    /// The task moved here, and the probe of the other point has not opened its delivery yet.
    Waiting,
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
        let openings = waiting.entry(number).or_default();
        if openings.epoch != epoch {
            *openings = WaitingOpenings { epoch, points: [None; 2] };
        }
        let SpoolOrigin { spool, first, .. } = origin;
        openings.points[side(point)] = Some(PointOpening { spool, first, earlier });
        let known: Vec<_> = [Point::A, Point::B]
            .into_iter()
            .zip(openings.points)
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
