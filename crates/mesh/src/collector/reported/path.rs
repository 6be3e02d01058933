//! A task of two foreign points.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::protocol::ipfix::{Digests, HELD_BACK, Message, NotTaken, Order};
use crate::protocol::{MachineClock, ObservationBatch};
use tracing::{info, warn};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Point;

use super::heard::Counts;
use crate::collector::{Channel, Collector, Refused};
use crate::task::{ForeignPoint, ReportedDelay};

/// After this time without a message nothing is known of what passes a point, so that the other goes on. Where both are
/// silent it is said as often, so that what was measured before is over one day.
const SILENT: Duration = Duration::from_secs(30);

/// So much before the newest message no other is sent, unless it was overtaken: else the exporter's clock was set back.
const APART: Span = Span::from_secs(5);

/// How far the time goes on when nobody asks for a path any more: then all that was told of it is settled.
const CLOSING: Span = Span::from_secs(30);

/// Packets of a point that are held while the other is behind: half a minute of what one exporter reports, and a
/// hundred megabytes at the most.
const MOST_HELD: usize = 1 << 20;

/// Both points of a task.
pub(super) struct Path {
    pub(super) ends: [End; 2],
}

/// One of them.
pub(super) struct End {
    pub(super) at: ForeignPoint,
    task: u64,
    point: Point,
    digests: Digests,
    /// What was not taken, as far as it is counted.
    counted: NotTaken,
    /// That of this process.
    spool: i64,
    channel: Option<Channel>,
    /// The number of its next batch.
    next: u64,
    /// When it was heard last, or somebody began to listen.
    heard: Instant,
    /// When it was said last that nothing is known of it, if it is silent.
    passed_over: Option<Instant>,
    /// It is said why nothing can be delivered.
    is_refused: bool,
}

impl Path {
    pub(super) fn new(task: u64, reported: &ReportedDelay, spool: i64) -> Self {
        let ReportedDelay { from, to, clock_error } = *reported;
        let error = clock_error.and_then(|it| i64::try_from(it.as_nanos()).ok());
        let error = error.map(Span::from_nanos);
        let end = |at: ForeignPoint, point: Point| {
            // Two exporters may be one machine, but nobody says so.
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
                heard: Instant::now(),
                passed_over: None,
                is_refused: false,
            }
        };
        Self { ends: [end(from, Point::A), end(to, Point::B)] }
    }

    /// Delivers what is ready of both, and says of one that is silent that nothing is known of it.
    pub(super) fn go_on(
        &mut self,
        collector: &Arc<Collector>,
        now: Time<Utc>,
        counts: &mut Counts,
    ) {
        let is_silent = self.ends.each_ref().map(|end| end.heard.elapsed() >= SILENT);
        for (end, other_is_silent) in self.ends.iter_mut().zip([is_silent[1], is_silent[0]]) {
            end.deliver(collector, counts);
            if end.heard.elapsed() < SILENT {
                end.passed_over = None;
            } else if !other_is_silent || end.passed_over.is_none_or(|it| it.elapsed() >= SILENT) {
                end.pass_over(collector, now, counts);
            }
            end.make_room();
            end.count(counts);
        }
    }

    /// Nobody asks for it any more: what both have told of it is settled.
    pub(super) fn end(mut self, collector: &Arc<Collector>, now: Time<Utc>, counts: &mut Counts) {
        let newest = self.ends.iter().filter_map(|end| end.digests.newest()).max();
        let Some(newest) = newest else { return };
        let until = newest.max(now) + CLOSING;
        // One that is ahead of the other has to wait until that has ended.
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
    /// Takes a message that was sent at a time. Says whether the exporter's clock was set back since the one before.
    pub(super) fn take(
        &mut self,
        message: &Message<'_>,
        sent: Time<Utc>,
        counts: &mut Counts,
    ) -> bool {
        self.heard = Instant::now();
        let is_next = !matches!(message.order, Order::Late(_) | Order::Copy);
        let is_before = |newest| sent + APART < newest;
        let is_set_back = is_next && self.digests.newest().is_some_and(is_before);
        if is_set_back {
            self.begin_anew(counts);
        }
        self.digests.take(message);
        is_set_back
    }

    /// A message was not taken.
    pub(super) fn leave_out(&mut self) {
        self.digests.interrupt();
    }

    /// What was told before, and until when everything was, says nothing of what comes.
    fn begin_anew(&mut self, counts: &mut Counts) {
        self.digests.reset();
        self.count(counts);
        // With another spool both points begin where they are settled.
        self.spool += 1;
        self.channel = None;
    }

    fn deliver(&mut self, collector: &Arc<Collector>, counts: &mut Counts) {
        if self.digests.newest().is_some() {
            self.offer(collector, counts, Digests::ready);
        }
    }

    /// Nothing was heard of it for long.
    fn pass_over(&mut self, collector: &Arc<Collector>, now: Time<Utc>, counts: &mut Counts) {
        let silence =
            i64::try_from(self.heard.elapsed().as_nanos()).map_or(Span::MAX, Span::from_nanos);
        // By its own clock, if it was ever heard.
        let until = self.digests.newest().map_or(now, |newest| newest + silence) - HELD_BACK;
        let mut is_told = false;
        self.offer(collector, counts, |digests| {
            is_told = true;
            digests.close(until)
        });
        if is_told && self.passed_over.replace(Instant::now()).is_none() {
            let Self { at, task, .. } = self;
            info!("{at} of task {task} is silent: nothing is known of what passes there");
        }
    }

    /// Hands over what there is, unless the other point has to catch up first.
    fn offer(
        &mut self,
        collector: &Arc<Collector>,
        counts: &mut Counts,
        next: impl FnOnce(&mut Digests) -> Option<ObservationBatch>,
    ) {
        if let Err(why) = self.try_to_offer(collector, counts, next) {
            self.channel = None;
            // What was on its way is lost. What goes on begins where it is known again.
            self.digests.begin_anew();
            if !matches!(why, Refused::Superseded(_))
                && !std::mem::replace(&mut self.is_refused, true)
            {
                warn!(
                    "what {} reports for task {} is not taken: {why}; goes on trying",
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
        if self.digests.held() > MOST_HELD {
            warn!(
                "{} of task {}: gave up what it reported while the other point is behind",
                self.at, self.task
            );
            self.digests.give_up();
        }
    }

    fn count(&mut self, counts: &mut Counts) {
        let NotTaken { other, late, early, given_up } = self.digests.not_taken();
        let before = std::mem::replace(&mut self.counted, self.digests.not_taken());
        counts.no_packets += other - before.other;
        counts.out_of_time += late - before.late + early - before.early;
        counts.given_up += given_up - before.given_up;
    }
}
