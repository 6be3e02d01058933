//! Records of a partition, and the answers to them. Without input and output, so that tests can lose, repeat and delay
//! anything.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tracing::warn;

use super::incoming::{Accepted, Content, Incoming, Waiting};
use super::positions::Positions;
use crate::collector::{Collector, EarlierDelivery, Opened, Refused, SpoolOrigin};
use crate::kafka::v1::record::What;
use crate::kafka::v1::{Answer, Dropped, Record};
use crate::{DatabaseError, Name};

/// Valid batch numbers (databases store them as signed), and max packets in dropped batches.
const NUMBERS: RangeInclusive<u64> = 1..=i64::MAX.cast_unsigned() - 1;
const MAX_PACKETS: u64 = 1 << 40;

/// Receives the records of a partition.
pub(super) struct Intake {
    collector: Arc<Collector>,
    points: BTreeMap<(u64, u32), Incoming>,
    /// Answers that belong to no session of this collector.
    others: Vec<Answer>,
    /// Max bytes of batches that wait for the other points of their tasks.
    max_waiting: usize,
}

impl Intake {
    pub(super) fn new(collector: Arc<Collector>, max_waiting: usize) -> Self {
        Self { collector, points: BTreeMap::new(), others: Vec::new(), max_waiting }
    }

    /// Whether a task is one of this collector.
    pub(super) fn is_own(&self, task: u64) -> bool {
        self.collector.is_removed(task) || self.collector.is_here(task)
    }

    /// Takes a record of a probe.
    ///
    /// # Errors
    /// When a session cannot be stored. The record must be taken again.
    pub(super) fn take(
        &mut self,
        positions: &mut Positions,
        offset: i64,
        probe: &Name,
        record: Record,
    ) -> Result<(), DatabaseError> {
        let stats = self.collector.kafka_stats();
        let point = (record.task, record.point);
        if self.collector.is_removed(record.task) {
            self.discard(&record);
            return Ok(());
        }
        let here = self.collector.epoch_of(record.task).epoch;
        match record.epoch.map_or(Ordering::Equal, |it| it.cmp(&here)) {
            Ordering::Equal => {}
            // Of an earlier placement of the task. Without an answer: the session of the new one must not end.
            Ordering::Less => {
                stats.count(|it| it.stale += 1);
                return Ok(());
            }
            // The task has moved, and the controller has not sent its placement yet. Nothing else arrives in the session
            // that is open, so its records are not needed any more.
            Ordering::Greater => {
                stats.count(|it| it.stale += 1);
                if self.collector.observes(probe, point).is_ok() {
                    self.points.remove(&point);
                }
                return Ok(());
            }
        }
        let known = positions.session(point);
        if record.session < known {
            stats.count(|it| it.stale += 1);
            // Another run of the probe has used a higher number, perhaps with another clock.
            if matches!(record.what, Some(What::Inquiry(_))) {
                let Record { task, point, spool, epoch, .. } = record;
                let restart = true;
                self.others.push(Answer {
                    task,
                    point,
                    spool,
                    session: known,
                    restart,
                    epoch,
                    ..Answer::default()
                });
            }
            return Ok(());
        }
        let is_of = |it: &Incoming| it.session == record.session && it.probe == *probe;
        if !self.points.get(&point).is_some_and(is_of) {
            let origin =
                SpoolOrigin { spool: record.spool, first: record.first, instance: record.instance };
            if let Err(why) = self.collector.observes(probe, point) {
                warn!("rejected records of {probe} in Kafka: {why}");
                stats.count(|it| it.refused += 1);
                return Ok(());
            }
            // Before the collector begins it: later, records of earlier sessions would be taken for newer ones.
            positions.begin_session(point, record.session)?;
            let Record { epoch, settled_until, begin, .. } = record;
            let earlier = EarlierDelivery { epoch, settled_until, begin };
            let opened = self.collector.open_moved(probe, point, origin, earlier);
            let opened = opened.and_then(|it| match it {
                Opened::Channel(it) => {
                    Incoming::new(probe.clone(), record.session, record.spool, it).map(Some)
                }
                // The probe asks again until it gets an answer.
                Opened::Waiting => Ok(None),
            });
            match opened {
                Ok(Some(incoming)) => drop(self.points.insert(point, incoming)),
                Ok(None) => {
                    self.points.remove(&point);
                    return Ok(());
                }
                Err(why) => {
                    // The controller has sent another placement since the comparison above.
                    if !matches!(why, Refused::Moved(_)) {
                        warn!("cannot take records of {probe} from Kafka: {why}");
                    }
                    self.points.remove(&point);
                    return Ok(());
                }
            }
        }
        let Some(incoming) = self.points.get_mut(&point) else { return Ok(()) };
        if incoming.spool != record.spool {
            stats.count(|it| it.refused += 1);
            return Ok(());
        }
        match record.what {
            Some(What::Inquiry(inquiry)) => incoming.inquire(inquiry.sent),
            _ if !incoming.is_open() => {}
            Some(What::Part(part)) if NUMBERS.contains(&part.number) => {
                if part.number < incoming.next {
                    stats.count(|it| it.duplicates += 1);
                } else if part.number > incoming.next {
                    stats.count(|it| it.gaps += 1);
                    incoming.gap();
                } else {
                    let (batch, is_complete) = incoming.assemble(part, offset);
                    match batch.map(|it| incoming.accept(it)) {
                        None if !is_complete => {
                            stats.count(|it| it.gaps += 1);
                            incoming.gap();
                        }
                        accepted => count(&self.collector, accepted),
                    }
                }
            }
            Some(What::Dropped(Dropped { first, last, until, packets }))
                if first <= last && NUMBERS.contains(&first) && NUMBERS.contains(&last) =>
            {
                let what = Content::Dropped { until, packets: packets.min(MAX_PACKETS) };
                let accepted = incoming.accept(Waiting { numbers: first..=last, what, offset });
                count(&self.collector, Some(accepted));
            }
            _ => stats.count(|it| it.unreadable += 1),
        }
        self.advance(record.task);
        self.limit();
        self.fence(positions)
    }

