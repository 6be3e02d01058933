//! The sender: test packets at a pace, and what their answers say.

mod exchange;
mod follow_up;
mod report;
mod run;
mod schedule;
mod session;

use std::net::SocketAddr;
use std::time::Duration;

use wirestamp_clock::Span;
use wirestamp_packet::stamp::Key;

pub use self::exchange::{Exchange, Exchanges};
pub use self::report::{Peer, Report};
pub use self::run::Sender;
pub use self::schedule::Rhythm;
pub use self::session::{Heard, Session};

/// The shortest and the longest payload of UDP that a test packet may have: the fields of an open one, and
/// what IPv4 has room for.
pub const SIZES: std::ops::RangeInclusive<usize> = 44..=65_507;

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct Test {
    /// The reflector.
    pub to: SocketAddr,
    /// The address and port to send from; any of this family, where they are 0.
    pub from: SocketAddr,
    /// How many packets; none ends only when it is stopped.
    pub packets: Option<u64>,
    /// For how long they are sent, at the most.
    pub lasting: Option<Duration>,
    /// When they are sent.
    pub rhythm: Rhythm,
    /// How long the answer to the last is waited for, and after how long one counts as lost.
    pub timeout: Span,
    /// What the packets look like.
    pub form: Form,
    /// Whether both ends have the same clock, so that the clock's distance from UTC does not count.
    pub same_clock: bool,
}

/// What the packets of a test look like.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// The secret shared with the reflector; open packets without it.
    pub key: Option<Key>,
    /// The number of the session, of those between the same addresses and ports.
    pub session: u16,
    /// Bytes of payload; as many as it takes, if that is more.
    pub length: usize,
    /// The differentiated services code point of the packets, and of the answers that are asked for.
    pub dscp: Option<u8>,
    /// No extensions, which reflectors of TWAMP Light do not know: what is longer than the fields is zeros.
    pub light: bool,
}
