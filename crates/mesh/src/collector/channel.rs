//! Channels: delivery of a point's batches, and their way to results.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::warn;
use wirestamp_clock::Time;
use wirestamp_metrics::Point;

use super::group_store::Outcome;
use super::observed::{ObservedBatch, ObservedContent};
use super::ongoing::{Ongoing, Standing, State};
use super::placements::TaskEpoch;
use super::{Collector, Delivery, Refused, Settled, side};

/// Delivery of one point of a task.
pub struct Channel {
    collector: Arc<Collector>,
    ongoing: Arc<Ongoing>,
    point: Point,
    spool: i64,
    epoch: u64,
    standing: watch::Receiver<Standing>,
}

impl Channel {
    /// Delivery of a point from a spool, in an epoch of the placement of its task.
    pub(super) fn new(
        collector: Arc<Collector>,
        ongoing: Arc<Ongoing>,
        (point, spool, epoch): (Point, i64, u64),
    ) -> Self {
        let standing = ongoing.subscribe();
        Self { collector, ongoing, point, spool, epoch, standing }
    }

    /// Number of the last batch that is not needed again.
    ///
    /// # Errors
    /// When the channel was superseded.
    pub fn up_to(&self) -> Result<u64, Refused> {
        Ok(self.standing()?.acknowledged[side(self.point)])
    }

    /// Time before which all results are stored, in nanoseconds since 1970 (UTC); none if there are none yet. They need
    /// no batch up to [`Self::up_to`], which is returned, too.
    ///
    /// # Errors
    /// When the channel was superseded.
    pub fn settled(&self) -> Result<(u64, Option<i64>), Refused> {
        let standing = self.standing()?;
        let settled_until = standing.settled_until.as_nanos();
        let settled_until = (settled_until > i64::MIN).then_some(settled_until);
        Ok((standing.acknowledged[side(self.point)], settled_until))
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
        Ok(self.standing()?.is_ahead[side(self.point)])
    }

    /// Waits until either point of the task has changed what the methods above return, since the last call.
    pub async fn changed(&mut self) {
        // The sender is part of `ongoing`.
        drop(self.standing.changed().await);
    }

    /// Calls [`Self::take`] or [`Self::give_up`] when no other delivery of the task over gRPC does, and few of other tasks.
    pub(super) async fn in_turn<T>(&self, act: impl FnOnce() -> T) -> T {
        let _turn = self.ongoing.turn.lock().await;
        self.collector.in_turn(act).await
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
        let mut state = self.ongoing.state();
        self.check(state.spools, state.is_lost)?;
        // Stays set if anything below fails, or panics.
        state.is_lost = true;
        let delivery = act(&mut state, self.point);
        let stored = match delivery {
            Delivery::Taken => self.store(&mut state),
            Delivery::Duplicate | Delivery::Expected(_) => Ok(()),
        };
        state.is_lost = stored.is_err();
        self.ongoing.publish(&state);
        drop(state);
        stored?;
        match delivery {
            Delivery::Expected(number) => Err(Refused::OutOfTurn(number)),
            Delivery::Taken | Delivery::Duplicate => Ok(()),
        }
    }

    /// Stores what is final, if anything.
    fn store(&self, state: &mut State) -> Result<(), Refused> {
        let Some(mut settled) = state.processor.settle() else { return Ok(()) };
        let Ongoing { task, name, .. } = &*self.ongoing;
        settled.observed = state.unacknowledged.take(settled.acknowledged, settled.until);
        let Settled { acknowledged, late, until, .. } = settled;
        let is_removed = |task| self.collector.is_removed(task);
        let stored = match self.collector.store.store(*task, settled, is_removed) {
            Ok(Outcome::Removed) => return Err(Refused::Superseded(*task)),
            stored => stored.map(drop),
        };
        self.collector.noted(stored)?;
        (state.acknowledged, state.settled_until) = (acknowledged, until);
        self.collector.stored.send_replace(());
        if late > 0 {
            warn!("task {name}: {late} packets arrived after their windows were final");
        }
        Ok(())
    }

    /// What is published of the task, unless the channel was superseded.
    fn standing(&self) -> Result<Standing, Refused> {
        let standing = *self.standing.borrow();
        self.check(standing.spools, standing.is_lost)?;
        Ok(standing)
    }

    /// Fails if the channel was superseded: by a move of the task, or another delivery.
    fn check(&self, spools: [Option<i64>; 2], is_lost: bool) -> Result<(), Refused> {
        let Ongoing { task, name, .. } = &*self.ongoing;
        let here = TaskEpoch { epoch: self.epoch, is_former: false };
        if self.collector.epoch_of(*task) != here {
            return Err(Refused::Moved(name.clone()));
        }
        let is_newest = spools[side(self.point)] == Some(self.spool);
        if is_newest && !is_lost { Ok(()) } else { Err(Refused::Superseded(*task)) }
    }
}
