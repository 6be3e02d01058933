//! Detection of UDP tests, of iperf3 and of `wirestamp send`, and their losses.

use serde::{Deserialize, Serialize};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::iperf3::{Counter, Iperf3, Recogniser};
use wirestamp_packet::wstp::TestPacket;

use super::gap::Gap;
use super::gap_losses::LossChange;
use super::gaps::Gaps;
use super::missed::CaptureLosses;
use super::numbers::{ArrivalKind, Numbers};
use super::uncertainty::ImpairmentUncertainty;
use crate::iperf3::Stream;
use crate::rtp::Step;

/// Max datagrams of a flow that are examined. Four matching ones identify a test.
const MAX_EXAMINED: u8 = 16;
/// Bytes of a datagram that hold the widest counters.
const PREFIX_BYTES: usize = 16;
/// Bytes of the datagram that opens a test in either direction (`UDP_CONNECT_MSG` and
/// `UDP_CONNECT_REPLY` in iperf's `src/iperf_udp.c`).
const CONNECT_MESSAGE_BYTES: usize = 4;

/// A higher number is not one of `wirestamp send`, but a datagram of something else.
const MAX_SEQUENCE: u64 = 1 << 48;

/// The quality of a UDP test of iperf3, counted as its server does. Tests in a row on the same ports are added up.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Iperf3Report {
    /// Datagrams sent up to the highest count received, `packets` of iperf3; since the start of the capture, if that
    /// was after the start of the test.
    pub sent: u64,
    /// Datagrams lost by the network, `lost_packets` of iperf3, where each duplicate hides a loss.
    pub lost: u64,
    /// Datagrams that came after one with a higher count, and duplicates.
    pub out_of_order: u64,
    /// The interarrival jitter at the last datagram.
    pub jitter_ms: f64,
    /// Datagrams lost by the capture; excluded from all other loss figures.
    pub capture_lost: u64,
    /// Uncertainty of `lost`: the network may have lost this many more or fewer, and the capture fewer or more. Above
    /// 0 where both lost datagrams at the same time.
    pub lost_uncertainty: u64,
    /// Width of the counters in bits.
    pub counter_bits: u8,
}

/// The quality of a test of `wirestamp send`. Tests in a row on the same ports are added up.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WirestampReport {
    /// Packets sent up to the highest number received, from the first captured one on.
    pub sent: u64,
    /// Packets lost by the network.
    pub lost: u64,
    /// Packets that came after one with a higher number, and duplicates.
    pub out_of_order: u64,
    /// The interarrival jitter at the last packet (RFC 3550 section 6.4.1), by the send times in the packets.
    pub jitter_ms: f64,
    /// Packets lost by the capture; excluded from the losses.
    pub capture_lost: u64,
    /// Uncertainty of `lost`, as of [`Iperf3Report::lost_uncertainty`].
    pub lost_uncertainty: u64,
}

/// What numbers the datagrams of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Iperf3(Counter),
    /// A stream of `wirestamp send`.
    Wirestamp(u16),
}

impl Format {
    /// Number, from 1, and send time of a datagram of this test.
    fn parse(self, payload: &[u8]) -> Option<Iperf3> {
        match self {
            Self::Iperf3(counter) => Iperf3::parse(payload, counter),
            Self::Wirestamp(stream) => {
                let packet = TestPacket::parse(payload)?;
                let sent_micros = u64::try_from(packet.actual_ns / 1000).ok()?;
                let is_of_stream = packet.stream == stream && packet.sequence <= MAX_SEQUENCE;
                let sequence = packet.sequence_in_flow()?;
                is_of_stream.then(|| Iperf3 { sent_micros, count: sequence + 1 })
            }
        }
    }
}

/// State of the detection.
#[derive(Clone, Debug)]
pub(super) enum TestState {
    /// Undecided.
    Open(Examination),
    Test(Box<Test>),
    /// Not a test.
    Other,
}

/// The first datagrams of a flow.
#[derive(Clone, Debug)]
pub(super) struct Examination {
    left: u8,
    /// Whether the opening datagram of a test was captured.
    opened: bool,
    /// None until a datagram may be one of iperf3: few flows ever have one.
    candidate: Option<Box<Candidate>>,
}

/// A flow that may be a test of iperf3.
#[derive(Clone, Debug, Default)]
struct Candidate {
    recogniser: Recogniser,
    /// First bytes and times of datagrams that may belong to the test.
    kept: Vec<([u8; PREFIX_BYTES], Time<Utc>)>,
}

