//! The sender: paced test packets, and the evaluation of their answers.

mod clock_exchange;
mod follow_up;
mod report;
mod run;
mod schedule;
mod session;

use std::net::SocketAddr;
use std::time::Duration;

use wirestamp_clock::Span;
use wirestamp_packet::stamp::Key;

pub use self::clock_exchange::{ClockExchange, ClockExchanges};
pub use self::report::{ReflectorInfo, TestReport, unsynchronised};
pub use self::run::Sender;
pub use self::schedule::PacketSchedule;
pub use self::session::{ReceivedAnswer, Session};

/// Range of UDP payload sizes of a test packet: from the fields of an unauthenticated packet to the max
/// of IPv4.
pub const SIZES: std::ops::RangeInclusive<usize> = 44..=65_507;

/// Configuration of a test.
#[derive(Clone, Debug)]
pub struct TestConfig {
    /// Address of the reflector.
    pub to: SocketAddr,
    /// Source address and port; the kernel chooses where they are 0.
    pub from: SocketAddr,
    /// Number of packets; none for endless.
    pub packets: Option<u64>,
    /// Max duration of sending.
    pub lasting: Option<Duration>,
    /// Intervals between packets.
    pub schedule: PacketSchedule,
    /// Time after which an answer counts as lost; also the wait for the last answer.
    pub timeout: Span,
    /// Format of the packets.
    pub format: PacketFormat,
    /// Whether both ends use the same clock, so that its offset from UTC does not matter.
    pub same_clock: bool,
}

/// Format of the packets of a test.
#[derive(Clone, Debug, Default)]
pub struct PacketFormat {
    /// The key shared with the reflector; without it, packets are unauthenticated.
    pub key: Option<Key>,
    /// Number of the session among those between the same addresses and ports.
    pub session: u16,
    /// Bytes of payload; more if the fields and extensions need more.
    pub length: usize,
    /// The differentiated services code point of the packets and of the requested answers.
    pub dscp: Option<u8>,
    /// TWAMP Light: zeros after the fields instead of extensions.
    pub light: bool,
}
