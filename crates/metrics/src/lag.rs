//! How far the clocks of two points are apart, where that is more than a correlator reaches.

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::PacketId;

use crate::{Observation, Point};

/// Packets of each point that are remembered.
const REMEMBERED: usize = 4096;

/// Finds packets that both points saw, however far apart their stamps are.
///
/// A [`Correlator`](crate::Correlator) matches packets within its time-out only: where two clocks
/// differ by a day it finds all lost and all unexpected. Here the packets with the smallest
/// identities are remembered at each point, the same ones at both, since identities are hashes (a
/// bottom-k sample: E. Cohen, H. Kaplan, Summarizing Data using Bottom-k Sketches, PODC 2007). So a
/// few hundred kilobytes tell of captures of any length.
#[derive(Clone, Debug, Default)]
pub struct Lag {
    /// When each was first seen.
    seen: [BTreeMap<PacketId, Time<Utc>>; 2],
}

/// How much later B's stamps are than A's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LagEstimate {
    /// The median over the packets remembered: the clocks' offset and the delay.
    pub median: Span,
    /// The least.
    pub min: Span,
    /// The greatest. Far from the least where the clocks do not run alike, or where a sender uses
    /// the same packets again and again.
    pub max: Span,
    /// Packets that it is taken from.
    pub packets: usize,
}

impl Lag {
    /// A lag between points that have seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an observation of a point.
    pub fn record(&mut self, point: Point, observation: &Observation) {
        let seen = &mut self.seen[usize::from(point == Point::B)];
        let full = seen.len() >= REMEMBERED;
        if full && seen.last_key_value().is_some_and(|(last, _)| observation.id > *last) {
            return;
        }
        seen.entry(observation.id).or_insert(observation.stamp.utc);
        if seen.len() > REMEMBERED {
            seen.pop_last();
        }
    }

    /// The lag, or `None` if no packet was found that both points saw.
    #[must_use]
    pub fn estimate(&self) -> Option<LagEstimate> {
        let [a, b] = &self.seen;
        let lag = |(id, sent): (&PacketId, &Time<Utc>)| b.get(id).map(|received| *received - *sent);
        let mut lags: Vec<Span> = a.iter().filter_map(lag).collect();
        lags.sort_unstable();
        let (min, max) = (*lags.first()?, *lags.last()?);
        Some(LagEstimate { median: lags[lags.len() / 2], min, max, packets: lags.len() })
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_packet::FlowKey;

    use super::*;

    fn seen(number: u64, nanos: i64) -> Observation {
        let stamp = Stamp {
            raw: RawStamp { domain: Domain::Realtime, value: 0 },
            utc: Time::from_nanos(nanos),
            error: Span::ZERO,
        };
        let end = ([10, 0, 0, 1], 1).into();
        let flow = FlowKey { source: end, destination: end, protocol: 17 };
        // An odd factor: other identities for other packets, in no order.
        let id = PacketId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Observation { id, flow, length: 60, stamp }
    }

    #[test]
    fn clocks_that_are_a_day_apart_are_found_out_from_any_length() {
        const DAY: i64 = 86_400_000_000_000;
        let mut lag = Lag::new();
        for number in 0..50_000u64 {
            let sent = number.cast_signed() * 1000;
            lag.record(Point::A, &seen(number, sent));
            if number % 10 > 0 {
                lag.record(Point::B, &seen(number, sent + DAY + sent % 777));
            }
        }
        let estimate = lag.estimate().expect("nine packets of ten were seen at both");
        assert!(estimate.packets > REMEMBERED / 2, "{estimate:?}");
        assert!(lag.seen.iter().all(|seen| seen.len() == REMEMBERED));
        let beyond = |span: Span| span.as_nanos() - DAY;
        assert!((0..777).contains(&beyond(estimate.min)) && beyond(estimate.max) < 777);
        assert!((300..480).contains(&beyond(estimate.median)), "{estimate:?}");
    }

    #[test]
    fn points_that_saw_nothing_in_common_have_no_lag() {
        let mut lag = Lag::new();
        lag.record(Point::A, &seen(1, 0));
        lag.record(Point::B, &seen(2, 0));
        assert_eq!(lag.estimate(), None);
    }
}
