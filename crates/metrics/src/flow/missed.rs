//! When the capture lost packets, and which of the packets that are missing it accounts for.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};

use super::doubt::Doubt;
use super::gap::Gap;
use super::unnumbered::Unnumbered;
use crate::Missed;

/// Losses of the capture that are remembered, the newest.
const REMEMBERED: usize = 256;
/// So many of them are forgotten at once.
const FORGOTTEN_AT_ONCE: u64 = REMEMBERED as u64 / 2;

/// The newest times in which the capture lost packets.
///
/// Which gaps they account for is decided on late, and again when there is news: a capture may tell
/// of its losses after the packets behind them, and the gaps of slow streams close long after.
#[derive(Clone, Debug, Default)]
pub(super) struct MissedTimes {
    newest_last: VecDeque<Stretch>,
    /// How many there were before these.
    forgotten: u64,
    /// Whether there is news since the last decision.
    news: bool,
    /// Whether somebody cannot remember more before there is a decision.
    pressing: bool,
}

/// A stretch of time, and what the capture lost in it.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    times: (Time<Utc>, Time<Utc>),
    packets: u64,
    /// How many fewer or more they may be, because gaps that are forgotten had more or fewer.
    in_doubt: Doubt,
}

impl MissedTimes {
    pub(super) fn note(&mut self, missed: Missed) {
        let Missed { from, until, packets } = missed;
        if packets == 0 {
            return;
        }
        self.newest_last.push_back(Stretch {
            times: (from, until),
            packets,
            in_doubt: Doubt::default(),
        });
        self.news = true;
        self.pressing |= self.newest_last.len() >= REMEMBERED;
    }

    /// Whether a decision is due.
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// Whether it has to be made at once.
    pub(super) fn is_pressing(&self) -> bool {
        self.pressing
    }

    /// Asks for a decision at once.
    pub(super) fn press(&mut self) {
        (self.news, self.pressing) = (true, true);
    }

    /// Whether the capture lost packets while a gap was open.
    pub(super) fn concern(&self, gap: &Gap) -> bool {
        self.newest_last.iter().any(|stretch| gap.shares(stretch.times))
    }

    /// Takes note of a gap.
    pub(super) fn hear_of(&mut self, gap: &Gap) {
        let concerns = |it: &Stretch| gap.shares(it.times) && gap.possible(it.times) > 0;
        self.news = self.news || self.newest_last.iter().any(concerns);
    }

    /// Decides which of these gaps the capture accounts for, of all that are remembered.
    ///
    /// A stretch accounts for as many of the missing packets as the capture lost in it: those that
    /// were due in it and, if they are fewer, those that were due nearest to it, as far as they may
    /// have passed in it. If more were due at the same distance, the network lost the others: then
    /// all gaps have their part in what the network lost, because it is not known which has.
    ///
    /// What else passed at these times may be among what the capture lost.
    pub(super) fn decide(&mut self, gaps: &mut [&mut Gap], others: &[Unnumbered]) {
        gaps.iter_mut().for_each(|gap| gap.reopen(self.forgotten));
        for (name, stretch) in (self.forgotten..).zip(&self.newest_last) {
            stretch.account(name, gaps, others);
        }
        self.join(gaps, others);
        (self.news, self.pressing) = (false, false);
    }

    /// Tells gaps what is in doubt of stretches that follow each other, if they share gaps: it is known
    /// how many packets the capture lost in all of them, though not in which it lost each.
    fn join(&self, gaps: &mut [&mut Gap], others: &[Unnumbered]) {
        let stretches: Vec<_> = (self.forgotten..).zip(&self.newest_last).collect();
        let is_shared = |one: &Stretch, next: &Stretch| {
            gaps.iter().any(|gap| gap.shares(one.times) && gap.shares(next.times))
        };
        // Those that are forgotten at different times are not taken together.
        let joint = stretches.chunk_by(|(_, one), (name, next)| {
            name % FORGOTTEN_AT_ONCE != 0 && is_shared(one, next)
        });
        let joint: Vec<_> = joint.filter(|joint| joint.len() > 1).collect();
        joint.into_iter().for_each(|joint| bound(joint, gaps, others));
    }

    /// Forgets a gap that was decided on: what accounts for it accounts for nothing else.
    pub(super) fn forget(&mut self, gap: &Gap) {
        for (name, packets) in gap.missed() {
            if let Some(stretch) = self.stretch(name) {
                stretch.packets = stretch.packets.saturating_sub(packets);
            }
        }
        for (name, doubt) in gap.doubts() {
            if let Some(stretch) = self.stretch(name) {
                stretch.in_doubt = stretch.in_doubt.plus(doubt.mirrored());
            }
        }
    }

    fn stretch(&mut self, name: u64) -> Option<&mut Stretch> {
        let place = usize::try_from(name.checked_sub(self.forgotten)?).ok()?;
        self.newest_last.get_mut(place)
    }

    /// Forgets the oldest, if they are many. What was decided by them stays.
    pub(super) fn make_room(&mut self) {
        if self.newest_last.len() >= REMEMBERED {
            self.newest_last.drain(..REMEMBERED / 2);
            self.forgotten += FORGOTTEN_AT_ONCE;
        }
    }
}

