//! Packets that passed a point without being captured there, and the packets of the other point that these may be.

use std::collections::{BTreeMap, VecDeque};
use std::iter;

use wirestamp_clock::{Span, Time, Utc};

use crate::{CaptureLoss, UndeterminedReason};

/// Max loss intervals kept apart. Beyond that, neighbours are merged.
const MAX_INTERVALS: usize = 4096;

/// Packets that one point, called "here", did not capture: in the intervals in which its capture lost packets, and in
/// the range that the correlator removed for lack of memory.
///
/// Packets observed only at the other point are classified in the order in which they passed there. A packet that may
/// have passed here is a suspect until all such packets are known, because the assignment to the interval depends on
/// all of them ([`Correlator::missed`](crate::Correlator::missed) has the rule). `T` is the data kept of a packet.
pub(super) struct SuspectTracker<T> {
    /// Max time by which a packet may be here earlier than at the other point.
    before: Span,
    /// Max time by which a packet may be here later than at the other point.
    after: Span,
    forgotten: ForgottenRange,
    /// Intervals whose packets are not all classified, in the order of time.
    intervals: VecDeque<LossInterval>,
    /// By their place here, then by the order of classification.
    suspects: BTreeMap<(Time<Utc>, u64), Suspect<T>>,
    classified: u64,
    /// Max suspects kept.
    room: usize,
    /// Latest place here of a packet captured at both points.
    latest: Option<Time<Utc>>,
}

/// An interval with packets missed here.
#[derive(Clone, Copy, Debug)]
struct LossInterval {
    missed: CaptureLoss,
    /// Earliest time at which an unclassified packet of it can have passed here: not before the observations delivered
    /// when it was reported, nor before the previous interval.
    open: Time<Utc>,
}

/// A packet that may have passed here uncaptured.
struct Suspect<T> {
    packet: T,
    /// Its place at the other point.
    time: Time<Utc>,
    /// Place here of the next packet captured at both points; this one came before it.
    next: Option<Time<Utc>>,
}

impl<T> SuspectTracker<T> {
    /// Bytes per suspect: nodes of a B-tree may be half empty.
    pub(super) const BYTES_EACH: usize = 2 * size_of::<((Time<Utc>, u64), Suspect<T>)>();

    /// A tracker without losses, for a point where packets are up to `before` earlier and up to `after` later than at
    /// the other one.
    pub(super) fn new(before: Span, after: Span, room: usize) -> Self {
        Self {
            before,
            after,
            forgotten: ForgottenRange::default(),
            intervals: VecDeque::new(),
            suspects: BTreeMap::new(),
            classified: 0,
            room,
            latest: None,
        }
    }

    /// Number of suspects.
    pub(super) fn suspects(&self) -> usize {
        self.suspects.len()
    }

    /// Earliest place of a suspect at the other point.
    pub(super) fn oldest(&self) -> Option<Time<Utc>> {
        self.suspects.values().map(|suspect| suspect.time).min()
    }

    /// Records that an observation made here at `time` was evicted. Times must not decrease.
    pub(super) fn forget(&mut self, time: Time<Utc>) {
        self.forgotten.extend(time);
    }

    /// Records a loss of the capture here, reported after all observations up to the place `delivered`.
    pub(super) fn miss(&mut self, mut missed: CaptureLoss, delivered: Time<Utc>) {
        if missed.packets == 0 {
            return;
        }
        let full = self.intervals.len() >= MAX_INTERVALS;
        let last = self.intervals.back_mut();
        let mut open = missed.from.max(delivered);
        if let Some(last) = &last {
            open = open.max(last.open);
            missed.until = missed.until.max(last.missed.until);
        }
        missed.until = missed.until.max(open);
        match last {
            Some(LossInterval { missed: last, .. }) if full => {
                last.until = missed.until;
                last.packets = last.packets.saturating_add(missed.packets);
            }
            _ => self.intervals.push_back(LossInterval { missed, open }),
        }
    }

    /// Records that a packet of the other point was captured here too, at the place `here`. In the order of the other
    /// point, as for [`Self::classify`].
    pub(super) fn seen(&mut self, here: Time<Utc>) {
        if self.latest.is_some_and(|latest| here <= latest) {
            return;
        }
        let since = self.latest.replace(here);
        if !self.suspects.is_empty() {
            let since = (since.unwrap_or(Time::from_nanos(i64::MIN)), 0);
            self.suspects.range_mut(since..).for_each(|(_, suspect)| suspect.next = Some(here));
        }
    }