/// A test.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) duplicated: u64,
    pub(super) lost: u64,
    format: Format,
    /// The highest count and the newest send time so far, and the highest count before the current run of the sender.
    highest_count: u64,
    newest_sent_micros: u64,
    counted_before: u64,
    stream: Stream,
    numbers: Numbers,
    /// Arrival time of the datagram with the highest count.
    highest: Time<Utc>,
    /// Gaps that the capture may have caused.
    pub(super) gaps: Gaps,
    capture_lost: u64,
    /// Uncertainty of the losses.
    uncertainty: ImpairmentUncertainty,
}

impl Default for TestState {
    fn default() -> Self {
        Self::Open(Examination { left: MAX_EXAMINED, opened: false, candidate: None })
    }
}

impl TestState {
    /// Records the captured payload of a datagram that is not RTP.
    pub(super) fn record(&mut self, payload: &[u8], time: Time<Utc>, missed: &mut CaptureLosses) {
        match self {
            Self::Open(examination) => {
                if let Some(test) = examination.record(payload, time, missed) {
                    *self = Self::Test(Box::new(test));
                } else if examination.left == 0 {
                    *self = Self::Other;
                }
            }
            Self::Test(test) => test.record(payload, time, missed),
            Self::Other => {}
        }
    }

    pub(super) fn test(&self) -> Option<&Test> {
        if let Self::Test(test) = self { Some(test) } else { None }
    }

    pub(super) fn test_mut(&mut self) -> Option<&mut Test> {
        if let Self::Test(test) = self { Some(test) } else { None }
    }
}

impl Examination {
    fn record(
        &mut self,
        payload: &[u8],
        time: Time<Utc>,
        missed: &mut CaptureLosses,
    ) -> Option<Test> {
        if let Some(packet) = TestPacket::parse(payload) {
            let format = Format::Wirestamp(packet.stream);
            let first = format.parse(payload)?;
            return Some(Test::of(&[(first, time)], format, false, missed));
        }
        self.left -= 1;
        self.opened |= payload.len() == CONNECT_MESSAGE_BYTES;
        let widths = [Counter::Bits32, Counter::Bits64];
        if widths.iter().all(|it| Iperf3::parse(payload, *it).is_none()) {
            if let Some(candidate) = &mut self.candidate {
                candidate.recogniser.record(payload);
            }
            return None;
        }
        let candidate = self.candidate.get_or_insert_default();
        let format = Format::Iperf3(candidate.record(payload, time)?);
        Some(Test::of(&candidate.kept_as(format), format, self.opened, missed))
    }
}

impl Candidate {
    /// Keeps a datagram. Returns the width of the counts once the test is certain.
    fn record(&mut self, payload: &[u8], time: Time<Utc>) -> Option<Counter> {
        let mut head = [0; PREFIX_BYTES];
        let length = payload.len().min(PREFIX_BYTES);
        head[..length].copy_from_slice(&payload[..length]);
        self.kept.push((head, time));
        self.recogniser.record(payload)
    }

    /// The kept datagrams that have this format.
    fn kept_as(&self, format: Format) -> Vec<(Iperf3, Time<Utc>)> {
        let kept = self.kept.iter();
        kept.filter_map(|(head, time)| Some((format.parse(head)?, *time))).collect()
    }
}

impl Test {
    /// A test with these datagrams so far. Datagrams before the first count as lost only if the start of the test was
    /// captured.
    fn of(
        kept: &[(Iperf3, Time<Utc>)],
        format: Format,
        opened: bool,
        missed: &mut CaptureLosses,
    ) -> Self {
        let first = kept.first().filter(|_| !opened);
        let before = first.map_or(0, |(first, _)| first.count - 1);
        let mut numbers = Numbers::default();
        numbers.record(Step::Ahead(before));
        let mut test = Self {
            duplicated: 0,
            lost: 0,
            format,
            highest_count: 0,
            newest_sent_micros: 0,
            counted_before: 0,
            stream: Stream::after(before),
            numbers,
            highest: kept.first().map_or(Time::from_nanos(0), |(_, time)| *time),
            gaps: Gaps::default(),
            capture_lost: 0,
            uncertainty: ImpairmentUncertainty::default(),
        };
        kept.iter().for_each(|(datagram, time)| test.count(*datagram, *time, missed));
        test
    }

