//! Correlation of two points of a task, window by window.
//!
//! Only results are stored. A batch is acknowledged when all windows that need it are final. After a crash, or when a probe
//! has restarted, the probes deliver unacknowledged batches again. The outcomes are the same, because they depend only on
//! the observations, and windows that are final already are skipped. So each packet counts exactly once.
//!
//! Some state reaches further back than redelivery and is not exact after a restart: the delay variation of a flow that
//! was silent for longer; which of several identical packets is which; and which missing packets were lost by a
//! capture, if both points saw none for longer or the capture lost packets for longer than [`MAX_MISSED_INTERVAL`].

mod answers;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use crate::protocol::{MachineClock, ObservationBatch};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Config, Correlator, Observation, Outcome, Point};

use self::answers::Answers;
use super::coverage::Coverage;
use super::window::Windows;
use super::{Delivery, ReturnPath, Settled, Window, side, synchronisation};

/// Max time for which missed packets delay the acknowledgement of batches.
const MAX_MISSED_INTERVAL: Span = Span::from_secs(10);

/// Time parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Window length, at least 1 ns. Windows begin at multiples of it since 1970.
    pub window: Span,
    /// Matching parameters. Negative spans count as 0.
    pub matching: Config,
}

/// State of two correlated points.
pub struct Pair {
    timing: Timing,
    correlator: Correlator,
    sides: [Side; 2],
    windows: Windows,
    /// Intervals in which captures missed packets, while they affect open windows.
    missed: Vec<(Time<Utc>, Time<Utc>)>,
    coverage: Coverage,
    /// Answers of an active test.
    answers: Option<Answers>,
}

/// State of one point.
struct Side {
    /// All packets before this time are delivered.
    complete_until: Time<Utc>,
    /// Unacknowledged batches.
    batches: VecDeque<Batch>,
    acknowledged: u64,
    /// Batches before the next one are missing.
    is_unknown: bool,
}

/// Summary of a batch.
struct Batch {
    number: u64,
    complete_until: Time<Utc>,
    /// None if the batch was dropped.
    clock: Option<MachineClock>,
    /// Max time from the stated send time of an answer until it left; none if it is unknown.
    sending: Option<Span>,
    /// Packets dropped with it.
    dropped: u64,
    /// It only states that the point was not observed until its end.
    is_closing: bool,
    /// It is acknowledged together with the next batch, which states until when the point was not observed. Otherwise
    /// this time would count as observed after a restart.
    is_malformed: bool,
}

impl Pair {
    /// Two points whose results before a time are final, and whose batches follow these numbers.
    #[must_use]
    pub fn new(timing: Timing, settled_until: Time<Utc>, acknowledged: [u64; 2]) -> Self {
        let Config { memory, timeout, skew } = timing.matching;
        let (timeout, skew) = (timeout.max(Span::ZERO), skew.max(Span::ZERO));
        let timing = Timing { matching: Config { memory, timeout, skew }, ..timing };
        let beginning = Time::from_nanos(i64::MIN);
        let side = |acknowledged| Side {
            complete_until: beginning,
            batches: VecDeque::new(),
            acknowledged,
            is_unknown: acknowledged == 0,
        };
        Self {
            timing,
            correlator: Correlator::new(timing.matching),
            sides: acknowledged.map(side),
            windows: Windows::new(timing.window, settled_until),
            missed: Vec::new(),
            coverage: Coverage::default(),
            answers: None,
        }
    }

    /// The ends of an active test, which report answers to its packets.
    #[must_use]
    pub fn with_answers(self) -> Self {
        let answers = Answers::new(self.windows.length(), self.windows.settled_until());
        Self { answers: Some(answers), ..self }
    }

    /// Takes the next batch of a point.
    pub fn take(&mut self, point: Point, number: u64, seen: &ObservationBatch) -> Delivery {
        let side = &self.sides[side(point)];
        let delivery = side.receives(&(number..=number));
        if delivery == Delivery::Taken {
            let ObservationBatch { observations, missed, complete_until, begin, clock, .. } = seen;
            // The time of skipped batches is not observed.
            let begin = begin.or_else(|| side.is_unknown.then_some(*complete_until));
            if let Some(begin) = begin {
                self.coverage.leave_out(point, side.complete_until, begin);
            }
            let settled_until = self.windows.settled_until();
            let answers = self.answers.as_mut().filter(|_| point == Point::A);
            if let Some(answers) = answers {
                answers.open_windows(seen, begin, settled_until);
                if let Some(received) = &seen.answers {
                    answers.take(received);
                }
            }
            self.observe_between(point, observations, missed);
            let batch = Batch {
                clock: Some(*clock),
                sending: seen.answers.as_ref().and_then(|answers| answers.sending),
                is_closing: observations.is_empty() && seen.begin == Some(*complete_until),
                ..Batch::without(number, *complete_until, 0)
            };
            self.complete(point, batch);
        }
        delivery
    }

