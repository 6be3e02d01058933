//! Values of a flow's report that come from RTCP.

use serde::{Deserialize, Serialize};
use wirestamp_packet::rtcp::VoipMetrics;

use super::unknown::UnknownRtcpValue;

/// What the ends of an RTP stream report by RTCP (RFC 3550 section 6, RFC 3611), beside what was captured here. Unknown
/// values are null.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RtcpReport {
    /// Sender reports (SR) of the stream's sender.
    pub sender_reports: u64,
    /// Report blocks of the receiver on this stream that were used.
    pub receiver_reports: u64,
    /// Report blocks that were not used: their sequence number is far from all captured ones, or a later report overtook
    /// them.
    pub mismatched_reports: u64,
    /// Datagrams of the stream's sender that begin as RTCP does and cannot be read: encrypted (SRTCP), not captured
    /// completely, or damaged.
    pub unreadable_packets: u64,
    /// SSRC of the receiver in the last report.
    pub reporter_ssrc: Option<u32>,
    /// Share of packets that the receiver lost between its last two reports, 0 to 1, in steps of 1/256.
    pub fraction_lost: Option<f64>,
    /// Max of these shares.
    pub max_fraction_lost: Option<f64>,
    /// Packets expected minus packets received at the receiver, since it began, in the last report. Negative if there are
    /// more duplicates than losses (RFC 3550 section 6.4.1).
    pub cumulative_lost: Option<i32>,
    /// Max of it in any report.
    pub max_cumulative_lost: Option<i32>,
    /// Highest sequence number that the receiver received, and in the upper 16 bits how often it wrapped there.
    pub extended_highest_sequence: Option<u32>,
    /// Interarrival jitter at the receiver, in the last report, in nanoseconds.
    pub jitter_ns: Option<i64>,
    /// Min of it in any report, in nanoseconds.
    pub min_jitter_ns: Option<i64>,
    /// Max of it in any report, in nanoseconds.
    pub max_jitter_ns: Option<i64>,
    /// Why the jitter is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_unknown: Option<UnknownRtcpValue>,
    /// Round trip from this point to the stream's receiver and back: from a sender report at this point to the report that
    /// answers it, without the wait at the receiver.
    pub round_trip_to_receiver: Option<RoundTripReport>,
    /// Why it is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_to_receiver_unknown: Option<UnknownRtcpValue>,
    /// Round trip from this point to the stream's sender and back, by the sender's answers to the other end. The sum of both
    /// is the round trip between the ends.
    pub round_trip_to_sender: Option<RoundTripReport>,
    /// Why it is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_to_sender_unknown: Option<UnknownRtcpValue>,
    /// Losses here and at the receiver, over the packets that both counted.
    pub loss_comparison: Option<LossComparison>,
    /// Why it is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_comparison_unknown: Option<UnknownRtcpValue>,
    /// The receiver's last VoIP metrics.
    pub voip_metrics: Option<VoipReport>,
}

/// Round trips between this point and one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTripReport {
    /// Number of round trips.
    pub count: u64,
    /// The last one, in nanoseconds.
    pub last_ns: i64,
    /// The shortest one, in nanoseconds.
    pub min_ns: i64,
    /// The longest one, in nanoseconds.
    pub max_ns: i64,
    /// Resolution of the wait that the end reports, 1/65536 s in nanoseconds. Not included: errors of the stamps here, of the
    /// times that the end's program measures, and of the rate of its clock.
    pub error_ns: i64,
}

/// Losses between the first and the last comparable report, counted as RFC 3550 appendix A.3 does: duplicates hide losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossComparison {
    /// Packets sent, by sequence numbers.
    pub expected: u64,
    /// Packets lost before this point.
    pub lost_here: i64,
    /// Packets lost before the receiver, as it reports.
    pub lost_at_receiver: i64,
    /// The difference: packets lost between this point and the receiver.
    pub lost_beyond: u64,
}

/// VoIP metrics of a receiver (RFC 3611 section 4.7). Values that it marks as unavailable are null.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoipReport {
    /// Number of reports; the values are those of the last one.
    pub reports: u64,
    /// Share of packets lost since the receiver began, 0 to 1.
    pub loss_rate: f64,
    /// Share of packets that its de-jitter buffer discarded.
    pub discard_rate: f64,
    /// Share of packets lost or discarded within bursts.
    pub burst_density: f64,
    /// The same between bursts.
    pub gap_density: f64,
    /// Mean length of bursts.
    pub burst_duration_ms: u16,
    /// Mean length of the gaps between them.
    pub gap_duration_ms: u16,
    /// Round trip between both ends, as the receiver computed it.
    pub round_trip_ms: Option<u16>,
    /// Delay inside the receiver's end.
    pub end_system_delay_ms: u16,
    /// Signal level in dBm0.
    pub signal_level_dbm0: Option<i8>,
    /// Noise level in dBm0.
    pub noise_level_dbm0: Option<i8>,
    /// Residual echo return loss in dB.
    pub residual_echo_return_loss_db: Option<u8>,
    /// R factor, 0 to 100.
    pub r_factor: Option<u8>,
    /// R factor of a network beyond the RTP path, 0 to 100.
    pub external_r_factor: Option<u8>,
    /// MOS for listening quality, 1 to 5, in steps of 0.1.
    pub mos_lq: Option<f64>,
    /// MOS for conversational quality, 1 to 5, in steps of 0.1.
    pub mos_cq: Option<f64>,
    /// Whether the de-jitter buffer is adaptive.
    pub jitter_buffer_adaptive: Option<bool>,
    /// Delay of the de-jitter buffer for packets on time.
    pub jitter_buffer_nominal_ms: u16,
    /// Its delay for the earliest packet that is not discarded.
    pub jitter_buffer_max_ms: u16,
    /// Max delay that it can reach; 65535 for that or more.
    pub jitter_buffer_absolute_max_ms: u16,
}

impl VoipReport {
    pub(super) fn of(reports: u64, last: &VoipMetrics) -> Self {
        let mos = |tenths: Option<u8>| tenths.map(|it| f64::from(it) / 10.0);
        Self {
            reports,
            loss_rate: share(last.loss_rate),
            discard_rate: share(last.discard_rate),
            burst_density: share(last.burst_density),
            gap_density: share(last.gap_density),
            burst_duration_ms: last.burst_duration_ms,
            gap_duration_ms: last.gap_duration_ms,
            round_trip_ms: last.round_trip_ms,
            end_system_delay_ms: last.end_system_delay_ms,
            signal_level_dbm0: last.signal_level_dbm0,
            noise_level_dbm0: last.noise_level_dbm0,
            residual_echo_return_loss_db: last.residual_echo_return_loss_db,
            r_factor: last.r_factor,
            external_r_factor: last.external_r_factor,
            mos_lq: mos(last.mos_lq),
            mos_cq: mos(last.mos_cq),
            jitter_buffer_adaptive: last.is_buffer_adaptive,
            jitter_buffer_nominal_ms: last.buffer_nominal_ms,
            jitter_buffer_max_ms: last.buffer_max_ms,
            jitter_buffer_absolute_max_ms: last.buffer_absolute_max_ms,
        }
    }
}

impl RtcpReport {
    /// Removes the comparison: packets that the capture lost would count as lost before this point.
    pub fn forget_comparison(&mut self) {
        if self.loss_comparison.take().is_some() {
            self.loss_comparison_unknown = Some(UnknownRtcpValue::CaptureLost);
        }
    }
}

/// A share in units of 1/256.
pub(super) fn share(units: u8) -> f64 {
    f64::from(units) / 256.0
}
