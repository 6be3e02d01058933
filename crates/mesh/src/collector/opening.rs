//! Opening of deliveries: of probes, and of foreign exporters.

use std::fmt;
use std::sync::Arc;

use tracing::info;
use wirestamp_metrics::Point;

use super::ongoing::Ongoing;
use super::placements::TaskEpoch;
use super::{Channel, Collector, Refused, side};
use crate::task::{Measure, Task};
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

impl Collector {
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
            let mut state = ongoing.state();
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
                ongoing.publish(&state);
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
            ongoing.publish(&state);
        };
        Ok(Channel::new(Arc::clone(self), ongoing, (point, spool, epoch)))
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

    /// The state of a task. A discarded one is rebuilt from the stored results.
    fn ongoing(&self, number: u64, task: &Task) -> Result<Arc<Ongoing>, DatabaseError> {
        let mut all = self.ongoing.lock();
        if let Some(ongoing) = all.get(&number) {
            if !ongoing.state().is_lost {
                return Ok(Arc::clone(ongoing));
            }
            // Deliveries that have not noticed it must open again.
            ongoing.discard();
        }
        let progress = self.results().progress(number)?;
        let ongoing = Arc::new(Ongoing::new(number, task, &progress));
        all.insert(number, Arc::clone(&ongoing));
        Ok(ongoing)
    }
}
