//! Packets that foreign exporters report (PSAMP, RFC 5476 section 6.4.2): a hash of each, and when it was observed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Missed, Observation};
use wirestamp_packet::{FlowKey, PacketId};

use super::{Element, Message, Order, Record, element};
use crate::observations::stamp;
use crate::{MachineClock, Seen};

/// Makes of the packet reports of one observation point what a collector takes.
///
/// A packet is recognised by its digest. Both points of a path have to hash the same fields by the same function,
/// and to choose the same packets. A digest of 32 bits is shared by other packets now and then: the correlator
/// then matches them in order.
#[derive(Clone, Debug)]
pub struct Digests {
    point: Option<u64>,
    clock: MachineClock,
    complete_until: Option<Time<Utc>>,
    /// Records that did not come since the last packet, and whether nobody knows how many.
    missed: u64,
    is_anew: bool,
    not_taken: NotTaken,
}

/// Records that made no observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotTaken {
    /// They report no packet, or do not say when it was observed or what its digest is.
    pub other: u64,
    /// Packets that were observed before what was told last. They are told of as missed.
    pub late: u64,
    /// Packets that were observed later than they were reported.
    pub early: u64,
}

/// When a packet can have been observed at the latest: the header counts whole seconds.
const SECOND: Span = Span::from_secs(1);

impl Digests {
    /// Of an observation point of a domain, or of all of them, on a machine with this clock. Exporters do not say
    /// how right theirs is.
    #[must_use]
    pub fn new(point: Option<u64>, clock: MachineClock) -> Self {
        let not_taken = NotTaken::default();
        Self { point, clock, complete_until: None, missed: 0, is_anew: true, not_taken }
    }

    /// What was not taken so far.
    #[must_use]
    pub fn not_taken(&self) -> NotTaken {
        self.not_taken
    }

    /// What a message says that was seen; none if no packet was. Messages are to be of one observation domain.
    #[must_use]
    pub fn take(&mut self, message: &Message<'_>) -> Option<Seen> {
        match message.order {
            Order::First | Order::Back => self.is_anew = true,
            Order::Missed(records) => self.missed += u64::from(records),
        }
        let sent = Time::from_nanos(0) + Span::from_secs(i64::from(message.second));
        let mut observations: Vec<_> =
            message.records.iter().filter_map(|it| self.observation(it)).collect();
        let reported = observations.len();
        observations.retain(|it| it.stamp.utc <= sent + SECOND);
        self.not_taken.early += (reported - observations.len()) as u64;
        // Exporters need not keep to the order.
        observations.sort_by_key(|it| it.stamp.utc);
        self.seen(observations)
    }

    fn seen(&mut self, mut observations: Vec<Observation>) -> Option<Seen> {
        let (first, last) = (observations.first()?.stamp.utc, observations.last()?.stamp.utc);
        let known_until = self.complete_until.unwrap_or(first);
        let late = observations.partition_point(|it| it.stamp.utc < known_until);
        observations.drain(..late);
        let late = late as u64;
        self.not_taken.late += late;
        let complete_until = known_until.max(last);
        self.complete_until = Some(complete_until);
        let until = observations.first().map_or(complete_until, |it| it.stamp.utc);
        let missed = std::mem::take(&mut self.missed);
        let missed = Missed { from: known_until, until, packets: missed };
        let too_late = Missed { from: first, until: known_until, packets: late };
        Some(Seen {
            observations,
            missed: [too_late, missed].into_iter().filter(|it| it.packets > 0).collect(),
            complete_until,
            begin: std::mem::take(&mut self.is_anew).then_some(until),
            clock: self.clock,
        })
    }

    /// That of a record, if it reports a packet of the point.
    fn observation(&mut self, record: &Record<'_>) -> Option<Observation> {
        let point = record.unsigned(element::OBSERVATION_POINT_ID);
        if self.point.is_some() && point != self.point {
            return None;
        }
        let observation = observation(record);
        self.not_taken.other += u64::from(observation.is_none());
        observation
    }
}

fn observation(record: &Record<'_>) -> Option<Observation> {
    let id = PacketId(record.unsigned(element::DIGEST_HASH_VALUE)?);
    let (time, error) = time(record)?;
    Some(Observation { id, flow: flow(record), length: length(record), stamp: stamp(time, error) })
}

/// When it was observed, and how exactly that can be said.
fn time(record: &Record<'_>) -> Option<(Time<Utc>, Span)> {
    let nanos = || Some((record.time(element::OBSERVATION_TIME_NANOSECONDS)?, Span::from_nanos(1)));
    let micros =
        || Some((record.time(element::OBSERVATION_TIME_MICROSECONDS)?, Span::from_micros(1)));
    let millis = || {
        let millis = record.unsigned(element::OBSERVATION_TIME_MILLISECONDS)?;
        let time = Time::from_nanos(0) + Span::from_millis(i64::try_from(millis).ok()?);
        Some((time, Span::from_millis(1)))
    };
    nanos().or_else(micros).or_else(millis)
}

/// Of the frame, or if that is not told of the IP packet in it; 0 if neither is.
fn length(record: &Record<'_>) -> u32 {
    let frame = record.unsigned(element::DATA_LINK_FRAME_SIZE);
    let length = frame.or_else(|| record.unsigned(element::IP_TOTAL_LENGTH));
    length.map_or(0, |length| u32::try_from(length).unwrap_or(u32::MAX))
}

/// What is told of it; zeros for the rest.
fn flow(record: &Record<'_>) -> FlowKey {
    let address = |v4: Element, v6: Element| {
        record.address(v4).filter(IpAddr::is_ipv4).or_else(|| record.address(v6))
    };
    let source = address(element::SOURCE_IPV4_ADDRESS, element::SOURCE_IPV6_ADDRESS);
    let destination = address(element::DESTINATION_IPV4_ADDRESS, element::DESTINATION_IPV6_ADDRESS);
    // Only ends of one family make a flow.
    let ends = source.zip(destination).filter(|(one, other)| one.is_ipv4() == other.is_ipv4());
    let unknown = (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into());
    let (source, destination) = ends.unwrap_or(unknown);
    let small = |element| u16::try_from(record.unsigned(element)?).ok();
    let port = |element| small(element).unwrap_or(0);
    let protocol = small(element::PROTOCOL_IDENTIFIER).and_then(|it| u8::try_from(it).ok());
    FlowKey {
        source: SocketAddr::new(source, port(element::SOURCE_TRANSPORT_PORT)),
        destination: SocketAddr::new(destination, port(element::DESTINATION_TRANSPORT_PORT)),
        protocol: protocol.unwrap_or(0),
    }
}