    /// Skips batches that the probe dropped, with `packets` packets before `until`. That time counts as not observed.
    pub fn give_up(
        &mut self,
        point: Point,
        numbers: &RangeInclusive<u64>,
        until: Time<Utc>,
        packets: u64,
    ) -> Delivery {
        let side = &self.sides[side(point)];
        let delivery = side.receives(numbers);
        if delivery == Delivery::Taken {
            self.coverage.leave_out(point, side.complete_until, until);
            if let Some(answers) = self.answers.as_mut().filter(|_| point == Point::A) {
                answers.leave_out(until);
            }
            self.complete(point, Batch::without(*numbers.end(), until, packets));
        }
        delivery
    }

    /// Skips a malformed batch. Its time counts as not observed.
    pub fn leave_out(&mut self, point: Point, number: u64) -> Delivery {
        let side = &mut self.sides[side(point)];
        let delivery = side.receives(&(number..=number));
        if delivery == Delivery::Taken {
            let batch = Batch::without(number, side.complete_until, 0);
            side.push(Batch { is_malformed: true, ..batch });
            side.is_unknown = true;
        }
        delivery
    }

    /// The next batch of a point follows number `behind`, whatever came before: the probe lost its spool, or delivered
    /// elsewhere.
    pub fn number_anew(&mut self, point: Point, behind: u64) {
        let side = &mut self.sides[side(point)];
        side.acknowledged = behind;
        side.batches.iter_mut().for_each(|batch| batch.number = behind);
        side.is_unknown = true;
    }

    /// Observes packets, and missed packets between them.
    fn observe_between(
        &mut self,
        point: Point,
        observations: &[Observation],
        missed: &[CaptureLoss],
    ) {
        let mut intervals: Vec<_> = missed.iter().filter(|it| it.packets > 0).collect();
        intervals.sort_by_key(|it| it.from);
        let mut rest = observations;
        for interval in intervals {
            // The correlator must receive a loss interval before the packets inside it.
            let ahead = rest.iter().position(|it| it.stamp.utc >= interval.from);
            let (before, behind) = rest.split_at(ahead.unwrap_or(rest.len()));
            self.observe(point, before);
            rest = behind;
            self.correlator.missed(point, *interval);
            self.missed.push((interval.from, interval.until));
        }
        self.observe(point, rest);
    }

    fn observe(&mut self, point: Point, observations: &[Observation]) {
        let Self { timing, correlator, windows, coverage, answers, .. } = self;
        let mut record = recorder(windows, answers, coverage, &timing.matching);
        correlator.observe_all(observations, |it| (point, it), &mut record);
    }

    /// Ends a batch: the point is complete up to its time.
    fn complete(&mut self, point: Point, batch: Batch) {
        let Self { timing, correlator, windows, coverage, answers, .. } = self;
        let mut record = recorder(windows, answers, coverage, &timing.matching);
        correlator.advance(point, batch.complete_until, &mut record);
        let side = &mut self.sides[side(point)];
        side.push(batch);
        side.is_unknown = false;
    }

    /// Whether a point is so far ahead that its batches should wait: the correlator would run out of memory.
    #[must_use]
    pub fn is_ahead(&self, point: Point) -> bool {
        let [first, second] = self.sides.each_ref().map(|side| side.complete_until);
        let (own, other) = if point == Point::A { (first, second) } else { (second, first) };
        own > other + self.reach()
    }

    /// Whether the batches of a point before the next one are missing: the time before its end is not observed, unless
    /// it states its begin.
    #[must_use]
    pub fn is_unknown(&self, point: Point) -> bool {
        self.sides[side(point)].is_unknown
    }

    /// Time up to which a point has delivered everything.
    #[must_use]
    pub fn complete_until(&self, point: Point) -> Time<Utc> {
        self.sides[side(point)].complete_until
    }

    /// New final results, if any.
    pub fn settle(&mut self) -> Option<Settled> {
        // Stamps may go back by the skew.
        let decided_until = self.correlator.decided_until() - self.timing.matching.skew;
        let complete = self.sides[0].complete_until.min(self.sides[1].complete_until);
        // Clock states within reach belong to the window, too.
        let until = self.windows.begin(decided_until.min(complete - self.reach()));
        if until <= self.windows.settled_until() {
            return None;
        }
        let mut late = self.windows.take_late();
        let mut return_paths = BTreeMap::new();
        if let Some(answers) = &mut self.answers {
            late += answers.take_late();
            return_paths = answers.settle(until);
        }
        let windows = self.windows.settle(until).into_iter();
        let windows = windows.map(|(begin, (quality, least))| {
            let return_path = return_paths.remove(&begin);
            let return_path =
                return_path.map(|path| ReturnPath { sending: self.sending(begin), ..path });
            (begin, Window { offset: self.offset(begin), quality, least, return_path })
        });
        let windows = windows.collect();
        let needed_from = self.needed_from(until);
        let dropped = self.sides.each_mut().map(|side| side.acknowledge(needed_from));
        // No later batch depends on a closing batch.
        if self.sides.iter().all(Side::is_closed) {
            self.sides.iter_mut().for_each(Side::acknowledge_closing);
        }
        let acknowledged = self.sides.each_ref().map(|side| side.acknowledged);
        self.coverage.forget(until - self.reach());
        Some(Settled { windows, acknowledged, dropped, late, ..Settled::nothing(until) })
    }

