//! Several streams in one order of deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wirestamp_clock::Span;

use crate::Pattern;

/// When a stream sends, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its rhythm.
    pub pattern: Pattern,
    /// When its first packet is due, from the start of the whole.
    pub start: Span,
    /// How many packets it has ([`Pattern::packets_in`] has a duration's); `u64::MAX` for no end.
    pub packets: u64,
}

/// One packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    /// When, from the start of the whole.
    pub(crate) offset: Span,
    /// Which stream, by its place in the list of plans.
    pub(crate) stream: usize,
    /// Which packet of it, from 0.
    pub(crate) sequence: u64,
}

/// The packets of all streams in the order in which they are due; of those due at once, the one of
/// the stream that comes first in the list.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    plans: Vec<Plan>,
    /// The next packet of each stream that has one.
    next: BinaryHeap<Reverse<Due>>,
}

impl Schedule {
    /// Merges the streams.
    pub(crate) fn new(plans: Vec<Plan>) -> Self {
        let first = |(stream, plan): (usize, &Plan)| due(plan, stream, 0);
        let next = plans.iter().enumerate().filter_map(first).map(Reverse).collect();
        Self { plans, next }
    }
}

/// Packet `sequence` of a stream, if it has so many.
fn due(plan: &Plan, stream: usize, sequence: u64) -> Option<Due> {
    let offset = plan.start + plan.pattern.offset(sequence);
    (sequence < plan.packets).then_some(Due { offset, stream, sequence })
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let Reverse(now) = self.next.pop()?;
        self.next.extend(due(&self.plans[now.stream], now.stream, now.sequence + 1).map(Reverse));
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(interval: i64, start: i64, packets: u64) -> Plan {
        let pattern = Pattern::new("free", 200, Span::from_nanos(interval)).unwrap();
        Plan { pattern, start: Span::from_nanos(start), packets }
    }

    #[test]
    fn streams_are_merged_by_deadline_and_each_keeps_its_count() {
        let schedule = Schedule::new(vec![plan(10, 0, 3), plan(4, 6, 4), plan(1, 0, 0)]);
        let order: Vec<_> =
            schedule.map(|due| (due.offset.as_nanos(), due.stream, due.sequence)).collect();
        let expected =
            [(0, 0, 0), (6, 1, 0), (10, 0, 1), (10, 1, 1), (14, 1, 2), (18, 1, 3), (20, 0, 2)];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_stream_without_end_goes_on() {
        let mut schedule = Schedule::new(vec![plan(5, 0, u64::MAX)]);
        assert_eq!(schedule.nth(1_000).unwrap().offset.as_nanos(), 5_000);
    }
}
