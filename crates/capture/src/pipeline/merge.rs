//! Merges several lanes into one stream in the order of its stamps.
//!
//! A packet may be passed on as soon as no lane can deliver an older one. An empty lane may have received nothing,
//! or may be late. The merge waits for it until [`MERGE_TIMEOUT`] after the packet's stamp. A packet later than
//! that is not lost: it is passed on at once, out of order, and counted.

use std::time::Duration;

use wirestamp_clock::{Span, Time, Utc};

/// Max time after its stamp that a packet waits for older ones of other lanes. Packets that reach the consumer
/// within this time leave it in order.
///
/// The kernel keeps a block of rings that share packets for up to 10 ms; the rest allows for scheduling latency.
pub const MERGE_TIMEOUT: Duration = Duration::from_millis(50);

const MERGE_TIMEOUT_SPAN: Span = Span::from_millis(50);

/// State of a lane, as seen by the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Stamp of its oldest packet.
    Packet(Time<Utc>),
    /// No packet at the moment.
    Empty,
    /// No packet any more.
    Ended,
}

/// Decision of the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take the packet of this lane.
    Take(usize),
    /// Wait for empty lanes, at most this long.
    Wait(Duration),
    /// No lane has a packet.
    Nothing,
}

/// Merges lanes by the stamps at their heads.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// Packets with stamps up to this time do not wait.
    horizon: Option<Time<Utc>>,
}

impl Merge {
    /// Decides by the lanes' heads, and by the system's time where necessary.
    pub(super) fn next(
        &mut self,
        heads: impl Iterator<Item = Head>,
        now: impl FnOnce() -> Time<Utc>,
    ) -> Next {
        let mut oldest: Option<(Time<Utc>, usize)> = None;
        let mut any_empty = false;
        for (lane, head) in heads.enumerate() {
            match head {
                Head::Packet(stamp) if oldest.is_none_or(|(min, _)| stamp < min) => {
                    oldest = Some((stamp, lane));
                }
                Head::Packet(_) | Head::Ended => {}
                Head::Empty => any_empty = true,
            }
        }
        let Some((stamp, lane)) = oldest else { return Next::Nothing };
        if any_empty && let Some(wait) = self.wait(stamp, now) {
            return Next::Wait(wait);
        }
        Next::Take(lane)
    }

    /// How much longer a packet with this stamp has to wait, if it does.
    fn wait(&mut self, stamp: Time<Utc>, now: impl FnOnce() -> Time<Utc>) -> Option<Duration> {
        // The clock is read only if its last reading is not sufficient.
        if self.horizon.is_some_and(|horizon| stamp <= horizon) {
            return None;
        }
        let now = now();
        let horizon = now - MERGE_TIMEOUT_SPAN;
        self.horizon = Some(horizon);
        // A stamp later than now was taken before the clock was set back: the packet's waiting time is unknown.
        if stamp <= horizon || stamp > now {
            return None;
        }
        u64::try_from((stamp - horizon).as_nanos()).ok().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn next(merge: &mut Merge, heads: &[Head], now: i64) -> Next {
        merge.next(heads.iter().copied(), || at(now))
    }

    #[test]
    fn older_packet_is_first_without_reading_clock() {
        let heads = [Head::Packet(at(20)), Head::Packet(at(10)), Head::Ended];
        let next = Merge::default().next(heads.into_iter(), || unreachable!("no lane is empty"));
        assert_eq!(next, Next::Take(1));
    }

    #[test]
    fn empty_lane_is_awaited_until_timeout() {
        let mut merge = Merge::default();
        let heads = [Head::Packet(at(1000)), Head::Empty];
        assert_eq!(next(&mut merge, &heads, 1020), Next::Wait(Duration::from_millis(30)));
        assert_eq!(next(&mut merge, &heads, 1050), Next::Take(0));
        assert_eq!(next(&mut merge, &[Head::Empty, Head::Packet(at(999))], 1051), Next::Take(1));
    }

    #[test]
    fn ended_lane_is_not_awaited() {
        let heads = [Head::Ended, Head::Packet(at(1000))];
        assert_eq!(next(&mut Merge::default(), &heads, 1000), Next::Take(1));
        assert_eq!(next(&mut Merge::default(), &[Head::Ended, Head::Empty], 0), Next::Nothing);
    }

    #[test]
    fn clock_set_back_causes_no_wait() {
        let heads = [Head::Packet(at(5000)), Head::Empty];
        assert_eq!(next(&mut Merge::default(), &heads, 1000), Next::Take(0));
    }

    proptest! {
        /// Packets of one stream are distributed over lanes, each of which delivers late by less than
        /// the bound: the merge keeps their order.
        #[test]
        fn lanes_within_the_bound_are_merged_in_order(
            packets in prop::collection::vec((0..3_usize, 1..20_i64), 1..200),
            delays in prop::collection::vec(0..50_i64, 3),
        ) {
            let mut stamp = 0;
            let mut lanes = [const { VecDeque::new() }; 3];
            for (lane, gap) in &packets {
                stamp += gap;
                lanes[*lane].push_back(stamp);
            }
            let (mut merge, mut out) = (Merge::default(), Vec::new());
            for now in 0..stamp + 200 {
                loop {
                    let heads = lanes.iter().zip(&delays).map(|(lane, delay)| match lane.front() {
                        Some(stamp) if stamp + delay <= now => Head::Packet(at(*stamp)),
                        _ => Head::Empty,
                    });
                    let Next::Take(lane) = merge.next(heads, || at(now)) else { break };
                    out.extend(lanes[lane].pop_front());
                }
            }
            prop_assert!(out.is_sorted());
            prop_assert_eq!(out.len(), packets.len());
        }
    }
}
