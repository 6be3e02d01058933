//! A run of sequence numbers that did not arrive in order, and the resolution of each.

use std::ops::Range;

use wirestamp_clock::{Span, Time, Utc};

use super::gap_losses::GapLosses;
use super::uncertainty::{ImpairmentUncertainty, Uncertainty};

/// Max numbers of a gap that are examined, counted from the last. RTP has no gap near this size (RFC 3550 appendix
/// A.1), and iperf3 only after corruption.
const MAX_NUMBERS: u64 = u32::MAX as u64;
/// Max number of separate runs left unassigned in a gap.
const MAX_RUNS: u64 = 256;

/// Sequence numbers missing between two that arrived.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    numbers: Range<u64>,
    /// Arrival times of the packets on both sides.
    from: Time<Utc>,
    /// Arrival time of the packet after the gap.
    pub(super) until: Time<Utc>,
    /// Max distance between due time and possible passing time of a number; none for irregular sources.
    reach: Option<Span>,
    /// Numbers with a resolution, in order, without overlaps.
    assignments: Vec<Assignment>,
    /// By interval: uncertainty of the numbers assigned to it.
    pub(super) uncertainties: Vec<(u64, Uncertainty)>,
    /// Uncertainty of several consecutive intervals together, which may be less than their sum.
    pub(super) joint_uncertainties: Vec<(Range<u64>, Uncertainty)>,
}

/// Resolution of a range of numbers.
#[derive(Clone, Debug)]
struct Assignment {
    numbers: Range<u64>,
    resolution: Resolution,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Arrived late.
    Came,
    /// Lost by the capture, in the loss interval with this ID.
    CaptureLost(u64),
}

impl Gap {
    /// A gap of `skipped` numbers before the number `next`. Only the newest [`MAX_NUMBERS`] are examined.
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

    /// Whether the gap and an interval overlap in time.
    pub(super) fn overlaps(&self, (from, until): (Time<Utc>, Time<Utc>)) -> bool {
        from <= self.until && self.from <= until
    }

    /// Max distance at which a number can be due before or after an interval that overlaps the gap.
    pub(super) fn max_distance(&self) -> Span {
        let length = self.until - self.from;
        self.reach.map_or(length, |reach| reach.min(length))
    }

    /// Whether a number belongs to the gap.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Records the late arrival of a number.
    pub(super) fn arrived(&mut self, number: u64) {
        self.assign(number..number + 1, Resolution::Came);
    }

    /// Losses in the gap.
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

    /// Uncertainty of these losses. N losses form at most one run more than there are other packets.
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

    /// Uncertainty over all intervals.
    fn total_uncertainty(&self) -> Uncertainty {
        let sum = |of: &dyn Fn(u64) -> bool| {
            let uncertainties = self.uncertainties.iter().filter(|(interval, _)| of(*interval));
            uncertainties
                .fold(Uncertainty::default(), |sum, (_, uncertainty)| sum.plus(*uncertainty))
        };
        let alone =
            |interval| !self.joint_uncertainties.iter().any(|(joint, _)| joint.contains(&interval));
        self.joint_uncertainties.iter().fold(sum(&alone), |all, (joint, uncertainty)| {
            all.plus(uncertainty.and(sum(&|interval| joint.contains(&interval))))
        })
    }

    /// Whether all numbers have arrived.
    pub(super) fn is_filled(&self) -> bool {
        let GapLosses { by_network, by_capture, .. } = self.losses();
        by_network + by_capture == 0
    }

    /// Removes the assignments to intervals with the ID `first` or higher.
    pub(super) fn clear_assignments(&mut self, first: u64) {
        self.assignments.retain(
            |it| !matches!(it.resolution, Resolution::CaptureLost(interval) if interval >= first),
        );
        self.uncertainties.retain(|(interval, _)| *interval < first);
        self.joint_uncertainties.retain(|(joint, _)| joint.start < first);
    }

    /// Numbers assigned to each interval, by ID.
    pub(super) fn missed(&self) -> impl Iterator<Item = (u64, u64)> {
        self.missed_runs().map(|(interval, numbers)| (interval, numbers.end - numbers.start))
    }

    /// Numbers assigned to intervals with these IDs.
    pub(super) fn missed_in(&self, ids: &Range<u64>) -> u64 {
        let theirs = self.missed().filter(|(id, _)| ids.contains(id));
        theirs.map(|(_, packets)| packets).sum()
    }

    /// Numbers assigned to each interval that may also have been lost in this one.
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

    /// Reassigns up to `count` numbers from one interval to another, where they may have been lost in it. Returns how
    /// many were reassigned.
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

    /// Unassigned numbers that were due in an interval, or within `distance` of it.
    pub(super) fn due(&self, interval: (Time<Utc>, Time<Utc>), distance: Span) -> u64 {
        self.open(&self.window(interval, distance)).map(|it| it.end - it.start).sum()
    }

    /// Numbers that may have been lost in an interval, assigned or not.
    pub(super) fn possible(&self, interval: (Time<Utc>, Time<Utc>)) -> u64 {
        self.not_come_of(&self.window(interval, self.max_distance()))
    }

    /// Numbers that have not arrived.
    pub(super) fn not_come(&self) -> u64 {
        self.not_come_of(&self.numbers)
    }

    fn not_come_of(&self, window: &Range<u64>) -> u64 {
        let arrived = self.assignments.iter().filter(|it| it.resolution == Resolution::Came);
        let arrived = arrived.map(|it| overlap(&it.numbers, window)).map(|it| it.end - it.start);
        window.end - window.start - arrived.sum::<u64>()
    }

    /// Assigns `count` of the numbers that [`Self::due`] counts to the interval with this ID. Numbers left over are
    /// spread evenly, like random losses.
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

    /// Assigns the numbers at these positions among those of `open`.
    fn assign_places(&mut self, open: &[Range<u64>], places: Range<u64>, id: u64) {
        let mut passed = 0;
        for numbers in open {
            let length = numbers.end - numbers.start;
            let place = |at: u64| numbers.start + at.clamp(passed, passed + length) - passed;
            self.assign(place(places.start)..place(places.end), Resolution::CaptureLost(id));
            passed += length;
        }
    }

    /// Unassigned parts of a range.
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

    /// Numbers due in an interval, or within `distance` of it. Sending at equal intervals is assumed.
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
        // The first number is due one step after the begin.
        let place = |due: i128| {
            let place = (due - 1).clamp(0, i128::from(missing));
            u64::try_from(place).unwrap_or(missing)
        };
        let first = place((begin * intervals + length - 1).div_euclid(length));
        let last = place((end * intervals).div_euclid(length) + 1);
        self.numbers.start + first..self.numbers.start + last.max(first)
    }

    /// Records a resolution, in place of any previous one.
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

/// Intersection of two ranges; its end is never before its start.
fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// `count` positions of `all`, spread evenly in at most [`MAX_RUNS`] runs.
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
    fn capture_loss_within_a_gap_splits_it() {
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
        fn each_number_has_exactly_one_resolution(
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
