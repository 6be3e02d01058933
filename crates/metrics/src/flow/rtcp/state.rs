//! The reports on one stream.

use std::num::NonZeroU32;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::rtcp::{DelaySinceLastReport, ReportBlock, VoipMetrics};

use super::comparison::Comparison;
use super::report::{RoundTripReport, RtcpReport, VoipReport, share};
use super::round_trip::{PassedReports, RESOLUTION, RoundTrips};
use super::unknown::UnknownRtcpValue;
use crate::rtp::Step;

/// Reports on a stream, in constant memory of about 3 KB. Exists from the first one on.
#[derive(Clone, Debug)]
pub(in crate::flow) struct StreamRtcp {
    ssrc: u32,
    sender_reports: PassedReports,
    sender_report_count: u64,
    /// Reference times of receivers.
    references: PassedReports,
    receiver: Option<Receiver>,
    mismatched: u64,
    unreadable: u64,
    to_receiver: RoundTrips,
    to_sender: RoundTrips,
    comparison: Comparison,
    voip: Option<(u64, VoipMetrics)>,
}

/// The reports of the receiver.
#[derive(Clone, Copy, Debug)]
struct Receiver {
    reporter: u32,
    reports: u64,
    last: ReportBlock,
    max_fraction_lost: u8,
    max_cumulative_lost: i32,
    min_jitter: u32,
    max_jitter: u32,
}

impl StreamRtcp {
    /// No reports yet, on a stream with this highest sequence number.
    pub(in crate::flow) fn new(ssrc: u32, highest: u64) -> Self {
        Self {
            ssrc,
            sender_reports: PassedReports::default(),
            sender_report_count: 0,
            references: PassedReports::default(),
            receiver: None,
            mismatched: 0,
            unreadable: 0,
            to_receiver: RoundTrips::default(),
            to_sender: RoundTrips::default(),
            comparison: Comparison::after(highest),
            voip: None,
        }
    }

    /// Records the next packet of the stream.
    pub(in crate::flow) fn record(&mut self, step: Step) {
        self.comparison.record(step);
    }

    /// Whether this source sent the last report of the receiver.
    pub(super) fn is_received_by(&self, reporter: u32) -> bool {
        self.receiver.is_some_and(|it| it.reporter == reporter)
    }

    /// Records an SR of the stream's sender.
    pub(super) fn sender_report(&mut self, ntp_middle: u32, time: Time<Utc>) {
        self.sender_report_count += 1;
        self.sender_reports.note(self.ssrc, ntp_middle, time);
    }

    /// Records a reference time of the stream's receiver.
    pub(super) fn reference(&mut self, reporter: u32, ntp_middle: u32, time: Time<Utc>) {
        self.references.note(reporter, ntp_middle, time);
    }

    /// Records a datagram of the stream's sender that cannot be read.
    pub(super) fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Records a report of the stream's receiver. Returns its round trip; none if it was not used.
    pub(super) fn receiver_report(
        &mut self,
        reporter: u32,
        block: &ReportBlock,
        time: Time<Utc>,
    ) -> Option<Result<Span, UnknownRtcpValue>> {
        if !self.comparison.report(reporter, block) {
            self.mismatched += 1;
            return None;
        }
        self.receiver = Some(Receiver::with(self.receiver, reporter, block));
        let ReportBlock { last_sender_report, delay_since_last_sender_report: wait, .. } = *block;
        let round_trip = self.sender_reports.round_trip(self.ssrc, last_sender_report, wait, time);
        self.to_receiver.record(round_trip);
        Some(round_trip)
    }

    /// Records a round trip to the stream's sender, by its report on another stream.
    pub(super) fn round_trip_to_sender(&mut self, round_trip: Result<Span, UnknownRtcpValue>) {
        self.to_sender.record(round_trip);
    }

    /// Records the sender's answer to a reference time.
    pub(super) fn answer(&mut self, answer: &DelaySinceLastReport, time: Time<Utc>) {
        let DelaySinceLastReport { ssrc, last_reference, delay_since_last_reference } = *answer;
        let round_trip =
            self.references.round_trip(ssrc, last_reference, delay_since_last_reference, time);
        self.to_sender.record(round_trip);
    }

