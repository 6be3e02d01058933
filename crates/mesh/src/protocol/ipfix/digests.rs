//! Packet reports of foreign exporters (PSAMP, RFC 5476 section 6.4.2): a hash and an observation time for each packet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

use super::{Element, Message, Order, Record, element};
use crate::protocol::observations::stamp;
use crate::protocol::{MachineClock, ObservationBatch};

/// Turns packet reports of an observation point into observation batches.
///
/// Packets are identified by their digests. Both points of a path must hash the same fields with the same function, and
/// select the same packets. 32-bit digests sometimes collide; the correlator then matches in order.
///
/// Exporters do not state up to which time their reports are complete, and datagrams overtake each other. So reports
/// are held until the exporter's time is [`HELD_BACK`] later; later reports count as missed. Records lost by sequence
/// number count as missed within their possible time.
#[derive(Clone, Debug)]
pub struct Digests {
    point: Option<u64>,
    clock: MachineClock,
    /// In order of arrival.
    held: Vec<Observation>,
    /// Records that were lost and are not reported yet.
    gaps: Vec<CaptureLoss>,
    /// Export time of the newest message.
    newest: Option<Time<Utc>>,
    /// End of the last batch.
    known_until: Option<Time<Utc>>,
    /// Begin of the known time, if there is a gap before it.
    begin: Option<Time<Utc>>,
    /// Messages before the next one were skipped.
    is_interrupted: bool,
    not_taken: NotTaken,
}

/// Rejected records, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotTaken {
    /// Records without a packet, an observation time or the point; those with a digest count as missed.
    pub other: u64,
    /// Packets observed before the end of the last batch. Counted as missed.
    pub late: u64,
    /// Packets observed after their report. Counted as missed.
    pub early: u64,
    /// Packets dropped for lack of memory. Counted as missed.
    pub dropped: u64,
}

/// Resolution of export times: the header counts whole seconds.
const SECOND: Span = Span::from_secs(1);

/// Max time between the observation of a packet and the export time of its message. Exporters collect reports in
/// messages, and state the export time in whole seconds.
pub const HELD_BACK: Span = Span::from_secs(2);

/// Max number of separate gaps.
const MAX_GAPS: usize = 256;

impl Digests {
    /// For one observation point of a domain or all of them, on a machine with this clock. Exporters do not state the
    /// error of theirs.
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

    /// Rejected records so far.
    #[must_use]
    pub fn not_taken(&self) -> NotTaken {
        self.not_taken
    }

    /// Number of packets held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Export time of the newest message, by its exporter's clock.
    #[must_use]
    pub fn newest(&self) -> Option<Time<Utc>> {
        self.newest
    }

