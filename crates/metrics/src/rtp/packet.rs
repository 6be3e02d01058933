//! Fields of an RTP packet for the metrics; clock rates of static payload types.

use std::num::NonZeroU32;

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::rtp::StaticPayloadType;

/// Fields of an RTP packet (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp, in units of the payload's clock.
    pub timestamp: u32,
    /// Marker bit: for speech, the first packet after silence (RFC 3551 section 4.1).
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Clock rate in Hz: [`static_clock_rate`], or from signalling. `None` if unknown, and for telephone events, whose
    /// timestamps do not advance (RFC 4733 section 2.2.1): such a packet is excluded from jitter and skew.
    pub clock_rate: Option<NonZeroU32>,
    /// Arrival time.
    pub arrival: Time<Utc>,
}

/// Clock rate of a payload type in Hz, from [`StaticPayloadType`]. `None` for dynamic payload types (96 to 127), which
/// need signalling, and for those that RFC 3551 tables 4 and 5 reserve or leave unassigned.
#[must_use]
pub fn static_clock_rate(payload_type: u8) -> Option<NonZeroU32> {
    StaticPayloadType::of(payload_type).and_then(|it| NonZeroU32::new(it.clock_rate_hz))
}
