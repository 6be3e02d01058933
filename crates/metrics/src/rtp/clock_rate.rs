//! The clock rates of static payload types.

use std::num::NonZeroU32;

use wirestamp_packet::rtp::StaticPayloadType;

/// The rate of the timestamps of a payload type, in Hz: that of [`StaticPayloadType`], which has the
/// list. `None` for dynamic payload types (96 to 127), which the signalling has to tell, and for those
/// that RFC 3551 tables 4 and 5 reserve or leave unassigned.
#[must_use]
pub fn static_clock_rate(payload_type: u8) -> Option<NonZeroU32> {
    StaticPayloadType::of(payload_type).and_then(|it| NonZeroU32::new(it.clock_rate_hz))
}
