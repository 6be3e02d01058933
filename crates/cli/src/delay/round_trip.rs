//! The round trips of TCP at both points, where both directions were seen.
//!
//! Each point takes them by its own stamps alone, so that no two clocks are compared.

use std::collections::HashMap;

use serde_json::{Value, json};
use wirestamp_metrics::Summary;
use wirestamp_metrics::flow::TcpReport;
use wirestamp_packet::FlowKey;
use wirestamp_session::PointState;

use super::findings::Findings;
use crate::output::{mean, time};
use crate::table::table;

/// The columns of [`RoundTrip::row`].
const HEADER: [&str; 6] =
    ["mean round trip", "from A", "from B", "between", "handshake A", "handshake B"];

/// The round trips of each flow of TCP that has some.
#[derive(Default)]
pub(super) struct RoundTrips(HashMap<FlowKey, RoundTrip>);

/// From A, and from B, to the receiver of a flow and back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip([Option<TcpReport>; 2]);

impl RoundTrips {
    /// What A and B saw.
    pub(super) fn seen(sights: &mut [PointState; 2]) -> Self {
        let mut trips: HashMap<FlowKey, RoundTrip> = HashMap::new();
        for (point, sight) in sights.iter_mut().enumerate() {
            for report in sight.flows() {
                if report.tcp.is_some_and(|tcp| tcp.rtt_ns.is_some()) {
                    trips.entry(report.flow()).or_default().0[point] = report.tcp;
                }
            }
        }
        Self(trips)
    }

    /// Those of a flow.
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

    /// How much of it passes between the points, there and back, in nanoseconds: the difference of the
    /// means, whichever point is nearer to the receiver. Means are exact, percentiles are not.
    fn between(&self) -> Option<f64> {
        let [a, b] = self.trips();
        Some((a?.mean - b?.mean).abs())
    }

    /// The members of a flow in the document.
    pub(super) fn document(&self) -> Value {
        let ([a, b], [handshake_a, handshake_b]) = (self.trips(), self.handshakes());
        json!({
            "rtt_a_ns": a,
            "rtt_b_ns": b,
            "rtt_between_mean_ns": self.between(),
            "handshake_a_ns": handshake_a,
            "handshake_b_ns": handshake_b,
        })
    }

    fn row(&self, flow: &FlowKey) -> Vec<String> {
        let none = || "-".to_owned();
        let trips = self.trips().map(|trips| trips.map_or_else(none, |it| mean(it.mean)));
        let between = self.between().map_or_else(none, mean);
        let handshakes = self.handshakes().map(|it| it.map_or_else(none, time));
        [flow.to_string()].into_iter().chain(trips).chain([between]).chain(handshakes).collect()
    }

    /// What a report says of it.
    pub(super) fn statement(&self) -> String {
        let from = |point: &str, trips: Option<Summary>| {
            let trips = trips?;
            Some(format!("from {point} {} (least {})", mean(trips.mean), time(trips.min)))
        };
        let [a, b] = self.trips();
        let from: Vec<_> = [from("A", a), from("B", b)].into_iter().flatten().collect();
        let between = self.between().map_or_else(String::new, |between| {
            format!(" Between A and B, there and back, {} of it pass.", mean(between))
        });
        format!("To the receiver and back, on average: {}.{between}", from.join(", "))
    }
}

impl Findings {
    /// A table of the round trips, if there are any.
    pub(super) fn round_trips(&self) -> Option<String> {
        let flows = self.flows.flows();
        let rows: Vec<_> = flows
            .iter()
            .filter_map(|(flow, _)| Some(self.round_trips.of(flow)?.row(flow)))
            .collect();
        (!rows.is_empty()).then(|| {
            format!(
                "{}Round trips are those of TCP from a point to the receiver and back, by the \
                 clock of that point. What is between A and B is the difference.\n",
                table(&HEADER, &rows)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;
    use wirestamp_metrics::Distribution;

    use super::*;

    fn seen(millis: &[i64]) -> Option<TcpReport> {
        let mut trips = Distribution::new();
        millis.iter().for_each(|millis| trips.record(Span::from_millis(*millis)));
        let handshake_ns = millis.first().map(|millis| millis * 1_000_000);
        Some(TcpReport { retransmitted: 0, rtt_ns: trips.summary(), handshake_ns })
    }

    #[test]
    fn what_passes_between_the_points_is_the_difference_whichever_is_nearer() {
        let (near, far) = (seen(&[10, 12]), seen(&[14, 18]));
        for trip in [RoundTrip([near, far]), RoundTrip([far, near])] {
            assert_eq!(trip.between(), Some(5e6));
            assert_eq!(trip.document()["rtt_between_mean_ns"], 5e6);
        }
        let said = RoundTrip([far, near]).statement();
        assert!(said.contains("from A 16.0 ms (least 14.0 ms), from B 11.0 ms"), "{said}");
    }

    #[test]
    fn one_point_alone_tells_its_part() {
        let trip = RoundTrip([None, seen(&[7])]);
        assert_eq!((trip.between(), &trip.document()["rtt_a_ns"]), (None, &Value::Null));
        assert!(trip.statement().ends_with("from B 7.00 ms (least 7.00 ms)."));
    }
}
