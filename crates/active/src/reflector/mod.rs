//! The reflector: returns test packets with the times at which it received and returned them.

mod extensions;
mod serve;
mod session;

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::stamp::{Format, Key, Mode, NotStamp, Reflected, Sent, Stamped};

use self::session::Sessions;
use crate::system_clock::SystemClock;

pub use self::serve::Server;
pub use self::session::SessionId;

/// What a reflector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets that were returned.
    pub reflected: u64,
    /// Datagrams that were no test packets.
    pub not_stamp: u64,
    /// Packets without the right code.
    pub forged: u64,
    /// Answers of other reflectors, which would go back and forth for ever.
    pub answers: u64,
    /// Packets that the kernel did not take.
    pub failed: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Sessions that were forgotten for want of room, of those that had been idle longest.
    pub forgotten: u64,
    /// Packets that were received without the kernel's stamp, and have the program's.
    pub stamped_late: u64,
}

/// A test packet as it came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The datagram's bytes.
    pub bytes: &'a [u8],
    /// Who sent it.
    pub from: SocketAddr,
    /// The address that it was sent to.
    pub to: Option<IpAddr>,
    /// When it was received.
    pub at: Time<Utc>,
    /// Its TTL or hop limit.
    pub ttl: u8,
    /// Its traffic class: the differentiated services code point and two bits for congestion.
    pub class: u8,
}

/// What is to be sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reflection {
    /// Whose packet it answers.
    pub session: SessionId,
    /// The number that it has in its session.
    pub number: u32,
    /// The traffic class to send it with.
    pub class: u8,
    /// When the packet was made, as its sender has written it.
    pub made: Stamped,
}

/// Returns packets, in the stateful mode of RFC 8762 section 4.2: it counts what it returns in each
/// session. An answer is as long as the packet that it answers, but for those shorter than an answer.
#[derive(Debug)]
pub struct Reflector {
    key: Option<Key>,
    sessions: Sessions,
    counts: Counts,
}

impl Reflector {
    /// A reflector that takes packets with the codes of this key, or open ones.
    #[must_use]
    pub fn new(key: Option<Key>) -> Self {
        Self { key, sessions: Sessions::default(), counts: Counts::default() }
    }

    /// Whether a packet is itself the answer of a reflector: it says when something was received, where
    /// senders have zeros, and TWAMP Light's have what they like.
    fn is_answer(&self, arrival: &Arrival<'_>) -> bool {
        let mode = self.key.as_ref().map_or(Mode::Open, Mode::Authenticated);
        Reflected::parse(arrival.bytes, mode).is_ok_and(|answer| answer.received != Stamped(0))
    }

    /// Writes the answer to a packet. The time at which it is returned is read last.
    ///
    /// # Errors
    /// Why there is none.
    pub fn reflect(
        &mut self,
        arrival: &Arrival<'_>,
        clock: &mut impl SystemClock,
        answer: &mut Vec<u8>,
    ) -> Result<Reflection, NotStamp> {
        let mode = self.key.as_ref().map_or(Mode::Open, Mode::Authenticated);
        let sent = Sent::parse(arrival.bytes, mode).inspect_err(|error| match error {
            NotStamp::TooShort(..) => self.counts.not_stamp += 1,
            NotStamp::Forged => self.counts.forged += 1,
        })?;
        let id = SessionId { from: arrival.from, to: arrival.to, number: sent.session };
        let (session, is_new, forgot) = self.sessions.of(id);
        self.counts.sessions += u64::from(is_new);
        self.counts.forgotten += forgot as u64;

        let number = session.next;
        session.next = number.wrapping_add(1);
        let rest = arrival.bytes.get(mode.length()..).unwrap_or_default();
        let mut behind = Vec::with_capacity(rest.len());
        let asked = extensions::Asked {
            sequence: sent.sequence,
            number,
            class: arrival.class,
            follow_up: session.follow_up(number),
            state: clock.state(),
        };
        let class = extensions::answer(rest, self.key.as_ref(), &asked, &mut behind);

        answer.clear();
        Reflected {
            sequence: number,
            timestamp: stamped(clock.now()),
            error: asked.state.estimate(),
            received: stamped(arrival.at),
            sent,
            ttl: arrival.ttl,
        }
        .write(mode, answer);
        answer.extend(behind);
        self.counts.reflected += 1;
        Ok(Reflection { session: id, number, class, made: sent.timestamp })
    }

    /// An answer has left at this time, by the kernel's stamp.
    pub fn left(&mut self, session: &SessionId, number: u32, at: Time<Utc>) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.last = Some((number, stamped(at)));
        }
    }

    /// An answer could not be sent: its number goes to the next one, or the sender would take it for lost
    /// on the way back.
    fn not_sent(&mut self, reflection: &Reflection) {
        if let Some(session) = self.sessions.get_mut(&reflection.session) {
            session.next = reflection.number;
        }
        self.counts.reflected -= 1;
        self.counts.failed += 1;
    }

    /// What it has done so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

/// A time as it is written: NTP's format, whose fractions are finer than a nanosecond, and which has no leap
/// seconds to know.
fn stamped(time: Time<Utc>) -> Stamped {
    Stamped::of(time, Format::Ntp, wirestamp_clock::Span::ZERO)
}

#[cfg(test)]
mod tests;
