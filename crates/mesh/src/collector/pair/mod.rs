//! Two points of a task: what both saw becomes results, window by window.
//!
//! Nothing is kept on disk but results. A batch is acknowledged only when it can be done without: then all
//! windows that it has a part in are settled. After a crash the probes deliver again what was not acknowledged,
//! the correlator comes to the same outcomes, because those depend on what was seen and not on when it was
//! delivered, and what belongs to windows that were settled before is left out. So each packet is counted once,
//! whatever happens to whom.
//!
//! Some things reach farther back than what is delivered again, and are not exact behind a restart: the delay
//! variation of a flow that was silent for longer; which of several identical packets is which; and which of the
//! packets that are missing a capture lost, where both points had seen none for longer, or where it lost packets
//! again and again for longer than [`FARTHEST`].

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use crate::protocol::{MachineClock, ObservationBatch};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Config, Correlator, Observation, Outcome, Point};

use super::coverage::Coverage;
use super::window::Windows;
use super::{News, Window, side, synchronisation};

/// So far back a stretch of missed packets may keep batches from being acknowledged.
const FARTHEST: Span = Span::from_secs(10);

/// How results are laid out in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a window is; windows begin at its multiples since 1970. A nanosecond at the least.
    pub window: Span,
    /// How packets are matched. Negative spans are taken as 0.
    pub matching: Config,
}

/// What is settled: it will not change.
#[derive(Debug)]
pub struct Settled {
    /// Everything before this time.
    pub until: Time<Utc>,
    /// The windows that are new, by when they begin. Those without packets are left out.
    ///
    /// A packet belongs to the window in which it passed A; one that only B saw, to that in which it did there.
    pub windows: BTreeMap<Time<Utc>, Window>,
    /// What came of a point that no other is compared with.
    pub news: News,
    /// Up to which number the batches of A and of B can be acknowledged, once the windows are stored.
    pub acknowledged: [u64; 2],
    /// How many packets the probes of A and of B gave up that were in batches which can be acknowledged now.
    pub given_up: [u64; 2],
    /// Packets that are in no window, because theirs was settled already: stamps of a point went back
    /// farther than they may, or windows had another length before.
    pub late: u64,
}

impl Settled {
    /// Nothing but that everything before a time is settled.
    pub(crate) fn nothing(until: Time<Utc>) -> Self {
        let (windows, news) = (BTreeMap::new(), News::default());
        Self { until, windows, news, acknowledged: [0; 2], given_up: [0; 2], late: 0 }
    }

    /// When the first result in it begins.
    pub(super) fn first(&self) -> Option<Time<Utc>> {
        let counted = self.news.counts.iter().map(|count| count.begin);
        let followed = self.news.flows.iter().map(|flow| flow.last);
        self.windows.keys().copied().chain(counted).chain(followed).min()
    }
}

/// What has become of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It was taken.
    Taken,
    /// It had been taken before.
    Known,
    /// The one of this number comes first.
    Expected(u64),
}

impl Delivery {
    /// That of batches of these numbers, where the one of another number comes next.
    pub(super) fn of(numbers: &RangeInclusive<u64>, expected: u64) -> Self {
        if *numbers.end() < expected {
            Self::Known
        } else if *numbers.start() > expected {
            Self::Expected(expected)
        } else {
            Self::Taken
        }
    }
}

/// What two points saw.
pub struct Pair {
    timing: Timing,
    correlator: Correlator,
    sides: [Side; 2],
    windows: Windows,
    /// Stretches in which captures lost packets, as long as they have to do with windows that are not settled.
    missed: Vec<(Time<Utc>, Time<Utc>)>,
    coverage: Coverage,
}

/// What one point has delivered.
struct Side {
    /// Everything that passed before is delivered.
    complete_until: Time<Utc>,
    /// The batches that were not acknowledged.
    batches: VecDeque<Batch>,
    acknowledged: u64,
    /// Batches are missing in front of the next.
    is_unknown: bool,
}

/// What is remembered of a batch.
struct Batch {
    number: u64,
    complete_until: Time<Utc>,
    /// None if it was given up.
    clock: Option<MachineClock>,
    /// Packets that were given up with it.
    given_up: u64,
    /// It tells only that nobody looked until its end.
    is_closing: bool,
}

