//! Traffic paced by the counter, every packet with an identity, its intended and its actual send
//! time; and a receiver that knows the truth about what arrived.
//!
//! - [`Pattern`]: frame size and rhythm, among them the papers' two.
//! - [`Plan`]: when a stream sends, and how much.
//! - [`Sender`]: sends the packets of all streams, each when its deadline comes, never before.
//! - [`Replay`]: does the same with the frames of a capture file.
//! - [`Transmission`]: the way that packets are handed to the kernel, and the times it reports.
//! - [`live`]: copies of one frame, made in the kernel as fast as it can, or paced.
//! - [`Payload`]: what each packet carries.
//! - [`Sink`]: counts what arrived, and says if it missed anything itself.
#![deny(unsafe_code)]

mod clock;
mod datagram;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
pub mod live;
mod mac;
mod netlink;
mod outlet;
mod pace;
mod pattern;
mod payload;
mod replay;
mod report;
mod run;
mod schedule;
mod sender;
mod sequence;
mod sink;
mod stream;
mod sys;
mod transmit;
mod tx_stamps;

pub use clock::{PacingClock, ServiceClock};
pub use mac::MacAddress;
pub use pattern::{Pattern, PatternError};
pub use payload::{Payload, PayloadError, SEQUENCE_LOW_BYTE_OFFSET};
pub use replay::{Recording, Replay, ReplayError, ReplayReport, Speed};
pub use report::{SendReport, Sent, StreamReport};
pub use schedule::Plan;
pub use sender::Sender;
pub use sequence::StreamTruth;
pub use sink::{Sink, SinkError, SinkReport};
pub use stream::{SendError, Stream};
pub use transmit::{SendMethod, Transmission};
pub use tx_stamps::{PerKind, StampKind, TxStamps, Unavailable};
