//! What passed a point without being seen there, and the packets of the other point that this
//! may account for.

use std::collections::{BTreeMap, VecDeque};
use std::iter;

use wirestamp_clock::{Span, Time, Utc};

use crate::{CaptureLoss, UndeterminedReason};

/// How many stretches of [`CaptureLoss`] packets are kept apart at most. Beyond it, neighbours are taken
/// as one.
const STRETCHES: usize = 4096;

/// What one point, here, is known not to have seen: the stretches in which its capture lost
/// packets, and that in which the correlator forgot what it had seen.
///
/// Packets that only the other point saw are judged in the order in which they passed there. One
/// that may have passed here unseen is a suspect until all that may have are known, because which
/// of them the stretch accounts for depends on all of them
/// ([`Correlator::missed`](crate::Correlator::missed) has the rule). `T` is what is kept of it.
pub(super) struct Unseen<T> {
    /// How much earlier than at the other point a packet may be here.
    before: Span,
    /// How much later.
    after: Span,
    forgotten: Gap,
    /// Those whose packets have not all been judged, in the order of time.
    stretches: VecDeque<LossInterval>,
    /// By their place here and, where that is the same, by the order in which they were judged.
    suspects: BTreeMap<(Time<Utc>, u64), Suspect<T>>,
    judged: u64,
    /// How many suspects are kept.
    room: usize,
    /// The latest place here of a packet that both points saw.
    latest: Option<Time<Utc>>,
}

/// A stretch of missed packets.
#[derive(Clone, Copy, Debug)]
struct LossInterval {
    missed: CaptureLoss,
    /// When the first of its packets can have passed here, of those that are not judged: never
    /// before what had been delivered here when it was told of, nor before the stretch ahead of it.
    open: Time<Utc>,
}

/// A packet that may have passed here unseen.
struct Suspect<T> {
    packet: T,
    /// Its place at the other point.
    time: Time<Utc>,
    /// The place here of the next packet that both points saw: this one would have come before.
    next: Option<Time<Utc>>,
}

impl<T> Unseen<T> {
    /// The bytes that each suspect takes: a B-tree's nodes may be half empty.
    pub(super) const BYTES_EACH: usize = 2 * size_of::<((Time<Utc>, u64), Suspect<T>)>();

    /// Nothing missed so far, at a point where packets are up to `before` earlier and up to `after`
    /// later than at the other one.
    pub(super) fn new(before: Span, after: Span, room: usize) -> Self {
        Self {
            before,
            after,
            forgotten: Gap::default(),
            stretches: VecDeque::new(),
            suspects: BTreeMap::new(),
            judged: 0,
            room,
            latest: None,
        }
    }

    /// The packets that may have passed here unseen.
    pub(super) fn suspects(&self) -> usize {
        self.suspects.len()
    }

    /// The earliest place at the other point of a packet that may have passed here unseen.
    pub(super) fn oldest(&self) -> Option<Time<Utc>> {
        self.suspects.values().map(|suspect| suspect.time).min()
    }

    /// An observation that was made here at `time` had to be forgotten. Times never go back.
    pub(super) fn forget(&mut self, time: Time<Utc>) {
        self.forgotten.extend(time);
    }

