//! A run of numbers that a source skipped, and what has become of each.

use std::ops::Range;

use wirestamp_clock::{Span, Time, Utc};

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
    accounts: Vec<Account>,
}

/// What has become of some numbers of a gap.
#[derive(Clone, Debug)]
struct Account {
    numbers: Range<u64>,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// They came late.
    Came,
    /// The capture lost them in the stretch of this number.
    Missed(u64),
}

/// What a gap comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Packets that the network lost, and the runs that they make.
    pub(super) by_network: u64,
    pub(super) periods: u64,
    /// Packets that the capture lost.
    pub(super) by_capture: u64,
}

impl Gap {
    /// A gap before the number `next`, where `skipped` are missing.
    pub(super) fn before(
        next: u64,
        skipped: u64,
        (one, other): (Time<Utc>, Time<Utc>),
        reach: Option<Span>,
    ) -> Self {
        let (from, until) = (one.min(other), one.max(other));
        Self {
            numbers: next.saturating_sub(skipped)..next,
            from,
            until,
            reach,
            accounts: Vec::new(),
        }
    }

    /// When the number after the gap came.
    pub(super) fn until(&self) -> Time<Utc> {
        self.until
    }

    /// Whether the gap and a stretch of time have a moment in common.
    pub(super) fn shares(&self, (from, until): (Time<Utc>, Time<Utc>)) -> bool {
        from <= self.until && self.from <= until
    }

    /// The longest time that one of its numbers can be due ahead of or behind a stretch that the gap
    /// shares a moment with.
    pub(super) fn farthest(&self) -> Span {
        let length = self.until - self.from;
        self.reach.map_or(length, |reach| reach.min(length))
    }

    /// Whether a number is one of the gap's.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Takes note that one of its numbers has come.
    pub(super) fn came(&mut self, number: u64) {
        self.account(number..number + 1, Fate::Came);
    }

    /// What the gap comes to.
    pub(super) fn losses(&self) -> Losses {
        let length = |numbers: &Range<u64>| numbers.end - numbers.start;
        let mut losses = Losses::default();
        let mut open = self.numbers.start;
        for Account { numbers, fate } in &self.accounts {
            losses.lose(numbers.start - open);
            open = numbers.end;
            if let Fate::Missed(_) = fate {
                losses.by_capture += length(numbers);
            }
        }
        losses.lose(self.numbers.end - open);
        losses
    }

    /// Whether all of it has come.
    pub(super) fn is_filled(&self) -> bool {
        self.losses() == Losses::default()
    }

    /// Takes back what stretches from the number `first` on account for.
    pub(super) fn reopen(&mut self, first: u64) {
        self.accounts.retain(|it| !matches!(it.fate, Fate::Missed(stretch) if stretch >= first));
    }

    /// How many numbers each stretch accounts for.
    pub(super) fn missed(&self) -> impl Iterator<Item = (u64, u64)> {
        self.accounts.iter().filter_map(|it| match it.fate {
            Fate::Missed(stretch) => Some((stretch, it.numbers.end - it.numbers.start)),
            Fate::Came => None,
        })
    }

    /// How many numbers that nothing accounts for were due within a stretch, or not farther than
    /// `distance` from it.
    pub(super) fn due(&self, stretch: (Time<Utc>, Time<Utc>), distance: Span) -> u64 {
        self.open(&self.window(stretch, distance)).map(|it| it.end - it.start).sum()
    }

    /// Accounts for `count` of the numbers that [`Self::due`] counts by the stretch of this number;
    /// those that are left over are spread evenly, as random losses are.
    pub(super) fn miss(
        &mut self,
        stretch: (Time<Utc>, Time<Utc>),
        distance: Span,
        count: u64,
        name: u64,
    ) {
        let window = self.window(stretch, distance);
        let open: Vec<_> = self.open(&window).collect();
        let total: u64 = open.iter().map(|it| it.end - it.start).sum();
        let left = total.saturating_sub(count);
        // The places of those that are left, among the open ones.
        let place = |nth: u64| {
            let place = (u128::from(nth) * 2 + 1) * u128::from(total) / (u128::from(left) * 2);
            u64::try_from(place).unwrap_or(u64::MAX)
        };
        let (mut nth, mut passed) = (0, 0);
        for numbers in open {
            let length = numbers.end - numbers.start;
            let mut begin = numbers.start;
            while nth < left && place(nth) < passed + length {
                let spared = numbers.start + (place(nth) - passed);
                self.account(begin..spared, Fate::Missed(name));
                begin = spared + 1;
                nth += 1;
            }
            self.account(begin..numbers.end, Fate::Missed(name));
            passed += length;
        }
    }

    /// The parts of a range that nothing accounts for.
    fn open(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = *range;
        let starts = std::iter::once(start)
            .chain(self.accounts.iter().map(move |it| it.numbers.end.max(start)));
        let ends = self
            .accounts
            .iter()
            .map(move |it| it.numbers.start.min(end))
            .chain(std::iter::once(end));
        starts.zip(ends).map(|(start, end)| start..end).filter(|it| it.start < it.end)
    }

    /// The numbers that were due in a stretch, or not farther than `distance` from it. They are taken
    /// to have been sent at equal intervals.
    fn window(&self, (from, until): (Time<Utc>, Time<Utc>), distance: Span) -> Range<u64> {
        let distance = i128::from(distance.min(self.farthest()).as_nanos());
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
    fn account(&mut self, numbers: Range<u64>, fate: Fate) {
        if numbers.is_empty() {
            return;
        }
        let place = self.accounts.partition_point(|it| it.numbers.end <= numbers.start);
        let behind = self.accounts.partition_point(|it| it.numbers.start < numbers.end);
        let mut parts = Vec::new();
        for old in self.accounts.drain(place..behind) {
            parts.push(Account { numbers: old.numbers.start..numbers.start, fate: old.fate });
            parts.push(Account { numbers: numbers.end..old.numbers.end, fate: old.fate });
        }
        parts.retain(|it| it.numbers.start < it.numbers.end);
        let at = parts.partition_point(|it| it.numbers.end <= numbers.start);
        parts.insert(at, Account { numbers, fate });
        self.accounts.splice(place..place, parts);
    }
}

impl Losses {
    fn lose(&mut self, packets: u64) {
        self.by_network += packets;
        self.periods += u64::from(packets > 0);
    }
}
