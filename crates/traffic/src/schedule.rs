//! Merges several streams by deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wirestamp_clock::Span;

use crate::Pattern;

/// Pattern, start and number of packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// Frame size and intervals.
    pub pattern: Pattern,
    /// Due time of the first packet, after the start of the run.
    pub start: Span,
    /// Number of packets ([`Pattern::packets_in`] converts a duration); `u64::MAX` for endless.
    pub packets: u64,
}

/// One packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DuePacket {
    /// Due time after the start of the run.
    pub(crate) offset: Span,
    /// Index of the stream's plan.
    pub(crate) stream: usize,
    /// Sequence number, from 0.
    pub(crate) sequence: u64,
}

/// The packets of all streams, sorted by due time, then by the stream's index.
#[derive(Clone, Debug)]
pub(crate) struct MergedSchedule {
    plans: Vec<StreamPlan>,
    /// The next packet of each stream that has one.
    next: BinaryHeap<Reverse<DuePacket>>,
}

impl MergedSchedule {
    /// Merges the streams.
    pub(crate) fn new(plans: Vec<StreamPlan>) -> Self {
        let first = |(stream, plan): (usize, &StreamPlan)| due(plan, stream, 0);
        let next = plans.iter().enumerate().filter_map(first).map(Reverse).collect();
        Self { plans, next }
    }
}

/// Packet `sequence` of a stream; none after the stream's end.
fn due(plan: &StreamPlan, stream: usize, sequence: u64) -> Option<DuePacket> {
    let offset = plan.start + plan.pattern.offset(sequence);
    (sequence < plan.packets).then_some(DuePacket { offset, stream, sequence })
}

impl Iterator for MergedSchedule {
    type Item = DuePacket;

    fn next(&mut self) -> Option<DuePacket> {
        let Reverse(now) = self.next.pop()?;
        self.next.extend(due(&self.plans[now.stream], now.stream, now.sequence + 1).map(Reverse));
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(interval: i64, start: i64, packets: u64) -> StreamPlan {
        let pattern = Pattern::new("free", 200, Span::from_nanos(interval)).unwrap();
        StreamPlan { pattern, start: Span::from_nanos(start), packets }
    }

    #[test]
    fn streams_are_merged_by_deadline() {
        let schedule = MergedSchedule::new(vec![plan(10, 0, 3), plan(4, 6, 4), plan(1, 0, 0)]);
        let order: Vec<_> =
            schedule.map(|due| (due.offset.as_nanos(), due.stream, due.sequence)).collect();
        let expected =
            [(0, 0, 0), (6, 1, 0), (10, 0, 1), (10, 1, 1), (14, 1, 2), (18, 1, 3), (20, 0, 2)];
        assert_eq!(order, expected);
    }

    #[test]
    fn endless_stream_never_ends() {
        let mut schedule = MergedSchedule::new(vec![plan(5, 0, u64::MAX)]);
        assert_eq!(schedule.nth(1_000).unwrap().offset.as_nanos(), 5_000);
    }
}
