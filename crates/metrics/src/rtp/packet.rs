//! The fields of an RTP packet that the metrics need, and the clock rates of static payload types.

use std::num::NonZeroU32;

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::rtp::StaticPayloadType;

/// What is needed of an RTP packet (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its sequence number.
    pub sequence: u16,
    /// Its timestamp, in units of the payload's clock.
    pub timestamp: u32,
    /// The marker bit: for speech, the first packet after silence (RFC 3551 section 4.1).
    pub marker: bool,
    /// The payload type, 0 to 127.
    pub payload_type: u8,
    /// The rate of the timestamps in Hz: [`static_clock_rate`], or what the signalling said.
    /// `None` where it is not known, and for telephone events, whose timestamps stand still (RFC 4733
    /// section 2.2.1): such a packet has no part in jitter and skew.
    pub clock_rate: Option<NonZeroU32>,
    /// When it arrived.
    pub arrival: Time<Utc>,
}

/// The rate of the timestamps of a payload type, in Hz: that of [`StaticPayloadType`], which has the
/// list. `None` for dynamic payload types (96 to 127), which the signalling has to tell, and for those
/// that RFC 3551 tables 4 and 5 reserve or leave unassigned.
#[must_use]
pub fn static_clock_rate(payload_type: u8) -> Option<NonZeroU32> {
    StaticPayloadType::of(payload_type).and_then(|it| NonZeroU32::new(it.clock_rate_hz))
}
