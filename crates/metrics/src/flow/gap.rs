//! A run of numbers that a source skipped, and what has become of each.

use std::ops::Range;

use wirestamp_clock::{Span, Time, Utc};

use super::gap_losses::GapLosses;
use super::uncertainty::{ImpairmentUncertainty, Uncertainty};

/// Numbers of a gap that are looked at, the last: RTP has no gap that comes near (RFC 3550 appendix
/// A.1), and a count of iperf3 only by damage.
const MAX_NUMBERS: u64 = u32::MAX as u64;
/// So many runs are left over in a gap at the most.
const MAX_RUNS: u64 = 256;

/// Numbers that did not come when they should have, between two that did.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    numbers: Range<u64>,
    /// When the numbers on both sides came.
    from: Time<Utc>,
    until: Time<Utc>,
    /// How far from when it was due a number may have passed; none where the source keeps no rhythm.
    reach: Option<Span>,
    /// Numbers that are accounted for, in order, without overlaps.
    assignments: Vec<Assignment>,
    /// Of stretches of which it is not known which of the numbers, or how many, were lost in them: how
    /// many fewer or more may have been.
    uncertainties: Vec<(u64, Uncertainty)>,
    /// The same of several stretches in a row together, of which less may be in doubt.
    joint_uncertainties: Vec<(Range<u64>, Uncertainty)>,
}

/// What has become of some numbers of a gap.
#[derive(Clone, Debug)]
struct Assignment {
    numbers: Range<u64>,
    resolution: Resolution,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// They came late.
    Came,
    /// The capture lost them in the stretch of this number.
    CaptureLost(u64),
}

impl Gap {
    /// A gap before the number `next`, where `skipped` are missing, of which the newest are looked at.
    pub(super) fn before(
        next: u64,
        skipped: u64,
        (one, other): (Time<Utc>, Time<Utc>),
        reach: Option<Span>,
    ) -> Self {
        let (from, until) = (one.min(other), one.max(other));
        Self {
            numbers: next.saturating_sub(skipped.min(MAX_NUMBERS))..next,
            from,
            until,
            reach,
            assignments: Vec::new(),
            uncertainties: Vec::new(),
            joint_uncertainties: Vec::new(),
        }
    }

    /// When the number after the gap came.
    pub(super) fn until(&self) -> Time<Utc> {
        self.until
    }

    /// Whether the gap and a stretch of time have a moment in common.
    pub(super) fn overlaps(&self, (from, until): (Time<Utc>, Time<Utc>)) -> bool {
        from <= self.until && self.from <= until
    }

    /// The longest time that one of its numbers can be due ahead of or behind a stretch that the gap
    /// shares a moment with.
    pub(super) fn max_distance(&self) -> Span {
        let length = self.until - self.from;
        self.reach.map_or(length, |reach| reach.min(length))
    }

    /// Whether a number is one of the gap's.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Takes note that one of its numbers has come.
    pub(super) fn arrived(&mut self, number: u64) {
        self.assign(number..number + 1, Resolution::Came);
    }

    /// What the gap comes to.
    pub(super) fn losses(&self) -> GapLosses {
        let length = |numbers: &Range<u64>| numbers.end - numbers.start;
        let mut losses = GapLosses::default();
        let mut open = self.numbers.start;
        for Assignment { numbers, resolution } in &self.assignments {
            losses.lose(numbers.start - open);
            open = numbers.end;
            if let Resolution::CaptureLost(_) = resolution {
                losses.by_capture += length(numbers);
            }
        }
        losses.lose(self.numbers.end - open);
        losses.uncertainty = self.uncertainty(&losses);
        losses
    }

    /// By how much these losses may be off. So many losses leave at most one run more than there are
    /// other packets.
    fn uncertainty(&self, losses: &GapLosses) -> ImpairmentUncertainty {
        if self.uncertainties.is_empty() {
            return ImpairmentUncertainty::default();
        }
        let GapLosses { by_network, by_capture, periods, .. } = *losses;
        let sum = self.total_uncertainty().complement();
        let lost = Uncertainty { fewer: sum.fewer.min(by_network), more: sum.more.min(by_capture) };
        let (min, max) = (by_network - lost.fewer, by_network + lost.more);
        let others = self.numbers.end - self.numbers.start - min;
        let periods = Uncertainty::of(periods, min.min(1), max.min(others + 1));
        ImpairmentUncertainty { lost, periods }
    }

