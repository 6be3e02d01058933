//! RTP metrics: loss by sequence numbers, jitter and skew by timestamps.
//!
//! For one synchronisation source at one observation point, as defined by RFC 3550 and as shown by Wireshark;
//! [`Analysis`] lists the differences.
//!
//! | file | computes |
//! |---|---|
//! | `sequence.rs` | extended sequence numbers, packets expected and lost: RFC 3550 appendices A.1 and A.3 |
//! | `outage.rs` | outages, in contrast to restarts of the sender |
//! | `jitter.rs` | interarrival jitter: RFC 3550 section 6.4.1 |
//! | `skew.rs` | skew: difference between the sender's clock and the capture clock |
//! | `wireshark.rs` | the figures of `tshark -z rtp,streams` |

use std::num::NonZeroU32;

use wirestamp_clock::{Time, Utc};

mod jitter;
mod outage;
mod sequence;
mod skew;
mod stream;
mod wireshark;

pub use jitter::Jitter;
pub use sequence::{Sequence, Step};
pub use skew::Skew;
pub use stream::Stream;
pub use wireshark::Analysis;

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
    /// Clock rate in Hz, by the static payload type or by signalling. `None` if unknown, and for telephone events, whose
    /// timestamps do not advance (RFC 4733 section 2.2.1): such a packet is excluded from jitter and skew.
    pub clock_rate: Option<NonZeroU32>,
    /// Arrival time.
    pub arrival: Time<Utc>,
}
