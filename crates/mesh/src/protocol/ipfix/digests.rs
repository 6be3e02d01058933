//! Packets that foreign exporters report (PSAMP, RFC 5476 section 6.4.2): a hash of each, and when it was observed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

use super::{Element, Message, Order, Record, element};
use crate::protocol::observations::stamp;
use crate::protocol::{MachineClock, ObservationBatch};

/// Makes of the packet reports of one observation point what a collector takes.
///
/// A packet is recognised by its digest. Both points of a path have to hash the same fields by the same function,
/// and to choose the same packets. A digest of 32 bits is shared by other packets now and then: the correlator
/// then matches them in order.
///
/// Exporters do not say until when they have told everything, and datagrams overtake each other. So what is
/// reported is held until the exporter is [`HELD_BACK`] further; what comes later still was missed. What did not
/// come, by the sequence numbers, was missed in the time from which it can be.
#[derive(Clone, Debug)]
pub struct Digests {
    point: Option<u64>,
    clock: MachineClock,
    /// In the order in which they came.
    held: Vec<Observation>,
    /// What did not come and was not told of.
    gaps: Vec<CaptureLoss>,
    /// When the newest message was sent.
    newest: Option<Time<Utc>>,
    /// Everything before is told.
    known_until: Option<Time<Utc>>,
    /// Since when messages are known, if not of those before.
    begin: Option<Time<Utc>>,
    /// Messages were left out in front of the next.
    is_interrupted: bool,
    not_taken: NotTaken,
}

/// Records that made no observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotTaken {
    /// They report no packet, or do not say when it was observed, or at which point; those with a digest are told of
    /// as missed.
    pub other: u64,
    /// Packets that were observed before what was told last. They are told of as missed.
    pub late: u64,
    /// Packets that were observed later than they were reported. They are told of as missed.
    pub early: u64,
    /// Packets that there was no room for. They are told of as missed.
    pub given_up: u64,
}

/// When a packet can have been observed at the latest: the header counts whole seconds.
const SECOND: Span = Span::from_secs(1);

/// How long a report may be on its way, from when the packet was observed until everything that was sent
/// before another message has come: exporters gather them in messages, and tell when these were sent in whole
/// seconds.
pub const HELD_BACK: Span = Span::from_secs(2);

/// Gaps that are told from each other.
const MOST_GAPS: usize = 256;

impl Digests {
    /// Of an observation point of a domain, or of all of them, on a machine with this clock. Exporters do not say
    /// how right theirs is.
    #[must_use]
    pub fn new(point: Option<u64>, clock: MachineClock) -> Self {
        Self {
            point,
            clock,
            held: Vec::new(),
            gaps: Vec::new(),
            newest: None,
            known_until: None,
            begin: None,
            is_interrupted: false,
            not_taken: NotTaken::default(),
        }
    }

    /// What was not taken so far.
    #[must_use]
    pub fn not_taken(&self) -> NotTaken {
        self.not_taken
    }

    /// How many packets are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// When the newest message was sent, by its exporter's clock.
    #[must_use]
    pub fn newest(&self) -> Option<Time<Utc>> {
        self.newest
    }

    /// Takes the reports of a message. Messages are to be of one observation domain.
    pub fn take(&mut self, message: &Message<'_>) {
        let sent = Time::from_nanos(0) + Span::from_secs(i64::from(message.second));
        let before = self.newest.unwrap_or(sent);
        let order = match message.order {
            // Others may have heard of the exporter for long; here this is the first message.
            _ if self.newest.is_none() => Order::First,
            Order::Missed(_) if self.is_interrupted => Order::First,
            order => order,
        };
        match order {
            Order::Copy => return,
            // Of what was observed until then, some may have been told in messages that nobody heard.
            Order::First | Order::Back => {
                self.begin = Some(sent + SECOND);
                self.is_interrupted = false;
            }
            Order::Missed(0) => {}
            Order::Missed(records) => self.miss_until(before.min(sent), sent, records.into()),
            Order::Late(records) => self.find(records.into()),
        }
        self.newest = Some(before.max(sent));
        for record in &message.records {
            self.look(record, sent);
        }
    }

    /// What is known for good by now and was not told yet.
    #[must_use]
    pub fn ready(&mut self) -> Option<ObservationBatch> {
        let behind = self.newest? - HELD_BACK;
        // What is missing may come yet, until the gap is as old.
        let open = self.gaps.iter().filter(|gap| gap.until > behind).map(|gap| gap.from).min();
        let until = open.map_or(behind, |open| open.min(behind));
        let is_new = self.known_until.is_none_or(|known| until > known);
        let has_begun = self.begin.is_none_or(|begin| until >= begin);
        (is_new && has_begun).then(|| {
            let begin = self.begin.take();
            self.tell(until, begin)
        })
    }

