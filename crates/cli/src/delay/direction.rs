//! Direction of flows: in captures of both directions, some flows pass B before A.

use std::collections::HashSet;
use std::net::IpAddr;

use wirestamp_metrics::Quality;
use wirestamp_packet::FlowKey;

use super::result::DelayResult;
use crate::output::time;

impl DelayResult {
    /// Notes on negative delays, a line each.
    pub(super) fn negative_delays(&self, total: &Quality) -> Vec<String> {
        let flows = self.flows.flows();
        let back = backward(&flows);
        let forth = flows.iter().filter(|(flow, _)| !back.contains(flow)).map(|(_, of)| *of);
        let shortest = forth.chain([&self.flows.others]).filter_map(min_delay).min();
        let early = shortest.and_then(|min| self.unexplained_min(total, min, back.is_empty()));
        let back = (!back.is_empty()).then(|| {
            format!(
                "Flows from B to A: {}. Their delays are negative, and totals over all flows mix both \
                 directions.",
                back.len()
            )
        });
        back.into_iter().chain(early).collect()
    }

    /// A note on the min delay, if the clock error does not explain it.
    fn unexplained_min(&self, total: &Quality, shortest: i64, one_way: bool) -> Option<String> {
        let explained = self.clocks.max_error(total).map(|error| shortest >= -error);
        if explained == Some(true) || self.clocks.aligned {
            return None;
        }
        let shortest = time(shortest);
        if one_way && total.delay().summary()?.p50 < 0 {
            return Some(format!(
                "Most delays are negative, min {shortest}: swap the two points, or B's clock is behind A's."
            ));
        }
        (explained == Some(false)).then(|| {
            format!(
                "The min delay is {shortest}, negative by more than the clock error: A stamped its packets \
                 with more delay than B."
            )
        })
    }
}

/// The min delay in nanoseconds.
fn min_delay(quality: &Quality) -> Option<i64> {
    Some(quality.delay().summary()?.min)
}

/// The flows from B to A: their mean delay is negative, and that of the opposite flow between the same
/// hosts is positive. An error of the clocks would shift both in the same direction.
fn backward(flows: &[(FlowKey, &Quality)]) -> HashSet<FlowKey> {
    let hosts = |flow: &FlowKey| (flow.source.ip(), flow.destination.ip());
    let mean = |quality: &Quality| quality.delay().summary().map(|delay| delay.mean);
    let forth: HashSet<(IpAddr, IpAddr)> = flows
        .iter()
        .filter(|(_, quality)| mean(quality).is_some_and(|mean| mean > 0.0))
        .map(|(flow, _)| hosts(flow))
        .collect();
    flows
        .iter()
        .filter(|(_, quality)| mean(quality).is_some_and(|mean| mean < 0.0))
        .map(|(flow, _)| *flow)
        .filter(|flow| {
            let (source, destination) = hosts(flow);
            forth.contains(&(destination, source))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_metrics::{Observation, Outcome};
    use wirestamp_packet::PacketId;

    use super::*;

    /// A flow between two hosts with a packet of this delay.
    fn flow(source: u8, destination: u8, delay_us: i64) -> (FlowKey, Quality) {
        let end = |host: u8| ([10, 0, 0, host], 80).into();
        let flow = FlowKey { source: end(source), destination: end(destination), protocol: 6 };
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(0), error: Span::ZERO };
        let seen = Observation { id: PacketId(1), flow, length: 60, stamp };
        let mut quality = Quality::of_flow();
        quality.record(&Outcome::Matched {
            sent: seen,
            received: seen,
            sequence: 0,
            delay: Span::from_micros(delay_us),
            error: Span::ZERO,
            reordered: false,
            since_previous: None,
            until_next: None,
        });
        (flow, quality)
    }

    fn back(flows: &[(FlowKey, Quality)]) -> usize {
        let flows: Vec<_> = flows.iter().map(|(flow, quality)| (*flow, quality)).collect();
        backward(&flows).len()
    }

    #[test]
    fn backward_flow_has_a_forward_counterpart() {
        assert_eq!(back(&[flow(1, 2, 50), flow(2, 1, -40)]), 1);
        assert_eq!(back(&[flow(1, 2, -50), flow(2, 1, -40)]), 0, "clock error");
        assert_eq!(back(&[flow(1, 2, -50), flow(3, 4, 40)]), 0, "other hosts");
    }
}
