//! A task with two foreign points.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::protocol::ipfix::{Digests, HELD_BACK, Message, NotTaken, Order};
use crate::protocol::{MachineClock, ObservationBatch};
use tracing::{info, warn};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Point;

use super::exporter_stats::Counts;
use crate::collector::{Channel, Collector, Refused};
use crate::task::{ForeignPoint, ReportedDelay};

/// After this time without a message, a point counts as not observed, so that the other one can proceed. If both are
/// silent, this is repeated at the same interval.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Max distance of a message before the newest one, unless it was overtaken. Beyond that, the exporter's clock was set
/// back.
const MAX_STEP_BACK: Span = Span::from_secs(5);

/// How far the time advances when the task ends: then all reports are settled.
const CLOSING: Span = Span::from_secs(30);

/// Max packets held for a point while the other is behind: half a minute of one exporter, at most 100 MB.
const MAX_HELD: usize = 1 << 20;

/// Both points of a task.
pub(super) struct Path {
    pub(super) ends: [End; 2],
}

/// A point.
pub(super) struct End {
    pub(super) at: ForeignPoint,
    task: u64,
    point: Point,
    digests: Digests,
    /// Rejected records that are counted already.
    counted: NotTaken,
    /// Spool number of this process.
    spool: i64,
    channel: Option<Channel>,
    /// Number of the next batch.
    next: u64,
    /// Time of the last message, or of the start.
    last_message: Instant,
    /// When the point was last reported as not observed, if it is silent.
    passed_over: Option<Instant>,
    /// The rejection was logged.
    is_refused: bool,
}

impl Path {
    pub(super) fn new(task: u64, reported: &ReportedDelay, spool: i64) -> Self {
        let ReportedDelay { from, to, clock_error, .. } = *reported;
        let error = clock_error.and_then(|it| i64::try_from(it.as_nanos()).ok());
        let error = error.map(Span::from_nanos);
        let end = |at: ForeignPoint, point: Point| {
            // Two exporters may share a machine, but this is not known.
            let machine = [if point == Point::A { 1 } else { 2 }; 16];
            End {
                at,
                task,
                point,
                digests: Digests::new(at.point, MachineClock { machine, error }),
                counted: NotTaken::default(),
                spool,
                channel: None,
                next: 1,
                last_message: Instant::now(),
                passed_over: None,
                is_refused: false,
            }
        };
        Self { ends: [end(from, Point::A), end(to, Point::B)] }
    }

    /// Delivers what is ready at both points, and reports silent ones as not observed.
    pub(super) fn process(
        &mut self,
        collector: &Arc<Collector>,
        now: Time<Utc>,
        counts: &mut Counts,
    ) {
        let is_silent =
            self.ends.each_ref().map(|end| end.last_message.elapsed() >= SILENCE_TIMEOUT);
        for (end, other_is_silent) in self.ends.iter_mut().zip([is_silent[1], is_silent[0]]) {
            end.deliver(collector, counts);
            if end.last_message.elapsed() < SILENCE_TIMEOUT {
                end.passed_over = None;
            } else if !other_is_silent
                || end.passed_over.is_none_or(|it| it.elapsed() >= SILENCE_TIMEOUT)
            {
                end.pass_over(collector, now, counts);
            }
            end.make_room();
            end.count(counts);
        }
    }

    /// Settles all reports when the task ends.
    pub(super) fn end(mut self, collector: &Arc<Collector>, now: Time<Utc>, counts: &mut Counts) {
        let newest = self.ends.iter().filter_map(|end| end.digests.newest()).max();
        let Some(newest) = newest else { return };
        let until = newest.max(now) + CLOSING;
        // A point that is ahead must wait until the other has ended.
        for _ in 0..2 {
            for end in &mut self.ends {
                end.deliver(collector, counts);
                end.offer(collector, counts, |digests| digests.close(until));
            }
        }
        self.ends.iter_mut().for_each(|end| end.count(counts));
    }
}