    /// Takes the reports of a message. All messages must be of one observation domain.
    pub fn take(&mut self, message: &Message<'_>) {
        let sent = Time::from_nanos(0) + Span::from_secs(i64::from(message.second));
        let before = self.newest.unwrap_or(sent);
        let order = match message.order {
            // The session may have received messages before, but this point has not.
            _ if self.newest.is_none() => Order::First,
            Order::Missed(_) if self.is_interrupted => Order::First,
            order => order,
        };
        match order {
            Order::Copy => return,
            // Reports of packets before this may have been in earlier messages.
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

    /// The next complete batch, if any.
    #[must_use]
    pub fn ready(&mut self) -> Option<ObservationBatch> {
        let behind = self.newest? - HELD_BACK;
        // Missing records may still arrive, until the gap is `HELD_BACK` old.
        let open = self.gaps.iter().filter(|gap| gap.until > behind).map(|gap| gap.from).min();
        let until = open.map_or(behind, |open| open.min(behind));
        let is_new = self.known_until.is_none_or(|known| until > known);
        let has_begun = self.begin.is_none_or(|begin| until >= begin);
        (is_new && has_begun).then(|| {
            let begin = self.begin.take();
            self.tell(until, begin)
        })
    }

    /// All held packets, with the time up to `until` as not observed, because no message arrived. None if that time is
    /// reported already.
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

    /// Drops all held packets.
    pub fn give_up(&mut self) {
        let times = || self.held.iter().map(|it| it.stamp.utc);
        if let Some((first, last)) = times().min().zip(times().max()) {
            let packets = self.held.len() as u64;
            self.not_taken.dropped += packets;
            self.miss(first, last, packets);
            self.held = Vec::new();
        }
    }

    /// Declares the time before the newest message as not observed: the last batch was not stored.
    pub fn begin_anew(&mut self) {
        self.begin = self.newest.map(|newest| newest + SECOND);
    }

    /// A message was skipped: the time until the next one is not completely observed.
    pub fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// The results before `until` are final: later reports about it are rejected.
    pub fn settled(&mut self, until: Time<Utc>) {
        self.known_until = self.known_until.max(Some(until));
    }

    /// Drops all held packets and all state: the exporter's clock was set back, so earlier times are meaningless.
    pub fn reset(&mut self) {
        self.give_up();
        *self = Self { not_taken: self.not_taken, ..Self::new(self.point, self.clock) };
    }

    /// The batch of packets before `until`.
    fn tell(&mut self, until: Time<Utc>, begin: Option<Time<Utc>>) -> ObservationBatch {
        let is_before = |it: &mut Observation| it.stamp.utc < until;
        let mut observations: Vec<_> = self.held.extract_if(.., is_before).collect();
        // Exporters need not keep the order.
        observations.sort_by_key(|it| it.stamp.utc);
        let missed = self.gaps.extract_if(.., |gap| gap.from < until).collect();
        self.known_until = Some(until);
        let (complete_until, clock, answers) = (until, self.clock, None);
        ObservationBatch { observations, missed, complete_until, begin, clock, answers }
    }

    fn hold(&mut self, observation: Observation, sent: Time<Utc>) {
        let time = observation.stamp.utc;
        match self.known_until {
            // The true observation time is unknown.
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

    /// Counts packets as missed that were reported between two export times.
    fn miss_until(&mut self, from: Time<Utc>, sent: Time<Utc>, packets: u64) {
        let from = from - HELD_BACK;
        let from = self.known_until.map_or(from, |known| from.max(known));
        self.miss(from, from.max(sent + SECOND), packets);
    }

    /// Counts packets as missed in a time range.
    fn miss(&mut self, from: Time<Utc>, until: Time<Utc>, packets: u64) {
        let is_full = self.gaps.len() >= MAX_GAPS;
        match self.gaps.iter_mut().find(|gap| is_full || gap.until == until) {
            Some(gap) => {
                gap.from = gap.from.min(from);
                gap.until = gap.until.max(until);
                gap.packets = gap.packets.saturating_add(packets);
            }
            None => self.gaps.push(CaptureLoss { from, until, packets }),
        }
    }

    /// Removes records from the gaps: they were counted as missed, and have now arrived.
    fn find(&mut self, mut records: u64) {
        for gap in self.gaps.iter_mut().rev() {
            let found = gap.packets.min(records);
            gap.packets -= found;
            records -= found;
        }
        self.gaps.retain(|gap| gap.packets > 0);
    }

    /// Takes a packet report, if it is of the point.
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
        // A packet without a valid time or point.
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

/// Observation time and its error.
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

/// Length of the frame, or else of the IP packet; 0 if unknown.
fn length(record: &Record<'_>) -> u32 {
    let frame = record.unsigned(element::DATA_LINK_FRAME_SIZE);
    let length = frame.or_else(|| record.unsigned(element::IP_TOTAL_LENGTH));
    length.map_or(0, |length| u32::try_from(length).unwrap_or(u32::MAX))
}

/// Flow key; zeros for unknown fields.
fn flow(record: &Record<'_>) -> FlowKey {
    let address = |v4: Element, v6: Element| {
        record.address(v4).filter(IpAddr::is_ipv4).or_else(|| record.address(v6))
    };
    let source = address(element::SOURCE_IPV4_ADDRESS, element::SOURCE_IPV6_ADDRESS);
    let destination = address(element::DESTINATION_IPV4_ADDRESS, element::DESTINATION_IPV6_ADDRESS);
    // Both addresses must be of one family.
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