    /// What is held, and that nothing is known of what was observed from what was told last until a time: no
    /// message came. None if that is known.
    #[must_use]
    pub fn close(&mut self, until: Time<Utc>) -> Option<ObservationBatch> {
        let last = self.held.iter().map(|it| it.stamp.utc).max();
        let until = last.map_or(until, |last| until.max(last + Span::from_nanos(1)));
        let until = self.begin.map_or(until, |begin| until.max(begin));
        self.known_until.is_none_or(|known| until > known).then(|| {
            self.begin = None;
            self.tell(until, Some(until))
        })
    }

    /// Gives up what is held.
    pub fn give_up(&mut self) {
        let times = || self.held.iter().map(|it| it.stamp.utc);
        if let Some((first, last)) = times().min().zip(times().max()) {
            let packets = self.held.len() as u64;
            self.not_taken.given_up += packets;
            self.miss(first, last, packets);
            self.held = Vec::new();
        }
    }

    /// Nothing is known of what was observed before the newest message: what was told did not get to where it is
    /// kept.
    pub fn begin_anew(&mut self) {
        self.begin = self.newest.map(|newest| newest + SECOND);
    }

    /// A message was left out: of what was observed until the next is sent, some is not known.
    pub fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Everything before a time is settled: what is reported of it comes too late.
    pub fn settled(&mut self, until: Time<Utc>) {
        self.known_until = self.known_until.max(Some(until));
    }

    /// Gives up what is held, and begins as if nothing had come: the exporter's clock was set back, and what was told by
    /// it before says nothing of what comes.
    pub fn reset(&mut self) {
        self.give_up();
        *self = Self { not_taken: self.not_taken, ..Self::new(self.point, self.clock) };
    }

    /// What was observed before a time.
    fn tell(&mut self, until: Time<Utc>, begin: Option<Time<Utc>>) -> ObservationBatch {
        let is_before = |it: &mut Observation| it.stamp.utc < until;
        let mut observations: Vec<_> = self.held.extract_if(.., is_before).collect();
        // Exporters need not keep to the order.
        observations.sort_by_key(|it| it.stamp.utc);
        let missed = self.gaps.extract_if(.., |gap| gap.from < until).collect();
        self.known_until = Some(until);
        ObservationBatch { observations, missed, complete_until: until, begin, clock: self.clock }
    }

    fn hold(&mut self, observation: Observation, sent: Time<Utc>) {
        let time = observation.stamp.utc;
        match self.known_until {
            // When it really was observed, nobody knows.
            _ if time > sent + SECOND => {
                self.not_taken.early += 1;
                self.miss_until(sent, sent, 1);
            }
            Some(known) if time < known => {
                self.not_taken.late += 1;
                self.miss(time, known, 1);
            }
            _ => self.held.push(observation),
        }
    }

    /// Takes note of packets that were reported from one time until another, and will not be told of.
    fn miss_until(&mut self, from: Time<Utc>, sent: Time<Utc>, packets: u64) {
        let from = from - HELD_BACK;
        let from = self.known_until.map_or(from, |known| from.max(known));
        self.miss(from, from.max(sent + SECOND), packets);
    }

    /// Takes note of packets that will not be told of.
    fn miss(&mut self, from: Time<Utc>, until: Time<Utc>, packets: u64) {
        let is_full = self.gaps.len() >= MOST_GAPS;
        match self.gaps.iter_mut().find(|gap| is_full || gap.until == until) {
            Some(gap) => {
                gap.from = gap.from.min(from);
                gap.until = gap.until.max(until);
                gap.packets = gap.packets.saturating_add(packets);
            }
            None => self.gaps.push(CaptureLoss { from, until, packets }),
        }
    }

    /// So many records that were missing have come.
    fn find(&mut self, mut records: u64) {
        for gap in self.gaps.iter_mut().rev() {
            let found = gap.packets.min(records);
            gap.packets -= found;
            records -= found;
        }
        self.gaps.retain(|gap| gap.packets > 0);
    }

    /// Takes the report of a packet, if it can be of the point.
    fn look(&mut self, record: &Record<'_>, sent: Time<Utc>) {
        let point = record.unsigned(element::OBSERVATION_POINT_ID);
        let is_of_it = self.point.is_none() || point == self.point;
        if !is_of_it && point.is_some() {
            return;
        }
        if let Some(observation) = observation(record).filter(|_| is_of_it) {
            return self.hold(observation, sent);
        }
        self.not_taken.other += 1;
        // A packet all the same, of which is not said when it came, or where.
        if record.unsigned(element::DIGEST_HASH_VALUE).is_some() {
            self.miss_until(sent, sent, 1);
        }
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