    /// Start of the batches that must be delivered again, so that windows from `until` on have the same results.
    ///
    /// A packet depends on others within reach, and those depend on further packets within their reach. Which missing
    /// packets a loss interval explains depends on the interval before it, if both can explain the same packets.
    fn needed_from(&mut self, until: Time<Utc>) -> Time<Utc> {
        let reach = self.reach();
        let farthest = until - MAX_MISSED_INTERVAL;
        self.missed.sort_unstable();
        let needed_from = self.missed.iter().rev().fold(until, |needed_from, (from, until)| {
            if *until + reach >= needed_from - reach { needed_from.min(*from) } else { needed_from }
        });
        let needed_from = needed_from.max(farthest) - reach - reach;
        self.missed.retain(|(_, until)| *until + reach >= needed_from);
        needed_from
    }

    /// Max clock offset while the packets of a window passed both points.
    fn offset(&self, begin: Time<Utc>) -> Result<Span, super::NotSynchronised> {
        let from = begin - self.timing.matching.skew;
        let until = begin + self.windows.length() + self.reach();
        let [first, second] = self.sides.each_ref().map(|side| side.clocks(from, until));
        synchronisation::offset(first, second)
    }

    /// Max time from the stated send time of an answer until it left, while the packets of a window passed both points;
    /// none if it is not known of a batch.
    fn sending(&self, begin: Time<Utc>) -> Option<Span> {
        let until = begin + self.windows.length() + self.reach();
        let batches = self.sides[side(Point::B)].within(begin - self.timing.matching.skew, until);
        let times = batches.filter(|it| !it.is_closing).map(|it| it.sending);
        times.reduce(|one, other| Some(one?.max(other?))).flatten()
    }

    /// Max time between the observations of a packet at both points.
    fn reach(&self) -> Span {
        let Config { timeout, skew, .. } = self.timing.matching;
        timeout + skew
    }
}

/// Records outcomes in windows.
fn recorder(
    windows: &mut Windows,
    answers: &mut Option<Answers>,
    coverage: &Coverage,
    rule: &Config,
) -> impl FnMut(Outcome) {
    move |outcome| {
        let covers = |point, from, until| coverage.covers(point, from, until);
        let outcome = outcome.where_captured(rule, covers);
        windows.record(&outcome);
        if let Some(answers) = answers.as_mut() {
            answers.record(&outcome);
        }
    }
}

impl Batch {
    /// A batch that was skipped.
    fn without(number: u64, complete_until: Time<Utc>, dropped: u64) -> Self {
        let (is_closing, is_malformed) = (false, false);
        let (clock, sending) = (None, None);
        Self { number, complete_until, clock, sending, dropped, is_closing, is_malformed }
    }
}

impl Side {
    /// Whether these batches come next.
    fn receives(&self, numbers: &RangeInclusive<u64>) -> Delivery {
        let newest = self.batches.back().map_or(self.acknowledged, |newest| newest.number);
        Delivery::of(numbers, newest.saturating_add(1))
    }

    fn push(&mut self, batch: Batch) {
        self.complete_until = batch.complete_until.max(self.complete_until);
        self.batches.push_back(Batch { complete_until: self.complete_until, ..batch });
    }

    /// Clock states in a time range.
    fn clocks(&self, from: Time<Utc>, until: Time<Utc>) -> impl Iterator<Item = &MachineClock> {
        self.within(from, until).filter_map(|batch| batch.clock.as_ref())
    }

    /// Batches in a time range.
    fn within(&self, from: Time<Utc>, until: Time<Utc>) -> impl Iterator<Item = &Batch> {
        let behind = self.batches.partition_point(|batch| batch.complete_until <= from);
        // The last one reaches beyond the range.
        let beyond = self.batches.partition_point(|batch| batch.complete_until < until) + 1;
        let beyond = beyond.min(self.batches.len()).max(behind);
        self.batches.range(behind..beyond)
    }

    /// Removes batches complete before a time. Returns the packets dropped with them.
    fn acknowledge(&mut self, until: Time<Utc>) -> u64 {
        let is_done = |it: &Batch| it.complete_until <= until && !it.is_malformed;
        let count = self.batches.iter().rposition(is_done).map_or(0, |last| last + 1);
        let mut dropped = 0_u64;
        for batch in self.batches.drain(..count) {
            self.acknowledged = batch.number;
            dropped = dropped.saturating_add(batch.dropped);
        }
        dropped
    }

    /// Whether nothing is left but a closing batch and malformed ones before it.
    fn is_closed(&self) -> bool {
        let mut batches = self.batches.iter().rev();
        batches.next().is_none_or(|it| it.is_closing) && batches.all(|it| it.is_malformed)
    }

    fn acknowledge_closing(&mut self) {
        if let Some(closing) = self.batches.drain(..).next_back() {
            self.acknowledged = closing.number;
        }
    }
}

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod tests;