impl Stretch {
    /// Accounts for the gaps as far as the capture lost packets.
    fn account(&self, name: u64, gaps: &mut [&mut Gap], others: &[Unnumbered]) {
        let mut near: Vec<_> = gaps.iter_mut().filter(|gap| gap.shares(self.times)).collect();
        let Some(farthest) = near.iter().map(|gap| gap.farthest()).max() else { return };
        let due = |distance| near.iter().map(|gap| gap.due(self.times, distance)).sum::<u64>();
        let (at, nearer) = if due(farthest) <= self.packets {
            (farthest, Some(farthest))
        } else {
            let at = first_that(farthest, |distance| due(distance) > self.packets);
            (at, (at > Span::ZERO).then(|| Span::from_nanos(at.as_nanos() - 1)))
        };
        let sure = nearer.map_or(0, due);
        let (together, left) = (due(at) - sure, self.packets - sure);
        let possible = near.iter().map(|gap| gap.possible(self.times)).sum();
        let total = Total { possible, ..self.total(others) };
        let (mut passed, mut taken, phase) = (0, 0, phase(name));
        for gap in &mut near {
            let own = gap.due(self.times, farthest);
            if let Some(nearer) = nearer {
                gap.miss(self.times, nearer, u64::MAX, name);
            }
            passed += gap.due(self.times, at);
            let part = part(left, passed, together, phase) - taken;
            taken += part;
            gap.miss(self.times, at, part, name);
            let part = own - gap.due(self.times, farthest);
            let own = gap.possible(self.times);
            let (least, most) = total.bounds(own);
            let is_known = least == most && (most == 0 || most == own);
            if !is_known {
                gap.doubt(Doubt::of(part, least, most), name);
            }
        }
    }

    /// What the capture lost in it, of which so many others may be a part.
    fn total(&self, others: &[Unnumbered]) -> Total {
        let others = others.iter().map(|it| it.within(self.times)).fold(0, u64::saturating_add);
        let fewest = self.packets.saturating_sub(self.in_doubt.fewer);
        Total {
            packets: self.packets,
            fewest: fewest.saturating_sub(others),
            most: self.packets.saturating_add(self.in_doubt.more),
            possible: 0,
        }
    }
}

/// What the capture lost in a stretch, or in several.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    packets: u64,
    /// Of these, packets with numbers, at the least and at the most.
    fewest: u64,
    most: u64,
    /// Packets that are missing in all gaps and may have passed then.
    possible: u64,
}

impl Total {
    fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            fewest: self.fewest.saturating_add(other.fewest),
            most: self.most.saturating_add(other.most),
            possible: self.possible.saturating_add(other.possible),
        }
    }

    /// Between what the part of a gap lies which has `own` of the possible packets: the others cannot
    /// have more than theirs. If the capture lost more than what is possible, some are of no flow that
    /// is known, and it is not known how many.
    fn bounds(&self, own: u64) -> (u64, u64) {
        let others = self.possible.saturating_sub(own);
        let least =
            if self.packets > self.possible { 0 } else { self.fewest.saturating_sub(others) };
        (least.min(own), own.min(self.most))
    }
}

/// Tells each gap between which bounds its part of several stretches lies.
fn bound(joint: &[(u64, &Stretch)], gaps: &mut [&mut Gap], others: &[Unnumbered]) {
    let [Some((first, _)), Some((last, _))] = [joint.first(), joint.last()] else { return };
    let names = *first..last + 1;
    let own = |gap: &Gap| {
        let near = joint.iter().filter(|(_, it)| gap.shares(it.times));
        near.map(|(_, it)| gap.possible(it.times)).sum::<u64>().min(gap.not_come())
    };
    let totals = joint.iter().map(|(_, it)| it.total(others));
    let possible = gaps.iter().map(|gap| own(gap)).sum();
    let total = Total { possible, ..totals.fold(Total::default(), Total::plus) };
    for gap in gaps {
        let own = own(gap);
        if own > 0 {
            let (least, most) = total.bounds(own);
            let parts = gap.missed().filter(|(name, _)| names.contains(name));
            let part = parts.map(|(_, packets)| packets).sum();
            gap.doubt_jointly(Doubt::of(part, least, most), names.clone());
        }
    }
}

/// The least distance, not greater than `most`, of which something holds, which holds of `most` and
/// of all that are greater than another of which it does.
fn first_that(most: Span, holds: impl Fn(Span) -> bool) -> Span {
    let (mut below, mut above) = (-1, most.as_nanos());
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if holds(Span::from_nanos(middle)) { above = middle } else { below = middle }
    }
    Span::from_nanos(above)
}

/// The share of `count` that `some` of `all` have, rounded down from a phase in 2^32 parts.
fn part(count: u64, some: u64, all: u64, phase: u32) -> u64 {
    let all = u128::from(all.max(1));
    let share = (u128::from(count) * u128::from(some) + ((all * u128::from(phase)) >> 32)) / all;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Where the rounding of a stretch begins, so that the same gaps are not always those that have less.
/// Multiples of the golden ratio fill the circle evenly (D. Knuth, The Art of Computer Programming,
/// volume 3, section 6.4).
fn phase(name: u64) -> u32 {
    const GOLDEN: u64 = 2_654_435_769;
    u32::try_from(name.wrapping_mul(GOLDEN) & u64::from(u32::MAX)).unwrap_or(0)
}