    /// Records VoIP metrics of the stream's receiver.
    pub(super) fn voip_metrics(&mut self, metrics: &VoipMetrics) {
        let before = self.voip.map_or(0, |(reports, _)| reports);
        self.voip = Some((before + 1, *metrics));
    }

    /// The values so far, for timestamps of this clock rate.
    pub(in crate::flow) fn report(&self, clock_rate: Option<NonZeroU32>) -> RtcpReport {
        let receiver = self.receiver.as_ref();
        let jitter = |units: fn(&Receiver) -> u32| Some(nanos(units(receiver?), clock_rate?));
        let jitter_unknown = match (receiver, clock_rate) {
            (None, _) => Some(UnknownRtcpValue::NoReport),
            (_, None) => Some(UnknownRtcpValue::UnknownClockRate),
            _ => None,
        };
        let [to_receiver, to_sender] = [&self.to_receiver, &self.to_sender].map(round_trips);
        let comparison = self.comparison.result();
        RtcpReport {
            sender_reports: self.sender_report_count,
            receiver_reports: receiver.map_or(0, |it| it.reports),
            mismatched_reports: self.mismatched,
            unreadable_packets: self.unreadable,
            reporter_ssrc: receiver.map(|it| it.reporter),
            fraction_lost: receiver.map(|it| share(it.last.fraction_lost)),
            max_fraction_lost: receiver.map(|it| share(it.max_fraction_lost)),
            cumulative_lost: receiver.map(|it| it.last.cumulative_lost),
            max_cumulative_lost: receiver.map(|it| it.max_cumulative_lost),
            extended_highest_sequence: receiver.map(|it| it.last.extended_highest_sequence),
            jitter_ns: jitter(|it| it.last.jitter),
            min_jitter_ns: jitter(|it| it.min_jitter),
            max_jitter_ns: jitter(|it| it.max_jitter),
            jitter_unknown,
            round_trip_to_receiver: to_receiver.ok(),
            round_trip_to_receiver_unknown: to_receiver.err(),
            round_trip_to_sender: to_sender.ok(),
            round_trip_to_sender_unknown: to_sender.err(),
            loss_comparison: comparison.ok(),
            loss_comparison_unknown: comparison.err(),
            voip_metrics: self.voip.map(|(reports, last)| VoipReport::of(reports, &last)),
        }
    }
}

impl Receiver {
    fn with(before: Option<Self>, reporter: u32, last: &ReportBlock) -> Self {
        let ReportBlock { fraction_lost, cumulative_lost, jitter, .. } = *last;
        let before = before.unwrap_or(Self {
            reporter,
            reports: 0,
            last: *last,
            max_fraction_lost: fraction_lost,
            max_cumulative_lost: cumulative_lost,
            min_jitter: jitter,
            max_jitter: jitter,
        });
        Self {
            reporter,
            reports: before.reports + 1,
            last: *last,
            max_fraction_lost: before.max_fraction_lost.max(fraction_lost),
            max_cumulative_lost: before.max_cumulative_lost.max(cumulative_lost),
            min_jitter: before.min_jitter.min(jitter),
            max_jitter: before.max_jitter.max(jitter),
        }
    }
}

/// Units of the RTP clock in nanoseconds.
fn nanos(units: u32, clock_rate: NonZeroU32) -> i64 {
    let nanos = u64::from(units) * 1_000_000_000 / u64::from(clock_rate.get());
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

fn round_trips(trips: &RoundTrips) -> Result<RoundTripReport, UnknownRtcpValue> {
    let values = trips.values.ok_or(trips.unknown)?;
    let [last_ns, min_ns, max_ns] = values.map(Span::as_nanos);
    let error_ns = RESOLUTION.as_nanos();
    Ok(RoundTripReport { count: trips.samples, last_ns, min_ns, max_ns, error_ns })
}