    /// By how much all stretches together may be wrong.
    fn total_uncertainty(&self) -> Uncertainty {
        let sum = |of: &dyn Fn(u64) -> bool| {
            let uncertainties = self.uncertainties().filter(|(interval, _)| of(*interval));
            uncertainties
                .fold(Uncertainty::default(), |sum, (_, uncertainty)| sum.plus(uncertainty))
        };
        let alone =
            |interval| !self.joint_uncertainties.iter().any(|(joint, _)| joint.contains(&interval));
        self.joint_uncertainties.iter().fold(sum(&alone), |all, (joint, uncertainty)| {
            all.plus(uncertainty.and(sum(&|interval| joint.contains(&interval))))
        })
    }

    /// Whether all of it has come.
    pub(super) fn is_filled(&self) -> bool {
        let GapLosses { by_network, by_capture, .. } = self.losses();
        by_network + by_capture == 0
    }

    /// Takes back what stretches from the number `first` on account for.
    pub(super) fn clear_assignments(&mut self, first: u64) {
        self.assignments.retain(
            |it| !matches!(it.resolution, Resolution::CaptureLost(interval) if interval >= first),
        );
        self.uncertainties.retain(|(interval, _)| *interval < first);
        self.joint_uncertainties.retain(|(joint, _)| joint.start < first);
    }

    /// How many numbers each stretch accounts for.
    pub(super) fn missed(&self) -> impl Iterator<Item = (u64, u64)> {
        self.missed_runs().map(|(interval, numbers)| (interval, numbers.end - numbers.start))
    }

    /// How many numbers these stretches account for.
    pub(super) fn missed_in(&self, ids: &Range<u64>) -> u64 {
        let theirs = self.missed().filter(|(id, _)| ids.contains(id));
        theirs.map(|(_, packets)| packets).sum()
    }

    /// How many numbers each stretch accounts for that may have been lost in this one.
    pub(super) fn missed_near(
        &self,
        interval: (Time<Utc>, Time<Utc>),
    ) -> impl Iterator<Item = (u64, u64)> {
        let window = self.window(interval, self.max_distance());
        self.missed_runs().filter_map(move |(id, numbers)| {
            let numbers = overlap(numbers, &window);
            (!numbers.is_empty()).then_some((id, numbers.end - numbers.start))
        })
    }

    /// Lets a stretch account for so many numbers at the most for which another does, if they may have
    /// been lost in it. Returns how many it took.
    pub(super) fn reassign(
        &mut self,
        interval: (Time<Utc>, Time<Utc>),
        from: u64,
        to: u64,
        count: u64,
    ) -> u64 {
        let window = self.window(interval, self.max_distance());
        let theirs = self.missed_runs().filter(|(id, _)| *id == from);
        let theirs: Vec<_> = theirs.map(|(_, numbers)| overlap(numbers, &window)).collect();
        let mut left = count;
        for Range { start, end } in theirs {
            let end = end.min(start.saturating_add(left));
            self.assign(start..end, Resolution::CaptureLost(to));
            left -= end - start;
        }
        count - left
    }

    fn missed_runs(&self) -> impl Iterator<Item = (u64, &Range<u64>)> {
        self.assignments.iter().filter_map(|it| match it.resolution {
            Resolution::CaptureLost(interval) => Some((interval, &it.numbers)),
            Resolution::Came => None,
        })
    }

    /// How many fewer or more than it accounts for may have been lost in each stretch.
    pub(super) fn uncertainties(&self) -> impl Iterator<Item = (u64, Uncertainty)> {
        self.uncertainties.iter().copied()
    }

    /// How many numbers that nothing accounts for were due within a stretch, or not farther than
    /// `distance` from it.
    pub(super) fn due(&self, interval: (Time<Utc>, Time<Utc>), distance: Span) -> u64 {
        self.open(&self.window(interval, distance)).map(|it| it.end - it.start).sum()
    }

    /// How many numbers may have been lost in a stretch, whatever others account for.
    pub(super) fn possible(&self, interval: (Time<Utc>, Time<Utc>)) -> u64 {
        self.not_come_of(&self.window(interval, self.max_distance()))
    }

