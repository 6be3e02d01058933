//! Observations of a point, sent from probe to collector.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use prost::Message;
use thiserror::Error;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

use super::lists::{differences, missed};
use super::{MachineClock, TestAnswers};
use crate::v1;

/// Observations of a point in a time range.
///
/// Stamps are sent as time and error. The raw value is omitted: it is only meaningful on the same clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservationBatch {
    /// Observations in order of time.
    pub observations: Vec<Observation>,
    /// Capture losses that began before `complete_until`.
    pub missed: Vec<CaptureLoss>,
    /// All packets before this time are in this or earlier batches. No packet is later.
    pub complete_until: Time<Utc>,
    /// Begin of the observation, if the point was not observed before: packets before it are undetermined.
    pub begin: Option<Time<Utc>>,
    /// State of the machine's clock.
    pub clock: MachineClock,
    /// Answers to test packets; none if the point is not an end of an active test, or its probe does not report them.
    pub answers: Option<TestAnswers>,
}

/// Why a message is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// It cannot be decoded.
    #[error("cannot decode observations: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// Its lists differ in length.
    #[error("observations of {packets} packets have {entries} entries of `{list}`")]
    Lengths {
        /// Number of packets.
        packets: usize,
        /// Name of the list.
        list: &'static str,
        /// Length of the list.
        entries: usize,
    },
    /// A flow is not valid.
    #[error("flow {0} of the observations has invalid addresses, ports or protocol")]
    Flow(usize),
    /// The flow of a packet does not exist.
    #[error("packet {packet} of the observations is of flow {flow}, but there are {flows}")]
    NoFlow {
        /// Index of the packet.
        packet: usize,
        /// Index of its flow.
        flow: u32,
        /// Number of flows.
        flows: usize,
    },
    /// A stamp error is too large.
    #[error("packet {0} of observations has an error of {1} ns")]
    Error(usize, u64),
    /// A packet is later than `complete_until`.
    #[error("packet {0} of the observations is later than their end")]
    Late(usize),
    /// A loss interval ends before it begins, or begins after `complete_until`.
    #[error("loss interval {0} of the observations is not valid")]
    Missed(usize),
    /// The begin is after `complete_until`.
    #[error("the observations begin after their end")]
    Begin,
    /// The answers to test packets are not valid.
    #[error("the answers in the observations are not valid: {0}")]
    Answers(&'static str),
    /// The state of the clock is missing or not valid.
    #[error("the observations do not state the error of their clock")]
    Clock,
}

impl ObservationBatch {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (flows, flow) = flows(&self.observations);
        let seen = || self.observations.iter();
        let message = v1::Observations {
            flows,
            identity: seen().map(|it| it.id.0).collect(),
            flow,
            length: seen().map(|it| it.length).collect(),
            time: differences(seen().map(|it| it.stamp.utc.as_nanos())),
            error: seen().map(|it| it.stamp.error.as_nanos().unsigned_abs()).collect(),
            missed: self.missed.iter().map(missed).collect(),
            complete_until: self.complete_until.as_nanos(),
            begin: self.begin.map(Time::as_nanos),
            clock: Some(self.clock.encode()),
            answers: self.answers.as_ref().map(TestAnswers::encode),
        };
        message.encode_to_vec()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let message = v1::Observations::decode(message)?;
        let v1::Observations { identity, flow, length, time, error, .. } = &message;
        let packets = identity.len();
        let lists = [
            ("flow", flow.len()),
            ("length", length.len()),
            ("time", time.len()),
            ("error", error.len()),
        ];
        if let Some((list, entries)) = lists.into_iter().find(|(_, entries)| *entries != packets) {
            return Err(Malformed::Lengths { packets, list, entries });
        }
        let keys = message.flows.iter().enumerate();
        let keys: Vec<_> = keys
            .map(|(place, flow)| key(flow).ok_or(Malformed::Flow(place)))
            .collect::<Result<_, _>>()?;
        let mut now = 0_i64;
        let observation = |packet: usize| -> Result<Observation, Malformed> {
            let key = usize::try_from(flow[packet]).ok().and_then(|place| keys.get(place));
            let no_flow = Malformed::NoFlow { packet, flow: flow[packet], flows: keys.len() };
            now = now.wrapping_add(time[packet]);
            if now > message.complete_until {
                return Err(Malformed::Late(packet));
            }
            let error = error[packet];
            let error = i64::try_from(error).map_err(|_| Malformed::Error(packet, error))?;
            Ok(Observation {
                id: PacketId(identity[packet]),
                flow: *key.ok_or(no_flow)?,
                length: length[packet],
                stamp: stamp(Time::from_nanos(now), Span::from_nanos(error)),
            })
        };
        let observations = (0..packets).map(observation).collect::<Result<_, _>>()?;
        let missed = message.missed.iter().enumerate().map(|(place, it)| {
            let can_be = it.from <= it.until && it.from <= message.complete_until;
            let [from, until] = [it.from, it.until].map(Time::from_nanos);
            let missed = CaptureLoss { from, until, packets: it.packets };
            can_be.then_some(missed).ok_or(Malformed::Missed(place))
        });
        let missed = missed.collect::<Result<_, _>>()?;
        let complete_until = Time::from_nanos(message.complete_until);
        let begin = message.begin.map(Time::from_nanos);
        if begin.is_some_and(|begin| begin > complete_until) {
            return Err(Malformed::Begin);
        }
        let clock = message.clock.as_ref().and_then(MachineClock::decode);
        let clock = clock.ok_or(Malformed::Clock)?;
        let answers = message.answers.as_ref();
        let answers = answers.map(|it| TestAnswers::decode(it, message.complete_until));
        let answers = answers.transpose().map_err(Malformed::Answers)?;
        Ok(Self { observations, missed, complete_until, begin, clock, answers })
    }
}