impl Pair {
    /// Two points of which everything before a time is settled, and which have delivered nothing since. Their
    /// batches behind these numbers come next.
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
        }
    }

    /// Takes the next batch of a point, of this number.
    pub fn take(&mut self, point: Point, number: u64, seen: &ObservationBatch) -> Delivery {
        let side = &self.sides[side(point)];
        let delivery = side.receives(&(number..=number));
        if delivery == Delivery::Taken {
            let ObservationBatch { observations, missed, complete_until, begin, clock } = seen;
            // Nothing is known of the time that batches told of which did not come.
            let begin = begin.or_else(|| side.is_unknown.then_some(*complete_until));
            if let Some(begin) = begin {
                self.coverage.leave_out(point, side.complete_until, begin);
            }
            self.observe_between(point, observations, missed);
            let is_closing = observations.is_empty() && seen.begin == Some(*complete_until);
            let (complete_until, clock) = (*complete_until, Some(*clock));
            self.complete(point, Batch { number, complete_until, clock, given_up: 0, is_closing });
        }
        delivery
    }

    /// Takes note that batches of these numbers will not come, which told of so many packets until a time:
    /// nothing is known of what passed the point meanwhile.
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
            self.complete(point, Batch::without(*numbers.end(), until, packets));
        }
        delivery
    }

    /// Takes note that a batch makes no sense: nothing is known of what it told of.
    pub fn leave_out(&mut self, point: Point, number: u64) -> Delivery {
        let side = &mut self.sides[side(point)];
        let delivery = side.receives(&(number..=number));
        if delivery == Delivery::Taken {
            side.push(Batch::without(number, side.complete_until, 0));
            side.is_unknown = true;
        }
        delivery
    }

    /// What comes next of a point is the batch behind this number, whatever came before: its probe has lost
    /// what it held, or others have what it delivered.
    pub fn number_anew(&mut self, point: Point, behind: u64) {
        let side = &mut self.sides[side(point)];
        side.acknowledged = behind;
        side.batches.iter_mut().for_each(|batch| batch.number = behind);
        side.is_unknown = true;
    }

    /// Observes packets, with what was missed between them.
    fn observe_between(
        &mut self,
        point: Point,
        observations: &[Observation],
        missed: &[CaptureLoss],
    ) {
        let mut stretches: Vec<_> = missed.iter().filter(|it| it.packets > 0).collect();
        stretches.sort_by_key(|it| it.from);
        let mut rest = observations;
        for stretch in stretches {
            // What passed in it is known to have done so only if the correlator hears of it before.
            let ahead = rest.iter().position(|it| it.stamp.utc >= stretch.from);
            let (before, behind) = rest.split_at(ahead.unwrap_or(rest.len()));
            self.observe(point, before);
            rest = behind;
            self.correlator.missed(point, *stretch);
            self.missed.push((stretch.from, stretch.until));
        }
        self.observe(point, rest);
    }

    fn observe(&mut self, point: Point, observations: &[Observation]) {
        let Self { timing, correlator, windows, coverage, .. } = self;
        let mut record = recorder(windows, coverage, &timing.matching);
        observations.iter().for_each(|it| correlator.observe(point, *it, &mut record));
    }

    /// A batch was the last of what passed before the time until which it is complete.
    fn complete(&mut self, point: Point, batch: Batch) {
        let Self { timing, correlator, windows, coverage, .. } = self;
        let mut record = recorder(windows, coverage, &timing.matching);
        correlator.advance(point, batch.complete_until, &mut record);
        let side = &mut self.sides[side(point)];
        side.push(batch);
        side.is_unknown = false;
    }

    /// Whether a point is so far ahead of the other that its batches had better wait until that has caught
    /// up: the correlator would run out of memory.
    #[must_use]
    pub fn is_ahead(&self, point: Point) -> bool {
        let [first, second] = self.sides.each_ref().map(|side| side.complete_until);
        let (own, other) = if point == Point::A { (first, second) } else { (second, first) };
        own > other + self.reach()
    }

    /// Until when a point has delivered everything.
    #[must_use]
    pub fn complete_until(&self, point: Point) -> Time<Utc> {
        self.sides[side(point)].complete_until
    }

    /// What is newly settled, if there is anything.
    pub fn settle(&mut self) -> Option<Settled> {
        // Stamps are allowed to go back by as much.
        let decided_until = self.correlator.decided_until() - self.timing.matching.skew;
        let complete = self.sides[0].complete_until.min(self.sides[1].complete_until);
        // What was told of the clocks meanwhile belongs to a window, too.
        let until = self.windows.begin(decided_until.min(complete - self.reach()));
        if until <= self.windows.settled_until() {
            return None;
        }
        let late = self.windows.take_late();
        let windows = self.windows.settle(until).into_iter();
        let windows = windows.map(|(begin, (quality, least))| {
            (begin, Window { offset: self.offset(begin), quality, least })
        });
        let windows = windows.collect();
        let needed_from = self.needed_from(until);
        let given_up = self.sides.each_mut().map(|side| side.acknowledge(needed_from));
        // Nothing may ever come behind them, and what does says itself since when somebody looks.
        if self.sides.iter().all(Side::is_closed) {
            self.sides.iter_mut().for_each(Side::acknowledge_closing);
        }
        let acknowledged = self.sides.each_ref().map(|side| side.acknowledged);
        self.coverage.forget(until - self.reach());
        Some(Settled { windows, acknowledged, given_up, late, ..Settled::nothing(until) })
    }

    /// From when on batches have to be delivered again, so that windows come out the same from a time on.
    ///
    /// A packet has to do with what passed within reach of it, and that with what else did. Which of the
    /// missing packets a stretch accounts for, depends on the one before it, if they can have packets in
    /// common.
    fn needed_from(&mut self, until: Time<Utc>) -> Time<Utc> {
        let reach = self.reach();
        let farthest = until - FARTHEST;
        self.missed.sort_unstable();
        let needed_from = self.missed.iter().rev().fold(until, |needed_from, (from, until)| {
            if *until + reach >= needed_from - reach { needed_from.min(*from) } else { needed_from }
        });
        let needed_from = needed_from.max(farthest) - reach - reach;
        self.missed.retain(|(_, until)| *until + reach >= needed_from);
        needed_from
    }

    /// How far apart the clocks may have been while the packets of a window passed both points.
    fn offset(&self, begin: Time<Utc>) -> Result<Span, super::NotSynchronised> {
        let from = begin - self.timing.matching.skew;
        let until = begin + self.windows.length() + self.reach();
        let [first, second] = self.sides.each_ref().map(|side| side.clocks(from, until));
        synchronisation::offset(first, second)
    }

    /// How far apart a packet may be seen at both points.
    fn reach(&self) -> Span {
        let Config { timeout, skew, .. } = self.timing.matching;
        timeout + skew
    }
}