    /// How many of its numbers have not come.
    pub(super) fn not_come(&self) -> u64 {
        self.not_come_of(&self.numbers)
    }

    fn not_come_of(&self, window: &Range<u64>) -> u64 {
        let arrived = self.assignments.iter().filter(|it| it.resolution == Resolution::Came);
        let arrived = arrived.map(|it| overlap(&it.numbers, window)).map(|it| it.end - it.start);
        window.end - window.start - arrived.sum::<u64>()
    }

    /// Accounts for `count` of the numbers that [`Self::due`] counts by the stretch of this number;
    /// those that are left over are spread evenly, as random losses are.
    pub(super) fn miss(
        &mut self,
        interval: (Time<Utc>, Time<Utc>),
        distance: Span,
        count: u64,
        id: u64,
    ) {
        let window = self.window(interval, distance);
        let open: Vec<_> = self.open(&window).collect();
        let total: u64 = open.iter().map(|it| it.end - it.start).sum();
        let mut begin = 0;
        for spared in spread(total.saturating_sub(count), total) {
            self.assign_places(&open, begin..spared.start, id);
            begin = spared.end;
        }
        self.assign_places(&open, begin..total, id);
    }

    /// Accounts for the numbers at these places among those of `open`.
    fn assign_places(&mut self, open: &[Range<u64>], places: Range<u64>, id: u64) {
        let mut passed = 0;
        for numbers in open {
            let length = numbers.end - numbers.start;
            let place = |at: u64| numbers.start + at.clamp(passed, passed + length) - passed;
            self.assign(place(places.start)..place(places.end), Resolution::CaptureLost(id));
            passed += length;
        }
    }

    /// Takes note that it is not known which numbers were lost in a stretch, and how many fewer or more
    /// than it accounts for may have been.
    pub(super) fn add_uncertainty(&mut self, uncertainty: Uncertainty, id: u64) {
        self.uncertainties.push((id, uncertainty));
    }

    /// Takes note of how many fewer or more than they account for may have been lost in these stretches
    /// together.
    pub(super) fn add_joint_uncertainty(&mut self, uncertainty: Uncertainty, ids: Range<u64>) {
        self.joint_uncertainties.push((ids, uncertainty));
    }

    /// The parts of a range that nothing accounts for.
    fn open(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = *range;
        let starts = std::iter::once(start)
            .chain(self.assignments.iter().map(move |it| it.numbers.end.max(start)));
        let ends = self
            .assignments
            .iter()
            .map(move |it| it.numbers.start.min(end))
            .chain(std::iter::once(end));
        starts.zip(ends).map(|(start, end)| start..end).filter(|it| it.start < it.end)
    }

    /// The numbers that were due in a stretch, or not farther than `distance` from it. They are taken
    /// to have been sent at equal intervals.
    fn window(&self, (from, until): (Time<Utc>, Time<Utc>), distance: Span) -> Range<u64> {
        let distance = i128::from(distance.min(self.max_distance()).as_nanos());
        let missing = self.numbers.end - self.numbers.start;
        let length = i128::from((self.until - self.from).as_nanos());
        let intervals = i128::from(missing) + 1;
        let begin = i128::from((from - self.from).as_nanos()) - distance;
        let end = i128::from((until - self.from).as_nanos()) + distance;
        if length == 0 {
            let all = begin <= 0 && 0 <= end;
            return self.numbers.start..if all { self.numbers.end } else { self.numbers.start };
        }
        // The first is due an interval after the begin.
        let place = |due: i128| {
            let place = (due - 1).clamp(0, i128::from(missing));
            u64::try_from(place).unwrap_or(missing)
        };
        let first = place((begin * intervals + length - 1).div_euclid(length));
        let last = place((end * intervals).div_euclid(length) + 1);
        self.numbers.start + first..self.numbers.start + last.max(first)
    }