    fn record(&mut self, payload: &[u8], time: Time<Utc>, missed: &mut CaptureLosses) {
        if let Some(datagram) = self.format.parse(payload) {
            self.count(datagram, time, missed);
        }
    }

    /// The datagram, counted on over the runs of the sender, which may run again with the same ports. A lower number
    /// that was sent later is of another run.
    fn in_all_runs(&mut self, datagram: Iperf3) -> Iperf3 {
        let count = datagram.count.saturating_add(self.counted_before);
        if count <= self.highest_count && datagram.sent_micros > self.newest_sent_micros {
            self.counted_before = self.highest_count;
        }
        let count = datagram.count.saturating_add(self.counted_before);
        Iperf3 { count, ..datagram }
    }

    fn count(&mut self, datagram: Iperf3, time: Time<Utc>, missed: &mut CaptureLosses) {
        let datagram = self.in_all_runs(datagram);
        self.highest_count = self.highest_count.max(datagram.count);
        self.newest_sent_micros = self.newest_sent_micros.max(datagram.sent_micros);
        self.stream.record(&datagram, time);
        if datagram.count <= self.stream.before {
            // Reordered at the start of the capture: neither a duplicate nor a datagram that was counted as lost.
            return;
        }
        match self.numbers.record(Step::Ahead(datagram.count)) {
            ArrivalKind::Ahead { skipped } => {
                let since = std::mem::replace(&mut self.highest, time);
                if skipped > 0 {
                    self.lost += skipped;
                    let gap = Gap::before(datagram.count, skipped, (since, time), None);
                    self.gaps.push(gap, missed);
                }
            }
            // Older than the window: treated as late, as iperf3 does.
            ArrivalKind::Late { .. } | ArrivalKind::Stray => self.record_late(datagram.count),
            ArrivalKind::Duplicate => self.duplicated += 1,
            ArrivalKind::Early { .. } | ArrivalKind::Restarted => {}
        }
    }

    /// Records the arrival of a datagram that was counted as lost.
    fn record_late(&mut self, count: u64) {
        let change = self.gaps.arrived(count);
        if let Some(LossChange { before, now, .. }) = change {
            self.uncertainty = self.uncertainty.plus(now.uncertainty).less(before.uncertainty);
        }
        if change.is_some_and(|change| change.before.by_capture > change.now.by_capture) {
            self.capture_lost = self.capture_lost.saturating_sub(1);
        } else {
            self.lost = self.lost.saturating_sub(1);
        }
    }

    /// Applies the latest assignment of losses.
    pub(super) fn apply_decisions(&mut self, missed: &mut CaptureLosses) {
        let Self { gaps, lost, capture_lost, uncertainty, .. } = self;
        gaps.apply_decisions(missed, |change| {
            *uncertainty = uncertainty.plus(change.now.uncertainty).less(change.before.uncertainty);
            *lost = (*lost + change.now.by_network).saturating_sub(change.before.by_network);
            *capture_lost =
                (*capture_lost + change.now.by_capture).saturating_sub(change.before.by_capture);
        });
    }

    /// Datagrams that came after one with a higher count, without duplicates.
    pub(super) fn reordered(&self) -> u64 {
        self.stream.out_of_order.saturating_sub(self.duplicated)
    }

    /// The report of a test of iperf3.
    pub(super) fn iperf3(&self) -> Option<Iperf3Report> {
        let Format::Iperf3(counter) = self.format else { return None };
        Some(Iperf3Report {
            sent: self.stream.packets(),
            lost: self.stream.lost.saturating_sub(self.capture_lost),
            out_of_order: self.stream.out_of_order,
            jitter_ms: self.stream.jitter.nanos / 1e6,
            capture_lost: self.capture_lost,
            lost_uncertainty: self.uncertainty.lost.max(),
            counter_bits: match counter {
                Counter::Bits32 => 32,
                Counter::Bits64 => 64,
            },
        })
    }

    /// The report of a test of `wirestamp send`.
    pub(super) fn wirestamp(&self) -> Option<WirestampReport> {
        matches!(self.format, Format::Wirestamp(_)).then(|| WirestampReport {
            sent: self.stream.packets(),
            lost: self.lost,
            out_of_order: self.stream.out_of_order,
            jitter_ms: self.stream.jitter.nanos / 1e6,
            capture_lost: self.capture_lost,
            lost_uncertainty: self.uncertainty.lost.max(),
        })
    }
}