impl End {
    /// Takes a message. Returns whether the exporter's clock was set back.
    pub(super) fn take(
        &mut self,
        message: &Message<'_>,
        sent: Time<Utc>,
        counts: &mut Counts,
    ) -> bool {
        self.last_message = Instant::now();
        let is_next = !matches!(message.order, Order::Late(_) | Order::Copy);
        let is_before = |newest| sent + MAX_STEP_BACK < newest;
        let is_set_back = is_next && self.digests.newest().is_some_and(is_before);
        if is_set_back {
            self.begin_anew(counts);
        }
        self.digests.take(message);
        is_set_back
    }

    /// Records that a message was skipped.
    pub(super) fn leave_out(&mut self) {
        self.digests.interrupt();
    }

    /// Discards all state: earlier reports are not related to later ones.
    fn begin_anew(&mut self, counts: &mut Counts) {
        self.digests.reset();
        self.count(counts);
        // With a new spool, both points begin at the settled time.
        self.spool += 1;
        self.channel = None;
    }

    fn deliver(&mut self, collector: &Arc<Collector>, counts: &mut Counts) {
        if self.digests.newest().is_some() {
            self.offer(collector, counts, Digests::ready);
        }
    }

    /// Reports the silent point as not observed.
    fn pass_over(&mut self, collector: &Arc<Collector>, now: Time<Utc>, counts: &mut Counts) {
        let silence = i64::try_from(self.last_message.elapsed().as_nanos())
            .map_or(Span::MAX, Span::from_nanos);
        // By the exporter's clock, if it has ever sent a message.
        let until = self.digests.newest().map_or(now, |newest| newest + silence) - HELD_BACK;
        let mut is_offered = false;
        self.offer(collector, counts, |digests| {
            is_offered = true;
            digests.close(until)
        });
        if is_offered && self.passed_over.replace(Instant::now()).is_none() {
            let Self { at, task, .. } = self;
            info!("{at} of task {task} is silent: its packets are undetermined");
        }
    }

    /// Delivers observations, unless the other point must catch up first.
    fn offer(
        &mut self,
        collector: &Arc<Collector>,
        counts: &mut Counts,
        next: impl FnOnce(&mut Digests) -> Option<ObservationBatch>,
    ) {
        if let Err(why) = self.try_to_offer(collector, counts, next) {
            self.channel = None;
            // Undelivered observations are lost; the next ones begin with a gap.
            self.digests.begin_anew();
            if !matches!(why, Refused::Superseded(_))
                && !std::mem::replace(&mut self.is_refused, true)
            {
                warn!(
                    "cannot take the reports of {} for task {}: {why}; retrying",
                    self.at, self.task
                );
            }
        }
    }

    fn try_to_offer(
        &mut self,
        collector: &Arc<Collector>,
        counts: &mut Counts,
        next: impl FnOnce(&mut Digests) -> Option<ObservationBatch>,
    ) -> Result<(), Refused> {
        if self.channel.is_none() {
            let channel = collector.open_reported((self.task, self.point), self.spool, &self.at)?;
            self.next = channel.up_to()?.saturating_add(1);
            self.digests.settled(collector.settled_until(self.task)?);
            self.channel = Some(channel);
            self.is_refused = false;
        }
        let Some(channel) = &self.channel else { return Ok(()) };
        if channel.is_ahead()? {
            return Ok(());
        }
        if let Some(seen) = next(&mut self.digests) {
            channel.take(self.next, &seen.encode())?;
            self.next += 1;
            counts.packets += seen.observations.len() as u64;
        }
        Ok(())
    }

    fn make_room(&mut self) {
        if self.digests.held() > MAX_HELD {
            warn!(
                "{} of task {}: dropped its reports: the other point is too far behind",
                self.at, self.task
            );
            self.digests.give_up();
        }
    }

    fn count(&mut self, counts: &mut Counts) {
        let NotTaken { other, late, early, dropped } = self.digests.not_taken();
        let before = std::mem::replace(&mut self.counted, self.digests.not_taken());
        counts.no_packets += other - before.other;
        counts.out_of_time += late - before.late + early - before.early;
        counts.dropped += dropped - before.dropped;
    }
}