/// What takes note of outcomes.
fn recorder(windows: &mut Windows, coverage: &Coverage, rule: &Config) -> impl FnMut(Outcome) {
    move |outcome| {
        let covers = |point, from, until| coverage.covers(point, from, until);
        windows.record(&outcome.where_captured(rule, covers));
    }
}

impl Batch {
    /// One that did not come.
    fn without(number: u64, complete_until: Time<Utc>, given_up: u64) -> Self {
        Self { number, complete_until, clock: None, given_up, is_closing: false }
    }
}

impl Side {
    /// Whether batches of these numbers come next.
    fn receives(&self, numbers: &RangeInclusive<u64>) -> Delivery {
        let newest = self.batches.back().map_or(self.acknowledged, |newest| newest.number);
        Delivery::of(numbers, newest.saturating_add(1))
    }

    fn push(&mut self, batch: Batch) {
        self.complete_until = batch.complete_until.max(self.complete_until);
        self.batches.push_back(Batch { complete_until: self.complete_until, ..batch });
    }

    /// What was told of the clock in a stretch of time.
    fn clocks(&self, from: Time<Utc>, until: Time<Utc>) -> impl Iterator<Item = &MachineClock> {
        let behind = self.batches.partition_point(|batch| batch.complete_until <= from);
        // The last that is looked at reaches beyond the stretch.
        let beyond = self.batches.partition_point(|batch| batch.complete_until < until) + 1;
        let beyond = beyond.min(self.batches.len()).max(behind);
        self.batches.range(behind..beyond).filter_map(|batch| batch.clock.as_ref())
    }

    /// Lets go of what was complete before a time. Returns how many packets were given up with it.
    fn acknowledge(&mut self, until: Time<Utc>) -> u64 {
        let mut given_up = 0_u64;
        while let Some(batch) = self.batches.pop_front_if(|it| it.complete_until <= until) {
            self.acknowledged = batch.number;
            given_up = given_up.saturating_add(batch.given_up);
        }
        given_up
    }

    /// Whether nothing is left but that nobody looks, or nothing at all.
    fn is_closed(&self) -> bool {
        self.batches.len() <= 1 && self.batches.iter().all(|it| it.is_closing)
    }

    fn acknowledge_closing(&mut self) {
        if let Some(closing) = self.batches.pop_front() {
            self.acknowledged = closing.number;
        }
    }
}

#[cfg(test)]
mod tests;
