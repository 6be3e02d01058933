//! TCP round-trip times at both points, where both directions were captured.
//!
//! Each point uses its own stamps only, so that no two clocks are compared.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::Summary;
use wirestamp_metrics::flow::TcpReport;
use wirestamp_packet::FlowKey;
use wirestamp_session::PointState;

use crate::output::{mean, time};

/// The columns of [`RoundTrip::row`].
pub(super) const HEADER: [&str; 6] =
    ["mean round trip", "from A", "from B", "between", "handshake A", "handshake B"];

/// The round-trip times of each TCP flow.
#[derive(Default)]
pub(super) struct RoundTrips(HashMap<FlowKey, RoundTrip>);

/// Round-trip times of a flow: from A, and from B, to the receiver and back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip([Option<TcpReport>; 2]);

/// Round-trip times of a TCP flow, of which both directions were captured. Absent for other flows.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct RoundTripMembers {
    /// Time from A to the receiver and back, in nanoseconds. Null if it was not observed at A. Absent for flows without
    /// round-trip times, as are the next four keys.
    rtt_a_ns: Option<Summary>,
    /// Time from B to the receiver and back, in nanoseconds. Null if it was not observed at B.
    rtt_b_ns: Option<Summary>,
    /// The part between A and B, both directions together: the absolute difference of the means, in nanoseconds.
    rtt_between_mean_ns: Option<f64>,
    /// Round-trip time of the SYN from A, in nanoseconds. Null if it was not observed.
    handshake_a_ns: Option<i64>,
    /// Round-trip time of the SYN from B, in nanoseconds. Null if it was not observed.
    handshake_b_ns: Option<i64>,
}

impl RoundTrips {
    /// The round-trip times measured at A and B.
    pub(super) fn of_points(points: &mut [PointState; 2]) -> Self {
        let mut trips: HashMap<FlowKey, RoundTrip> = HashMap::new();
        for (point, point_state) in points.iter_mut().enumerate() {
            for report in point_state.flows() {
                if report.tcp.is_some_and(|tcp| tcp.rtt_ns.is_some()) {
                    trips.entry(report.flow()).or_default().0[point] = report.tcp;
                }
            }
        }
        Self(trips)
    }

    /// The round-trip times of a flow.
    pub(super) fn of(&self, flow: &FlowKey) -> Option<&RoundTrip> {
        self.0.get(flow)
    }
}

impl RoundTrip {
    fn trips(&self) -> [Option<Summary>; 2] {
        self.0.map(|tcp| tcp.and_then(|tcp| tcp.rtt_ns))
    }

    fn handshakes(&self) -> [Option<i64>; 2] {
        self.0.map(|tcp| tcp.and_then(|tcp| tcp.handshake_ns))
    }

    /// The part between the points, in both directions together, in nanoseconds: the absolute
    /// difference of the means. Means are exact, percentiles are not.
    fn between(&self) -> Option<f64> {
        let [a, b] = self.trips();
        Some((a?.mean - b?.mean).abs())
    }

    /// The JSON members of a flow.
    pub(super) fn members(&self) -> RoundTripMembers {
        let ([rtt_a_ns, rtt_b_ns], [handshake_a_ns, handshake_b_ns]) =
            (self.trips(), self.handshakes());
        let rtt_between_mean_ns = self.between();
        RoundTripMembers { rtt_a_ns, rtt_b_ns, rtt_between_mean_ns, handshake_a_ns, handshake_b_ns }
    }

    pub(super) fn row(&self, flow: &FlowKey) -> Vec<String> {
        let none = || "-".to_owned();
        let trips = self.trips().map(|trips| trips.map_or_else(none, |it| mean(it.mean)));
        let between = self.between().map_or_else(none, mean);
        let handshakes = self.handshakes().map(|it| it.map_or_else(none, time));
        [flow.to_string()].into_iter().chain(trips).chain([between]).chain(handshakes).collect()
    }

    /// A sentence for the report.
    pub(super) fn sentence(&self) -> String {
        let from = |point: &str, trips: Option<Summary>| {
            let trips = trips?;
            Some(format!("from {point} {} (min {})", mean(trips.mean), time(trips.min)))
        };
        let [a, b] = self.trips();
        let from: Vec<_> = [from("A", a), from("B", b)].into_iter().flatten().collect();
        let between = self.between().map_or_else(String::new, |between| {
            format!(" Of this, {} are between A and B, both directions together.", mean(between))
        });
        format!("Mean round-trip time to the receiver: {}.{between}", from.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;
    use wirestamp_metrics::Distribution;

    use super::*;

    fn tcp_report(millis: &[i64]) -> Option<TcpReport> {
        let mut trips = Distribution::new();
        millis.iter().for_each(|millis| trips.record(Span::from_millis(*millis)));
        let handshake_ns = millis.first().map(|millis| millis * 1_000_000);
        let rtt_ns = trips.summary();
        Some(TcpReport { segments: 0, retransmitted: 0, rtt_ns, handshake_ns })
    }

    #[test]
    fn time_between_points_is_the_absolute_difference() {
        let (near, far) = (tcp_report(&[10, 12]), tcp_report(&[14, 18]));
        for trip in [RoundTrip([near, far]), RoundTrip([far, near])] {
            assert_eq!(trip.between(), Some(5e6));
            assert_eq!(trip.members().rtt_between_mean_ns, Some(5e6));
        }
        let text = RoundTrip([far, near]).sentence();
        assert!(text.contains("from A 16.0 ms (min 14.0 ms), from B 11.0 ms"), "{text}");
    }

    #[test]
    fn one_point_alone_is_reported() {
        let trip = RoundTrip([None, tcp_report(&[7])]);
        assert_eq!((trip.between(), trip.members().rtt_a_ns), (None, None));
        assert!(trip.sentence().ends_with("from B 7.00 ms (min 7.00 ms)."));
    }
}
