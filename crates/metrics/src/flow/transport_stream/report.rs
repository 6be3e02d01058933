//! Report of a transport stream.

use serde::{Deserialize, Serialize};

use super::delivery::TransportDeliveryReport;
use super::unknown::UnknownTransportStreamValue;

/// Counts of TR 101 290. Packets that the capture lost, or that arrive reordered, count as errors of continuity. While the
/// synchronisation is lost (1.1), only sync bytes (1.2) are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportStreamReport {
    /// Packets of 188 bytes.
    pub packets: u64,
    /// Packets without content (PID 0x1FFF), which fill the stream to a constant rate.
    pub null_packets: u64,
    /// PIDs, without that of null packets.
    pub pids: u64,
    /// Indicator 1.1: losses of synchronisation. Two packets in a row with a wrong sync byte lose it, five with the correct one
    /// acquire it again.
    #[serde(default)]
    pub sync_losses: u64,
    /// 1.2: packets without the byte 0x47 at the begin.
    pub sync_byte_errors: u64,
    /// 1.3 (1.3.a): no section of the program association table for more than 0.5 s (each 0.5 s counts), sections of other
    /// tables on its PID, and its packets that are encrypted.
    pub pat_errors: u64,
    /// 1.4: packets of a PID are missing, out of order, or repeated more than once.
    pub continuity_errors: u64,
    /// 1.5 (1.5.a): no section of a program map for more than 0.5 s (each 0.5 s counts) on a PID that the program association
    /// table lists, and packets of the PID that are encrypted.
    pub pmt_errors: u64,
    /// 1.6: no packet of a PID to which a program map refers for longer than the period (`--pid-period`; each period counts).
    /// Only of video, and of audio that is always there.
    #[serde(default)]
    pub pid_errors: u64,
    /// 2.1: packets that a receiver before this point marked as damaged. Nothing else is checked in them.
    pub transport_errors: u64,
    /// 2.2: sections with a wrong checksum, of PAT, CAT, PMT, NIT, SDT, BAT, EIT and TOT. They do not count as sections for 1.3
    /// and 1.5.
    pub crc_errors: u64,
    /// 2.3a: intervals of more than 100 ms between the arrivals of two clock references (PCR) of a PID.
    pub pcr_repetition_errors: u64,
    /// 2.3b: clock references that jump back, or by more than 100 ms ahead, without a mark.
    pub pcr_discontinuity_errors: u64,
    /// 2.4: clock references that differ by more than 500 ns from the clock at a constant bitrate, by the positions of their
    /// packets in the stream. Null if none could be checked.
    #[serde(default)]
    pub pcr_accuracy_errors: Option<u64>,
    /// Clock references that were checked for 2.4: in windows of 32 references of a PID, without missing packets and at a
    /// constant bitrate.
    #[serde(default)]
    pub pcr_accuracy_checked: u64,
    /// Max difference of a checked clock reference from the clock at a constant bitrate, in nanoseconds. The values have a
    /// resolution of 37 ns.
    #[serde(default)]
    pub pcr_accuracy_max_ns: Option<f64>,
    /// Why no clock reference was checked for 2.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcr_accuracy_unknown: Option<UnknownTransportStreamValue>,
    /// 2.5: intervals of more than 700 ms between the arrivals of two presentation time stamps of audio or video of a PID.
    /// Excludes encrypted packets, which are unreadable.
    pub pts_errors: u64,
    /// 2.6: sections of other tables on the PID of the conditional access table. Also 1 if packets are encrypted and the stream
    /// has had no such table, and 1 for each period (`--pid-period`) with encrypted packets and without the table.
    #[serde(default)]
    pub cat_errors: u64,
    /// Packets with an impossible length of the adaptation field.
    pub malformed_packets: u64,
    /// Media delivery index in plain UDP. None in RTP, whose index is `media_delivery` of the flow, and before the first complete
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_delivery: Option<TransportDeliveryReport>,
}
