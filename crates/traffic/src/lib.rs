//! Traffic paced by the counter, every packet with an identity, its intended and its actual send
//! time; and a receiver that knows the truth about what arrived.
//!
//! - [`Pattern`]: frame size and rhythm, among them the papers' two.
//! - [`Plan`]: when a stream sends, and how much.
//! - [`Sender`]: sends the packets of all streams, each when its deadline comes, never before.
//! - [`live`]: copies of one frame, made in the kernel as fast as it can, or paced.
//! - [`Payload`]: what each packet carries.
//! - [`Sink`]: counts what arrived, and says if it missed anything itself.
#![deny(unsafe_code)]

mod clock;
pub mod live;
mod pace;
mod pattern;
mod payload;
mod schedule;
mod sender;
mod sequence;
mod sink;
mod sys;

pub use clock::{PacingClock, ServiceClock};
pub use pattern::{Pattern, PatternError};
pub use payload::{Payload, PayloadError, SEQUENCE_LOW_BYTE_OFFSET};
pub use schedule::Plan;
pub use sender::{SendError, SendReport, Sender, Sent, Stream, StreamReport};
pub use sequence::StreamTruth;
pub use sink::{Sink, SinkError, SinkReport};
