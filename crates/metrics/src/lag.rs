//! Difference of the clocks of two points, where it exceeds the timeout of a correlator.

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::PacketId;

use crate::{Observation, Point};

/// Max packets kept per point.
const MAX_KEPT: usize = 4096;

/// Finds packets observed at both points, however far apart their stamps are.
///
/// A [`Correlator`](crate::Correlator) matches packets only within its timeout: if two clocks differ by a day, all
/// packets are lost and unexpected. Here, the packets with the lowest identities are kept at each point. They are the
/// same packets at both, since identities are hashes (a bottom-k sample: E. Cohen, H. Kaplan, Summarizing Data using
/// Bottom-k Sketches, PODC 2007). So a few hundred kilobytes suffice for captures of any length.
#[derive(Clone, Debug, Default)]
pub struct Lag {
    /// First stamp of each.
    seen: [BTreeMap<PacketId, Time<Utc>>; 2],
}

/// Difference of B's stamps from A's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LagEstimate {
    /// Median over the packets kept: clock offset plus delay.
    pub median: Span,
    /// Min difference.
    pub min: Span,
    /// Max difference. Far from the min where the clocks run at different rates, or where a sender repeats the same
    /// packets.
    pub max: Span,
    /// Number of packets used.
    pub packets: usize,
}

impl Lag {
    /// An estimator without observations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an observation of a point.
    pub fn record(&mut self, point: Point, observation: &Observation) {
        let seen = &mut self.seen[usize::from(point == Point::B)];
        let full = seen.len() >= MAX_KEPT;
        if full && seen.last_key_value().is_some_and(|(last, _)| observation.id > *last) {
            return;
        }
        seen.entry(observation.id).or_insert(observation.stamp.utc);
        if seen.len() > MAX_KEPT {
            seen.pop_last();
        }
    }

    /// Estimate, or `None` if no packet was found at both points.
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
        // An odd factor: different identities for different packets, in random order.
        let id = PacketId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Observation { id, flow, length: 60, stamp }
    }

    #[test]
    fn clocks_a_day_apart_are_detected() {
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
        assert!(estimate.packets > MAX_KEPT / 2, "{estimate:?}");
        assert!(lag.seen.iter().all(|seen| seen.len() == MAX_KEPT));
        let beyond = |span: Span| span.as_nanos() - DAY;
        assert!((0..777).contains(&beyond(estimate.min)) && beyond(estimate.max) < 777);
        assert!((300..480).contains(&beyond(estimate.median)), "{estimate:?}");
    }

    #[test]
    fn points_without_common_packets_have_no_lag() {
        let mut lag = Lag::new();
        lag.record(Point::A, &seen(1, 0));
        lag.record(Point::B, &seen(2, 0));
        assert_eq!(lag.estimate(), None);
    }
}