    /// The capture here lost packets. It is told of after all up to the place `delivered` had been
    /// delivered.
    pub(super) fn miss(&mut self, mut missed: CaptureLoss, delivered: Time<Utc>) {
        if missed.packets == 0 {
            return;
        }
        let full = self.stretches.len() >= STRETCHES;
        let last = self.stretches.back_mut();
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
            _ => self.stretches.push_back(LossInterval { missed, open }),
        }
    }

    /// A packet that the other point saw was seen here too, at the place `here`. In the order of
    /// the other point, as for [`Self::judge`].
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

    /// Judges a packet that only the other point saw, at the place `time`: whether this point
    /// accounts for it, or nothing does.
    pub(super) fn judge(
        &mut self,
        packet: T,
        time: Time<Utc>,
        tell: &mut impl FnMut(T, Option<UndeterminedReason>),
    ) {
        if self.forgotten.covers(time, self.before, self.after) {
            return tell(packet, Some(UndeterminedReason::Memory));
        }
        let open = self.stretches.front().zip(self.stretches.back());
        if !open.is_some_and(|(first, last)| {
            self.may_have_been(time, &LossInterval { open: first.open, ..*last })
        }) {
            return tell(packet, None);
        }
        let place = (self.latest.unwrap_or(time), self.judged);
        self.judged += 1;
        self.suspects.insert(place, Suspect { packet, time, next: None });
        if self.suspects.len() > self.room
            && let Some((_, oldest)) = self.suspects.pop_first()
        {
            tell(oldest.packet, Some(UndeterminedReason::Memory));
        }
    }

    /// Decides on the suspects that can be decided on once every packet of the other point before
    /// `judged` has been judged; on all, if it is `None`.
    pub(super) fn settle(
        &mut self,
        judged: Option<Time<Utc>>,
        tell: &mut impl FnMut(T, Option<UndeterminedReason>),
    ) {
        if self.stretches.is_empty() {
            return;
        }
        while let Some(stretch) = self.stretches.front().copied()
            && judged.is_none_or(|judged| stretch.missed.until + self.before < judged)
        {
            for place in self.accounted_for(&stretch) {
                if let Some(suspect) = self.suspects.remove(&place) {
                    tell(suspect.packet, Some(UndeterminedReason::Missed));
                }
            }
            self.stretches.pop_front();
        }
        while let Some(first) = self.suspects.first_entry() {
            let passed = first.get().time + self.after;
            if self.stretches.front().is_some_and(|next| next.open <= passed) {
                break;
            }
            tell(first.remove().packet, None);
        }
    }

    fn may_have_been(&self, time: Time<Utc>, stretch: &LossInterval) -> bool {
        time - self.before <= stretch.missed.until && time + self.after >= stretch.open
    }

    /// The suspects nearest to the stretch, as many as it has packets.
    fn accounted_for(&self, stretch: &LossInterval) -> Vec<(Time<Utc>, u64)> {
        let possible = |(place, suspect): (&(Time<Utc>, u64), &Suspect<T>)| {
            self.may_have_been(suspect.time, stretch).then_some(*place)
        };
        let missed = &stretch.missed;
        let begin = (self.begin_of(missed), 0);
        // The nearest place first, and at one place the packet that passed first: the stretches to
        // come need those that passed later.
        let places =
            iter::successors(self.place_ahead_of(begin.0), |place| self.place_ahead_of(*place));
        let at = |place| self.suspects.range((place, 0)..=(place, u64::MAX));
        let mut ahead = places.flat_map(at).filter_map(possible).peekable();
        let mut behind = self.suspects.range(begin..).filter_map(possible).peekable();
        let next = || match (ahead.peek(), behind.peek()) {
            (Some(one), Some(other)) if nearer(*one, *other, missed) => ahead.next(),
            (Some(_), None) => ahead.next(),
            _ => behind.next(),
        };
        let packets = usize::try_from(missed.packets).unwrap_or(usize::MAX);
        iter::from_fn(next).take(packets).collect()
    }

    /// The first place of those in the stretch: what is at one ahead of it is in it if it may have
    /// come after the stretch began.
    fn begin_of(&self, missed: &CaptureLoss) -> Time<Utc> {
        let ahead = self.suspects.range(..(missed.from, 0)).rev();
        let reaches_in = |suspect: &Suspect<T>| suspect.next.is_none_or(|next| next > missed.from);
        let within = ahead.take_while(|(_, suspect)| reaches_in(suspect));
        within.last().map_or(missed.from, |((place, _), _)| *place)
    }

    /// The last place before `time` that suspects are at.
    fn place_ahead_of(&self, time: Time<Utc>) -> Option<Time<Utc>> {
        self.suspects.range(..(time, 0)).next_back().map(|((place, _), _)| *place)
    }
}

/// Whether `ahead` is no further from the stretch's begin than `behind` from its end, which is no
/// part of it.
fn nearer(ahead: (Time<Utc>, u64), behind: (Time<Utc>, u64), stretch: &CaptureLoss) -> bool {
    behind.0 >= stretch.until && stretch.from - ahead.0 <= behind.0 - stretch.until
}

/// A stretch of time in which observations of one point were forgotten, so that nothing can be
/// said about what the other point saw around it.
#[derive(Clone, Copy, Debug, Default)]
struct Gap(Option<(Time<Utc>, Time<Utc>)>);

impl Gap {
    /// Adds an observation that was made at `time`. Calls must have times that never go back.
    fn extend(&mut self, time: Time<Utc>) {
        let first = self.0.map_or(time, |(first, _)| first);
        self.0 = Some((first, time));
    }

    /// Whether a packet may have passed in the stretch that the other point saw at `time`. Calls
    /// must have times that never go back, because a stretch left behind is dropped.
    fn covers(&mut self, time: Time<Utc>, before: Span, after: Span) -> bool {
        let Some((first, last)) = self.0 else { return false };
        if time > last + before {
            self.0 = None;
            return false;
        }
        time + after >= first
    }
}