    /// Acknowledges records of a removed task without storing them, so that the batches leave the spool.
    fn discard(&mut self, record: &Record) {
        self.points.remove(&(record.task, record.point));
        let last = match &record.what {
            Some(What::Part(part)) => part.number,
            Some(What::Dropped(dropped)) => dropped.last,
            Some(What::Inquiry(inquiry)) => inquiry.sent,
            None => 0,
        };
        let up_to = last.max(record.first.saturating_sub(1));
        let Record { task, point, spool, session, epoch, .. } = *record;
        let next = up_to.saturating_add(1);
        self.others.retain(|it| (it.task, it.point) != (task, point));
        let answer =
            Answer { task, point, spool, session, up_to, next, epoch, ..Answer::default() };
        self.others.push(answer);
    }

    /// Passes batches of a task to the collector: those of one point may wait for those of the other.
    fn advance(&mut self, task: u64) {
        let points = (task, 0)..=(task, u32::MAX);
        while self.points.range_mut(points.clone()).fold(false, |any, (_, it)| it.advance() || any)
        {
        }
    }

    /// Passes on all batches that need not wait any more, and notices sessions that other deliveries have replaced.
    ///
    /// # Errors
    /// When the end of a session cannot be stored.
    pub(super) fn advance_all(&mut self, positions: &mut Positions) -> Result<(), DatabaseError> {
        self.drop_moved();
        let tasks: Vec<_> = self.points.keys().map(|(task, _)| *task).collect();
        tasks.into_iter().for_each(|task| self.advance(task));
        self.fence(positions)
    }

    /// Drops the sessions of tasks that have moved: they need no records, and no answers.
    fn drop_moved(&mut self) {
        let Self { collector, points, .. } = self;
        points.retain(|(task, _), it| {
            let is_current = || it.epoch == collector.epoch_of(*task).epoch;
            collector.is_removed(*task) || collector.is_here(*task) && is_current()
        });
    }

    /// Ignores the records of sessions that have ended from now on: the probe may deliver in another way now.
    fn fence(&mut self, positions: &mut Positions) -> Result<(), DatabaseError> {
        self.drop_moved();
        for (point, incoming) in &self.points {
            if !incoming.is_open() && positions.session(*point) == incoming.session {
                positions.begin_session(*point, incoming.session.saturating_add(1))?;
            }
        }
        Ok(())
    }

    /// Discards waiting batches if they take too much memory, of the points with most of them.
    fn limit(&mut self) {
        while self.points.values().map(Incoming::waiting_bytes).sum::<usize>() > self.max_waiting {
            let most = self.points.values_mut().max_by_key(|it| it.waiting_bytes());
            let Some(deferred) = most.map(Incoming::defer).filter(|it| *it > 0) else { return };
            self.collector.kafka_stats().count(|it| it.deferred += deferred);
        }
    }

    /// The answers that are due at a time, in nanoseconds since 1970 (UTC).
    pub(super) fn answers(&mut self, at: i64) -> Vec<Answer> {
        self.drop_moved();
        let mut answers = std::mem::take(&mut self.others);
        answers.iter_mut().for_each(|it| it.at = at);
        let due = self.points.iter_mut().filter_map(|(point, it)| it.answer(*point, at));
        answers.extend(due);
        answers
    }

    /// The last answers could not be sent: they are due again.
    pub(super) fn answer_again(&mut self) {
        self.points.values_mut().for_each(Incoming::answer_again);
    }

    /// The lowest offset whose record is needed again after a restart, if the next record has the offset `next`.
    pub(super) fn needed(&self, next: i64) -> i64 {
        self.points.values().filter_map(Incoming::needed).min().unwrap_or(next).min(next)
    }
}

fn count(collector: &Collector, accepted: Option<Accepted>) {
    collector.kafka_stats().count(|it| match accepted {
        Some(Accepted::Taken) => it.taken += 1,
        Some(Accepted::Duplicate) => it.duplicates += 1,
        Some(Accepted::Gap) => it.gaps += 1,
        // A part.
        None => {}
    });
}

impl Collector {
    /// Whether a task is at this collector now.
    fn is_here(&self, task: u64) -> bool {
        self.tasks().borrow().contains_key(&task) && !self.epoch_of(task).is_former
    }

    /// Whether a probe observes a point of a task.
    fn observes(&self, probe: &Name, (task, point): (u64, u32)) -> Result<(), Refused> {
        self.part(probe, task, point).map(drop)
    }
}
