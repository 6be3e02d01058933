//! Synthetic observations.

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{Config, Correlator, Observation, Outcome, Point};
use wirestamp_packet::{FlowKey, PacketId};

pub(crate) const TIMEOUT_MS: i64 = 1000;
pub(crate) const SKEW_MS: i64 = 100;
/// The error of every stamp.
pub(crate) const ERROR_NS: i64 = 70;

/// Memory for `packets` packets in flight, and as many waiting at B.
pub(crate) fn config(packets: usize) -> Config {
    Config {
        timeout: Span::from_millis(TIMEOUT_MS),
        memory: packets * 1000,
        skew: Span::from_millis(SKEW_MS),
    }
}

pub(crate) fn flow(number: u16) -> FlowKey {
    FlowKey {
        source: ([10, 77, 1, 1], 5000 + number).into(),
        destination: ([10, 77, 2, 2], 6000).into(),
        protocol: 17,
    }
}

/// Packet `id` of flow `flow_number`, seen at `millis` milliseconds.
pub(crate) fn seen_in(flow_number: u16, id: u64, millis: i64) -> Observation {
    let utc = Time::from_nanos(0) + Span::from_millis(millis);
    let ticks = utc.as_nanos().unsigned_abs();
    Observation {
        id: PacketId(id),
        flow: flow(flow_number),
        length: 100,
        stamp: Stamp {
            raw: RawStamp { domain: Domain::Monotonic, value: ticks },
            utc,
            error: Span::from_nanos(ERROR_NS),
        },
    }
}

/// Input of a correlator.
pub(crate) trait Input {
    fn apply(self, correlator: &mut Correlator, sink: &mut impl FnMut(Outcome));
}

impl Input for (Point, Observation) {
    fn apply(self, correlator: &mut Correlator, sink: &mut impl FnMut(Outcome)) {
        correlator.observe(self.0, self.1, sink);
    }
}

/// Outcomes of these inputs, in this order.
pub(crate) fn outcomes<T: Input>(
    packets: usize,
    inputs: impl IntoIterator<Item = T>,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut sink = |outcome| outcomes.push(outcome);
    let mut correlator = Correlator::new(config(packets));
    for input in inputs {
        input.apply(&mut correlator, &mut sink);
    }
    correlator.finish(&mut sink);
    outcomes
}