    /// Enters an account, in place of any that its numbers have.
    fn assign(&mut self, numbers: Range<u64>, resolution: Resolution) {
        if numbers.is_empty() {
            return;
        }
        let place = self.assignments.partition_point(|it| it.numbers.end <= numbers.start);
        let behind = self.assignments.partition_point(|it| it.numbers.start < numbers.end);
        let mut parts = Vec::new();
        for old in self.assignments.drain(place..behind) {
            parts.push(Assignment {
                numbers: old.numbers.start..numbers.start,
                resolution: old.resolution,
            });
            parts.push(Assignment {
                numbers: numbers.end..old.numbers.end,
                resolution: old.resolution,
            });
        }
        parts.retain(|it| it.numbers.start < it.numbers.end);
        let at = parts.partition_point(|it| it.numbers.end <= numbers.start);
        parts.insert(at, Assignment { numbers, resolution });
        self.assignments.splice(place..place, parts);
    }
}

/// What two ranges have in common, with its end never before its start.
fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// So many places of all, spread evenly, one at a time as long as there are not too many.
fn spread(count: u64, all: u64) -> impl Iterator<Item = Range<u64>> {
    let runs = count.min(MAX_RUNS);
    let share = move |whole: u64, nth: u64| {
        let share = u128::from(whole) * u128::from(nth) / u128::from(runs.max(1));
        u64::try_from(share).unwrap_or(whole)
    };
    (0..runs).map(move |nth| {
        let (begin, end) = (share(all, nth), share(all, nth + 1));
        let length = share(count, nth + 1) - share(count, nth);
        let begin = begin + (end - begin).saturating_sub(length) / 2;
        begin..begin + length
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: i64) -> Time<Utc> {
        Time::from_nanos(nanos)
    }

    #[test]
    fn numbers_are_due_at_equal_intervals() {
        // Numbers 10 to 13 are due at 20, 40, 60 and 80 ns.
        let gap = Gap::before(14, 4, (at(0), at(100)), None);
        let due =
            |from, until, distance| gap.due((at(from), at(until)), Span::from_nanos(distance));
        assert_eq!([due(20, 60, 0), due(21, 59, 0), due(21, 39, 0), due(0, 100, 0)], [3, 1, 0, 4]);
        assert_eq!([due(21, 39, 1), due(95, 300, 14), due(95, 300, 15)], [2, 0, 1]);
        let near = Gap::before(14, 4, (at(0), at(100)), Some(Span::from_nanos(5)));
        assert_eq!(near.due((at(45), at(50)), Span::from_nanos(1000)), 1);
    }

    #[test]
    fn a_run_that_the_capture_has_a_part_of_is_two_runs() {
        let mut gap = Gap::before(14, 4, (at(0), at(100)), None);
        gap.miss((at(30), at(50)), Span::ZERO, 1, 0);
        let losses = GapLosses { by_network: 3, periods: 2, by_capture: 1, ..GapLosses::default() };
        assert_eq!(gap.losses(), losses);
        gap.arrived(11);
        assert_eq!(gap.losses(), GapLosses { by_capture: 0, ..losses });
        gap.clear_assignments(0);
        assert_eq!(gap.losses(), GapLosses { by_capture: 0, ..losses });
    }

    proptest! {
        #[test]
        fn any_stamps_numbers_and_stretches_leave_each_number_with_one_fate(
            next: u64, skipped: u64, times: [i64; 4], reach: Option<u32>,
            counts in prop::collection::vec(any::<u64>(), 0..4),
            arrived in prop::collection::vec(any::<u16>(), 0..8),
        ) {
            let skipped = skipped % next.max(1);
            let reach = reach.map(|reach| Span::from_nanos(reach.into()));
            let [one, other, from, until] = times.map(at);
            let mut gap = Gap::before(next, skipped, (one, other), reach);
            let all = gap.losses().by_network;
            let interval = (from.min(until), from.max(until));
            for (id, count) in (0..).zip(counts) {
                let (before, due) = (gap.losses(), gap.due(interval, gap.max_distance()));
                gap.miss(interval, gap.max_distance(), count, id);
                let now = gap.losses();
                prop_assert_eq!(now.by_capture - before.by_capture, due.min(count));
                prop_assert_eq!(now.by_network + now.by_capture, all);
            }
            let mut late: Vec<_> = arrived.iter().map(|ago| next.saturating_sub(1 + u64::from(*ago))).collect();
            late.retain(|number| gap.has(*number));
            late.iter().for_each(|number| gap.arrived(*number));
            late.sort_unstable();
            late.dedup();
            gap.clear_assignments(0);
            prop_assert_eq!(gap.losses().by_network, all - late.len() as u64);
        }
    }
}
