//! Several lanes become one stream in the order of its stamps.
//!
//! A packet may go on as soon as no lane can still bring an older one. A lane that has nothing to
//! show is the difficulty: perhaps nothing arrived there, perhaps it is only late. So it is waited
//! for, but not for longer than [`LATENESS`] after the packet's own stamp. What comes later than
//! that is not lost: it goes on at once, out of order, and is counted.

use std::time::Duration;

use wirestamp_clock::{Span, Time, Utc};

/// How long after its stamp a packet waits at the most for older ones of other lanes: packets that
/// reach the consumer within this time of their stamps leave it in order.
///
/// The kernel keeps a block of rings that share packets for up to 10 ms before it hands it over; the
/// rest is for threads that are late.
pub const LATENESS: Duration = Duration::from_millis(50);

const LATENESS_SPAN: Span = Span::from_millis(50);

/// A lane as the merge sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The stamp of its oldest packet.
    Packet(Time<Utc>),
    /// Nothing so far.
    Silent,
    /// Nothing, ever again.
    Ended,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take the packet of this lane.
    Take(usize),
    /// Wait for silent lanes, at most for so long.
    Wait(Duration),
    /// No lane has a packet.
    Nothing,
}

/// Merges lanes by the stamps at their heads.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// Stamps up to here wait for nobody.
    horizon: Option<Time<Utc>>,
}

impl Merge {
    /// Decides by the lanes' heads, and by the system's time where it matters.
    pub(super) fn next(
        &mut self,
        heads: impl Iterator<Item = Head>,
        now: impl FnOnce() -> Time<Utc>,
    ) -> Next {
        let mut oldest: Option<(Time<Utc>, usize)> = None;
        let mut silent = false;
        for (lane, head) in heads.enumerate() {
            match head {
                Head::Packet(stamp) if oldest.is_none_or(|(least, _)| stamp < least) => {
                    oldest = Some((stamp, lane));
                }
                Head::Packet(_) | Head::Ended => {}
                Head::Silent => silent = true,
            }
        }
        let Some((stamp, lane)) = oldest else { return Next::Nothing };
        if silent && let Some(wait) = self.wait(stamp, now) {
            return Next::Wait(wait);
        }
        Next::Take(lane)
    }

    /// How much longer a packet of this stamp has to wait, if it does.
    fn wait(&mut self, stamp: Time<Utc>, now: impl FnOnce() -> Time<Utc>) -> Option<Duration> {
        // The clock is read only when what it said last does not settle the matter.
        if self.horizon.is_some_and(|horizon| stamp <= horizon) {
            return None;
        }
        let now = now();
        let horizon = now - LATENESS_SPAN;
        self.horizon = Some(horizon);
        // A stamp from the future is one from before a step of the clock: it says nothing of how
        // long the packet has waited.
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
    fn the_older_of_two_packets_goes_first_without_a_look_at_the_clock() {
        let heads = [Head::Packet(at(20)), Head::Packet(at(10)), Head::Ended];
        let next = Merge::default().next(heads.into_iter(), || unreachable!("nobody is silent"));
        assert_eq!(next, Next::Take(1));
    }

    #[test]
    fn a_silent_lane_is_waited_for_until_the_bound_and_no_longer() {
        let mut merge = Merge::default();
        let heads = [Head::Packet(at(1000)), Head::Silent];
        assert_eq!(next(&mut merge, &heads, 1020), Next::Wait(Duration::from_millis(30)));
        assert_eq!(next(&mut merge, &heads, 1050), Next::Take(0));
        assert_eq!(next(&mut merge, &[Head::Silent, Head::Packet(at(999))], 1051), Next::Take(1));
    }

    #[test]
    fn a_lane_that_has_ended_keeps_nobody_waiting() {
        let heads = [Head::Ended, Head::Packet(at(1000))];
        assert_eq!(next(&mut Merge::default(), &heads, 1000), Next::Take(1));
        assert_eq!(next(&mut Merge::default(), &[Head::Ended, Head::Silent], 0), Next::Nothing);
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let heads = [Head::Packet(at(5000)), Head::Silent];
        assert_eq!(next(&mut Merge::default(), &heads, 1000), Next::Take(0));
    }

    proptest! {
        /// Packets of one stream are spread over lanes, each of which delivers late by less than
        /// the bound: they come out as they went in.
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
                        _ => Head::Silent,
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
