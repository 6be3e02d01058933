//! Test traffic paced by the CPU's counter, and a receiver that counts the arrivals.
//!
//! Each packet carries its stream, its sequence number, and its intended and actual send times.
//!
//! - [`Pattern`]: frame size and packet interval; includes the two patterns of the papers.
//! - [`StreamPlan`]: pattern, start and number of packets of a stream.
//! - [`Sender`]: sends the packets of all streams at their deadlines, never before.
//! - [`Replay`]: sends the frames of a capture file in the same way.
//! - [`SendOptions`]: send method, and the transmit stamps to request.
//! - [`live`]: frames generated in the kernel by an XDP program, paced or at full speed.
//! - [`Payload`]: contents of each test packet.
//! - [`Sink`]: counts arrivals, and reports packets that it missed itself.
#![deny(unsafe_code)]

mod arrivals;
mod clock;
mod datagram;
mod egress;
pub mod live;
mod mac;
mod netlink;
mod pace;
mod paced_run;
mod pattern;
mod payload;
mod replay;
mod report;
mod rtp;
mod schedule;
mod sender;
mod sink;
mod stream;
mod transmit;
mod tx_stamps;

pub use arrivals::StreamArrivals;
pub use clock::{PacingClock, ServiceClock};
pub use mac::MacAddress;
pub use pattern::{Pattern, PatternError};
pub use payload::{Payload, SEQUENCE_LOW_BYTE_OFFSET};
pub use replay::{Replay, ReplayError, ReplayOptions, ReplayReport, Speed};
pub use report::{SendReport, SentPacket, StreamReport};
pub use schedule::StreamPlan;
pub use sender::Sender;
pub use sink::{Sink, SinkError, SinkReport};
pub use stream::{SendError, Stream};
pub use transmit::{SendMethod, SendOptions};
pub use tx_stamps::{PerStampKind, StampKind, TxStamps, UnavailableStamps};
