//! The measurement second by second (`--per-second`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_clock::Span;
use wirestamp_metrics::{Outcome, Point};

/// Max number of seconds that are kept: a week.
const MAX_SECONDS: usize = 604_800;

const SECOND_NS: i64 = 1_000_000_000;

/// Packets and delays of each second.
#[derive(Clone, Debug, Default)]
pub(super) struct Seconds {
    seconds: BTreeMap<i64, Second>,
    omitted: u64,
}

/// Packets and delays of a second.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    matched: u64,
    lost: u64,
    duplicated: u64,
    unexpected: u64,
    undetermined_sent: u64,
    undetermined_received: u64,
    delays: Option<Delays>,
}

#[derive(Clone, Copy, Debug)]
struct Delays {
    min: i64,
    max: i64,
    sum: i128,
}

/// The measurement second by second. Seconds without a packet are left out.
#[derive(Serialize, JsonSchema)]
pub(super) struct SecondsDocument {
    /// The seconds in order, at most a week of them.
    seconds: Vec<SecondDocument>,
    /// Packets of further seconds.
    packets_omitted: u64,
}

/// A second of the measurement. A packet belongs to the second in which A observed it; one that only B observed, to the second
/// in which B did.
#[derive(Serialize, JsonSchema)]
struct SecondDocument {
    /// Begin, in nanoseconds since 1970 UTC.
    begin_ns: i64,
    /// Packets observed at A.
    sent: u64,
    /// Those of them that B observed too.
    matched: u64,
    /// Those of them that did not arrive in time. Null if the loss is unknown.
    lost: Option<u64>,
    /// Copies observed at B.
    duplicated: u64,
    /// Packets observed at B only.
    unexpected: u64,
    /// Packets of A or B whose outcome is unknown, because a capture lost packets, or did not run.
    undetermined: u64,
    /// Min one-way delay, in nanoseconds. Null without matched packets, and if one-way delays are unknown.
    delay_min_ns: Option<i64>,
    /// Mean one-way delay, in nanoseconds. Null as the min.
    delay_mean_ns: Option<f64>,
    /// Max one-way delay, in nanoseconds. Null as the min.
    delay_max_ns: Option<i64>,
}

impl Seconds {
    /// Adds the outcome of a packet. The loss of one that left A before or after the capture of B is undetermined
    /// (`is_outside`).
    pub(super) fn record(&mut self, outcome: &Outcome, is_outside: bool) {
        let time = match outcome {
            Outcome::Matched { sent, .. }
            | Outcome::Lost { sent, .. }
            | Outcome::Duplicated { sent, .. } => sent.stamp.utc,
            Outcome::Unexpected { received } => received.stamp.utc,
            Outcome::Undetermined { observation, .. } => observation.stamp.utc,
            Outcome::Identical { .. } => return,
        };
        let begin = time.as_nanos().div_euclid(SECOND_NS).saturating_mul(SECOND_NS);
        if self.seconds.len() >= MAX_SECONDS && !self.seconds.contains_key(&begin) {
            self.omitted += 1;
            return;
        }
        let second = self.seconds.entry(begin).or_default();
        match outcome {
            Outcome::Matched { delay, .. } => {
                second.matched += 1;
                second.add(*delay);
            }
            Outcome::Lost { .. } if is_outside => second.undetermined_sent += 1,
            Outcome::Lost { .. } => second.lost += 1,
            Outcome::Duplicated { .. } => second.duplicated += 1,
            Outcome::Unexpected { .. } => second.unexpected += 1,
            Outcome::Undetermined { point: Point::A, .. } => second.undetermined_sent += 1,
            Outcome::Undetermined { point: Point::B, .. } => second.undetermined_received += 1,
            Outcome::Identical { .. } => {}
        }
    }

    /// The document, without losses and delays that the measurement does not know.
    pub(super) fn document(&self, knows_loss: bool, knows_delays: bool) -> SecondsDocument {
        let second = |(begin_ns, it): (&i64, &Second)| {
            let delays = it.delays.filter(|_| knows_delays);
            SecondDocument {
                begin_ns: *begin_ns,
                sent: it.matched + it.lost + it.undetermined_sent,
                matched: it.matched,
                lost: knows_loss.then_some(it.lost),
                duplicated: it.duplicated,
                unexpected: it.unexpected,
                undetermined: it.undetermined_sent + it.undetermined_received,
                delay_min_ns: delays.map(|delays| delays.min),
                delay_mean_ns: delays.map(|delays| mean(delays.sum, it.matched)),
                delay_max_ns: delays.map(|delays| delays.max),
            }
        };
        let seconds = self.seconds.iter().map(second).collect();
        SecondsDocument { seconds, packets_omitted: self.omitted }
    }
}

impl Second {
    fn add(&mut self, delay: Span) {
        let nanos = delay.as_nanos();
        let before = self.delays.unwrap_or(Delays { min: nanos, max: nanos, sum: 0 });
        self.delays = Some(Delays {
            min: before.min.min(nanos),
            max: before.max.max(nanos),
            sum: before.sum + i128::from(nanos),
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn mean(sum: i128, count: u64) -> f64 {
    sum as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Stamp, Time};
    use wirestamp_metrics::Observation;
    use wirestamp_packet::{LinkType, Packet};

    use super::*;

    /// A packet observed at this time.
    fn observation(nanos: i64) -> Observation {
        let ip = [0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let packet =
            [&ip[..], &[0x13, 0x88, 0x13, 0x88, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(nanos), error: Span::ZERO };
        let packet = Packet::parse(LinkType::Ip, &packet).unwrap();
        Observation::of(&packet, 36, stamp).unwrap()
    }

    #[test]
    fn packets_belong_to_the_second_in_which_they_left() {
        let mut seconds = Seconds::default();
        let matched = |sent: i64, delay: i64| Outcome::Matched {
            sent: observation(sent),
            received: observation(sent + delay),
            sequence: 0,
            delay: Span::from_nanos(delay),
            error: Span::ZERO,
            reordered: false,
            since_previous: None,
            until_next: None,
        };
        seconds.record(&matched(SECOND_NS - 1, 500), false);
        seconds.record(&matched(SECOND_NS - 1, 1_500), false);
        let lost = Outcome::Lost { sent: observation(3 * SECOND_NS), sequence: 1 };
        seconds.record(&lost, false);
        seconds.record(&lost, true);
        seconds.record(&Outcome::Unexpected { received: observation(-1) }, false);
        let of = |loss, delays| serde_json::to_value(seconds.document(loss, delays)).unwrap();
        let known = of(true, true);
        let found = known["seconds"].as_array().unwrap();
        let begins: Vec<_> = found.iter().map(|second| &second["begin_ns"]).collect();
        assert_eq!(
            begins,
            [-SECOND_NS, 0, 3 * SECOND_NS].map(serde_json::Value::from).iter().collect::<Vec<_>>()
        );
        assert_eq!((&found[1]["delay_mean_ns"], &found[1]["matched"]), (&1000.0.into(), &2.into()));
        let third = &found[2];
        assert_eq!(
            (&third["sent"], &third["lost"], &third["undetermined"]),
            (&2.into(), &1.into(), &1.into())
        );
        assert!(third["delay_min_ns"].is_null());
        let unknown = of(false, false);
        assert!(
            unknown["seconds"][2]["lost"].is_null()
                && unknown["seconds"][1]["delay_max_ns"].is_null()
        );
    }
}
