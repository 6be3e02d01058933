//! RTP metrics: loss by sequence numbers, jitter and skew by timestamps.
//!
//! For one synchronisation source at one observation point, as defined by RFC 3550 and as shown by Wireshark;
//! [`Analysis`] lists the differences.
//!
//! | file | computes |
//! |---|---|
//! | `sequence.rs` | extended sequence numbers, packets expected and lost: RFC 3550 appendices A.1 and A.3 |
//! | `jitter.rs` | interarrival jitter: RFC 3550 section 6.4.1 |
//! | `skew.rs` | skew: difference between the sender's clock and the capture clock |
//! | `wireshark.rs` | the figures of `tshark -z rtp,streams` |
//! | `packet.rs` | the fields of a packet |

mod jitter;
mod packet;
mod sequence;
mod skew;
mod stream;
mod wireshark;

pub use jitter::Jitter;
pub use packet::Packet;
pub use sequence::{Sequence, Step};
pub use skew::Skew;
pub use stream::Stream;
pub use wireshark::Analysis;