/// Unique flows of the packets, and the index of each packet's flow.
fn flows(observations: &[Observation]) -> (Vec<v1::Flow>, Vec<u32>) {
    let mut flows = Vec::new();
    let mut places = HashMap::new();
    let place = |it: &Observation| {
        *places.entry(it.flow).or_insert_with(|| {
            flows.push(flow(&it.flow));
            // A message has fewer than 2^32 packets.
            u32::try_from(flows.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let of_packets = observations.iter().map(place).collect();
    (flows, of_packets)
}

fn flow(key: &FlowKey) -> v1::Flow {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    v1::Flow {
        source: bytes(key.source.ip()),
        destination: bytes(key.destination.ip()),
        source_port: key.source.port().into(),
        destination_port: key.destination.port().into(),
        protocol: key.protocol.into(),
    }
}

fn key(flow: &v1::Flow) -> Option<FlowKey> {
    let address = |bytes: &[u8]| -> Option<IpAddr> {
        let v4 = <[u8; 4]>::try_from(bytes).map(|it| Ipv4Addr::from(it).into());
        v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|it| Ipv6Addr::from(it).into())).ok()
    };
    let end =
        |bytes: &[u8], port: u32| Some(SocketAddr::new(address(bytes)?, u16::try_from(port).ok()?));
    let source = end(&flow.source, flow.source_port)?;
    let destination = end(&flow.destination, flow.destination_port)?;
    let is_of_one_family = source.is_ipv4() == destination.is_ipv4();
    let protocol = u8::try_from(flow.protocol).ok()?;
    is_of_one_family.then_some(FlowKey { source, destination, protocol })
}

/// A stamp without its raw value.
pub(crate) fn stamp(utc: Time<Utc>, error: Span) -> Stamp {
    let value = u64::try_from(utc.as_nanos()).unwrap_or(0);
    Stamp { raw: RawStamp { domain: Domain::Realtime, value }, utc, error }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_of(ends: ([u8; 16], [u8; 16]), ports: (u16, u16), protocol: u8, is_v4: bool) -> FlowKey {
        let address = |bytes: [u8; 16]| -> IpAddr {
            let [a, b, c, d, ..] = bytes;
            if is_v4 { Ipv4Addr::new(a, b, c, d).into() } else { Ipv6Addr::from(bytes).into() }
        };
        FlowKey {
            source: SocketAddr::new(address(ends.0), ports.0),
            destination: SocketAddr::new(address(ends.1), ports.1),
            protocol,
        }
    }

    const CLOCK: MachineClock =
        MachineClock { machine: [3; 16], error: Some(Span::from_nanos(50)) };

    prop_compose! {
        fn flow_key()(ends: ([u8; 16], [u8; 16]), ports: (u16, u16), protocol: u8, is_v4: bool)
            -> FlowKey { key_of(ends, ports, protocol, is_v4) }
    }

    proptest! {
        #[test]
        fn observations_round_trip(
            flows in prop::collection::vec(flow_key(), 1..4),
            packets in prop::collection::vec(
                (any::<u64>(), any::<prop::sample::Index>(), any::<u32>(),
                 0..i64::MAX, 0..1_000_000_000_i64), 0..50),
            missed in prop::collection::vec((any::<i64>(), any::<i64>(), any::<u64>()), 0..3),
            begin: Option<i64>, machine: [u8; 16], error in prop::option::of(0..i64::MAX),
            has_answers: bool,
        ) {
            let observations = packets.into_iter().map(|(id, flow, length, time, error)| Observation {
                id: PacketId(id),
                flow: *flow.get(&flows),
                length,
                stamp: stamp(Time::from_nanos(time), Span::from_nanos(error)),
            });
            let missed = missed.into_iter().map(|(one, other, packets)| {
                let [from, until] = [one.min(other), one.max(other)].map(Time::from_nanos);
                CaptureLoss { from, until, packets }
            });
            let seen = ObservationBatch {
                observations: observations.collect(),
                missed: missed.collect(),
                complete_until: Time::from_nanos(i64::MAX),
                begin: begin.map(Time::from_nanos),
                clock: MachineClock { machine, error: error.map(Span::from_nanos) },
                answers: has_answers.then(TestAnswers::default),
            };
            prop_assert_eq!(ObservationBatch::decode(&seen.encode()), Ok(seen));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            if let Ok(seen) = ObservationBatch::decode(&bytes) {
                prop_assert_eq!(ObservationBatch::decode(&seen.encode()), Ok(seen));
            }
        }
    }

    #[test]
    fn encoding_is_compact() {
        let flow = key_of(([1; 16], [2; 16]), (5004, 5004), 17, false);
        let observation = |nth: i64| Observation {
            id: PacketId(u64::MAX - nth.unsigned_abs()),
            flow,
            length: 214,
            stamp: stamp(
                Time::from_nanos(1_800_000_000_000_000_000 + 20_000 * nth),
                Span::from_nanos(90),
            ),
        };
        let seen = ObservationBatch {
            observations: (0..10_000).map(observation).collect(),
            missed: Vec::new(),
            complete_until: Time::from_nanos(1_800_000_001_000_000_000),
            begin: None,
            clock: CLOCK,
            answers: None,
        };
        // Identity 8, time 3, length 2, flow and error 1 each.
        assert!(seen.encode().len() < 15 * 10_000 + 200, "{}", seen.encode().len());
    }

    #[test]
    fn invalid_observations_are_rejected() {
        let whole = || v1::Observations {
            flows: vec![flow(&key_of(([1; 16], [2; 16]), (1, 2), 17, true))],
            identity: vec![7],
            flow: vec![0],
            length: vec![60],
            time: vec![1],
            error: vec![1],
            missed: Vec::new(),
            complete_until: 2,
            begin: None,
            clock: Some(CLOCK.encode()),
            answers: None,
        };
        let refused = |change: &dyn Fn(&mut v1::Observations)| {
            let mut message = whole();
            change(&mut message);
            ObservationBatch::decode(&message.encode_to_vec()).unwrap_err().to_string()
        };
        ObservationBatch::decode(&whole().encode_to_vec()).unwrap();
        assert!(refused(&|it| it.length.clear()).contains("1 packets have 0 entries of `length`"));
        assert!(refused(&|it| it.flow[0] = 1).contains("is of flow 1, but there are 1"));
        assert!(refused(&|it| it.flows[0].source = vec![1; 5]).contains("flow 0"));
        assert!(refused(&|it| it.flows[0].source = vec![1; 16]).contains("flow 0"));
        assert!(refused(&|it| it.flows[0].source_port = 65_536).contains("flow 0"));
        assert!(refused(&|it| it.flows[0].protocol = 256).contains("flow 0"));
        assert!(
            refused(&|it| it.error[0] = u64::MAX).contains("an error of 18446744073709551615 ns")
        );
        assert!(refused(&|it| it.time[0] = 3).contains("is later than their end"));
        for (from, until) in [(1, 0), (3, 4)] {
            let missed = v1::Missed { from, until, packets: 1 };
            assert!(
                refused(&|it| it.missed.push(missed))
                    .contains("loss interval 0 of the observations")
            );
        }
        assert!(refused(&|it| it.begin = Some(3)).contains("begin after their end"));
        assert!(refused(&|it| it.clock = None).contains("the error of their clock"));
        let sending = Some(u64::MAX);
        let answers = || Some(v1::TestAnswers { sending, ..v1::TestAnswers::default() });
        assert!(refused(&|it| it.answers = answers()).contains("a sending time is too long"));
        let short = |it: &mut v1::Observations| it.clock.as_mut().unwrap().machine.truncate(9);
        assert!(refused(&short).contains("the error of their clock"));
        assert!(
            ObservationBatch::decode(&[0xff]).unwrap_err().to_string().contains("cannot decode")
        );
    }
}