    /// Classifies a packet captured only at the other point, at the place `time`: whether it may have been missed
    /// here.
    pub(super) fn classify(
        &mut self,
        packet: T,
        time: Time<Utc>,
        report: &mut impl FnMut(T, Option<UndeterminedReason>),
    ) {
        if self.forgotten.covers(time, self.before, self.after) {
            return report(packet, Some(UndeterminedReason::Memory));
        }
        let open = self.intervals.front().zip(self.intervals.back());
        if !open.is_some_and(|(first, last)| {
            self.may_have_passed(time, &LossInterval { open: first.open, ..*last })
        }) {
            return report(packet, None);
        }
        let place = (self.latest.unwrap_or(time), self.classified);
        self.classified += 1;
        self.suspects.insert(place, Suspect { packet, time, next: None });
        if self.suspects.len() > self.room
            && let Some((_, oldest)) = self.suspects.pop_first()
        {
            report(oldest.packet, Some(UndeterminedReason::Memory));
        }
    }

    /// Decides the suspects that can be decided once every packet of the other point before `classified` is
    /// classified; all, if `None`.
    pub(super) fn settle(
        &mut self,
        classified: Option<Time<Utc>>,
        report: &mut impl FnMut(T, Option<UndeterminedReason>),
    ) {
        if self.intervals.is_empty() {
            return;
        }
        while let Some(interval) = self.intervals.front().copied()
            && classified.is_none_or(|classified| interval.missed.until + self.before < classified)
        {
            for place in self.accounted_for(&interval) {
                if let Some(suspect) = self.suspects.remove(&place) {
                    report(suspect.packet, Some(UndeterminedReason::Missed));
                }
            }
            self.intervals.pop_front();
        }
        while let Some(first) = self.suspects.first_entry() {
            let passed = first.get().time + self.after;
            if self.intervals.front().is_some_and(|next| next.open <= passed) {
                break;
            }
            report(first.remove().packet, None);
        }
    }

    fn may_have_passed(&self, time: Time<Utc>, interval: &LossInterval) -> bool {
        time - self.before <= interval.missed.until && time + self.after >= interval.open
    }

    /// Suspects nearest to the interval, as many as it has packets.
    fn accounted_for(&self, interval: &LossInterval) -> Vec<(Time<Utc>, u64)> {
        let possible = |(place, suspect): (&(Time<Utc>, u64), &Suspect<T>)| {
            self.may_have_passed(suspect.time, interval).then_some(*place)
        };
        let missed = &interval.missed;
        let begin = (self.begin_of(missed), 0);
        // The nearest place first; at one place, the packet that passed first, because later intervals need those that
        // passed later.
        let places =
            iter::successors(self.place_ahead_of(begin.0), |place| self.place_ahead_of(*place));
        let at = |place| self.suspects.range((place, 0)..=(place, u64::MAX));
        let mut ahead = places.flat_map(at).filter_map(possible).peekable();
        let mut behind = self.suspects.range(begin..).filter_map(possible).peekable();
        let next = || match (ahead.peek(), behind.peek()) {
            (Some(one), Some(other)) if is_nearer(*one, *other, missed) => ahead.next(),
            (Some(_), None) => ahead.next(),
            _ => behind.next(),
        };
        let packets = usize::try_from(missed.packets).unwrap_or(usize::MAX);
        iter::from_fn(next).take(packets).collect()
    }

    /// First place in the interval. A suspect at an earlier place is in it if it may have come after the begin.
    fn begin_of(&self, missed: &CaptureLoss) -> Time<Utc> {
        let ahead = self.suspects.range(..(missed.from, 0)).rev();
        let reaches_in = |suspect: &Suspect<T>| suspect.next.is_none_or(|next| next > missed.from);
        let within = ahead.take_while(|(_, suspect)| reaches_in(suspect));
        within.last().map_or(missed.from, |((place, _), _)| *place)
    }

    /// Last place of a suspect before `time`.
    fn place_ahead_of(&self, time: Time<Utc>) -> Option<Time<Utc>> {
        self.suspects.range(..(time, 0)).next_back().map(|((place, _), _)| *place)
    }
}

/// Whether `ahead` is no further from the begin of the interval than `behind` from its end. The end is exclusive.
fn is_nearer(ahead: (Time<Utc>, u64), behind: (Time<Utc>, u64), interval: &CaptureLoss) -> bool {
    behind.0 >= interval.until && interval.from - ahead.0 <= behind.0 - interval.until
}

/// Time range of evicted observations of one point. Nothing is known of packets of the other point around it.
#[derive(Clone, Copy, Debug, Default)]
struct ForgottenRange(Option<(Time<Utc>, Time<Utc>)>);

impl ForgottenRange {
    /// Adds an observation made at `time`. Times must not decrease between calls.
    fn extend(&mut self, time: Time<Utc>) {
        let first = self.0.map_or(time, |(first, _)| first);
        self.0 = Some((first, time));
    }

    /// Whether a packet of the other point at `time` may have passed in the range. Times must not decrease between
    /// calls, because a passed range is dropped.
    fn covers(&mut self, time: Time<Utc>, before: Span, after: Span) -> bool {
        let Some((first, last)) = self.0 else { return false };
        if time > last + before {
            self.0 = None;
            return false;
        }
        time + after >= first
    }
}
