//! The reflector: returns test packets with the times at which it received and returned them.

mod extensions;
mod rate_limit;
mod serve;
mod session;

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::stamp::{Format, Key, Mode, NotStamp, Reflected, Sent, Stamped};

use self::session::Sessions;
use crate::system_clock::SystemClock;

pub use self::rate_limit::RateLimit;
pub use self::serve::Server;
pub use self::session::SessionId;

/// Counts of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReflectorCounts {
    /// Packets returned.
    pub reflected: u64,
    /// Datagrams that are not test packets.
    pub not_stamp: u64,
    /// Packets without the correct authentication code.
    pub forged: u64,
    /// Answers of other reflectors; not returned, because they would loop.
    pub answers: u64,
    /// Answers that the kernel refused.
    pub failed: u64,
    /// Sessions started.
    pub sessions: u64,
    /// Sessions evicted because the table was full; the longest idle ones first.
    pub forgotten: u64,
    /// Packets received without a kernel stamp; the program's time is used.
    pub stamped_late: u64,
    /// Datagrams that the kernel dropped at the socket, because its buffer was full or their checksum was wrong. Test packets
    /// among them were not answered.
    pub dropped: u64,
    /// Test packets not answered, because their session exceeded the max rate.
    pub limited: u64,
}

/// Why a datagram is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// It is not a test packet of a sender.
    #[error(transparent)]
    NotStamp(#[from] NotStamp),
    /// It is a test packet of a session that exceeds the max rate.
    #[error("the session exceeds the max rate")]
    Limited {
        /// The sender's number of the session.
        session: u16,
        /// The sender's timestamp in the packet.
        made: Stamped,
    },
}

/// A received test packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The datagram's bytes.
    pub bytes: &'a [u8],
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: Option<IpAddr>,
    /// Receive time.
    pub at: Time<Utc>,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Traffic class: the differentiated services code point and two bits for congestion.
    pub class: u8,
}

/// Properties of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reflection {
    /// Session of the answered packet.
    pub session: SessionId,
    /// Number of the answer in its session.
    pub number: u32,
    /// Traffic class of the answer.
    pub class: u8,
    /// The sender's timestamp in the packet.
    pub made: Stamped,
    /// Send time in the answer.
    pub stated: Time<Utc>,
}

/// Returns packets, in the stateful mode of RFC 8762 section 4.2: counts the answers of each session. An
/// answer is as long as its packet, but at least as long as the answer's fields.
///
/// Each session has a max rate of answers ([`RateLimit`]), and what it exceeds is counted. Packets that only use the
/// number of a session, from another address or port, are another session with a rate of its own.
#[derive(Debug)]
pub struct Reflector {
    key: Option<Key>,
    limit: RateLimit,
    sessions: Sessions,
    /// Counts so far.
    pub counts: ReflectorCounts,
}

impl Reflector {
    /// A reflector for packets authenticated with this key; without a key, for unauthenticated packets.
    #[must_use]
    pub fn new(key: Option<Key>) -> Self {
        let (limit, sessions) = (RateLimit::DEFAULT, Sessions::default());
        Self { key, limit, sessions, counts: ReflectorCounts::default() }
    }

    /// Replaces the max rate of each session, which is [`RateLimit::DEFAULT`].
    #[must_use]
    pub fn with_limit(self, limit: RateLimit) -> Self {
        Self { limit, ..self }
    }

    /// Writes the answer to a packet. The transmit time is read last.
    ///
    /// # Errors
    /// [`Unanswered`] if the datagram is not a valid test packet of a sender, or its session exceeds the max rate.
    pub fn reflect(
        &mut self,
        arrival: &Arrival<'_>,
        clock: &mut dyn SystemClock,
        answer: &mut Vec<u8>,
    ) -> Result<Reflection, Unanswered> {
        let mode = self.key.as_ref().map_or(Mode::Open, Mode::Authenticated);
        let is_answer = || Reflected::parse(arrival.bytes, mode).is_ok_and(|it| it.is_answer());
        let parsed = Sent::parse(arrival.bytes, mode);
        let parsed = if parsed.is_ok() && is_answer() { Err(NotStamp::Answer) } else { parsed };
        let sent = parsed.inspect_err(|error| match error {
            NotStamp::TooShort(..) => self.counts.not_stamp += 1,
            NotStamp::Forged => self.counts.forged += 1,
            NotStamp::Answer => self.counts.answers += 1,
        })?;
        let id = SessionId { from: arrival.from, to: arrival.to, number: sent.session };
        let (session, is_new, forgot) = self.sessions.of(id);
        self.counts.sessions += u64::from(is_new);
        self.counts.forgotten += forgot as u64;
        if !session.credit.pays(self.limit, arrival.at) {
            self.counts.limited += 1;
            return Err(Unanswered::Limited { session: sent.session, made: sent.timestamp });
        }

        let number = session.next;
        session.next = number.wrapping_add(1);
        let rest = arrival.bytes.get(mode.length()..).unwrap_or_default();
        let mut behind = Vec::with_capacity(rest.len());
        let asked = extensions::AnswerData {
            sequence: sent.sequence,
            number,
            class: arrival.class,
            follow_up: session.follow_up(number),
            state: clock.state(),
        };
        let class = extensions::answer(rest, self.key.as_ref(), &asked, &mut behind);

        answer.clear();
        let stated = clock.now();
        Reflected {
            sequence: number,
            timestamp: stamped(stated),
            error: asked.state.estimate(),
            received: stamped(arrival.at),
            sent,
            ttl: arrival.ttl,
        }
        .write(mode, answer);
        answer.extend(behind);
        self.counts.reflected += 1;
        Ok(Reflection { session: id, number, class, made: sent.timestamp, stated })
    }

    /// Records the kernel's transmit stamp of an answer.
    pub fn left(&mut self, session: &SessionId, number: u32, at: Time<Utc>) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.last = Some((number, stamped(at)));
        }
    }

    /// Records that an answer was not sent: the next one gets its number. Otherwise the sender would count
    /// it as lost on the way back.
    fn not_sent(&mut self, reflection: &Reflection) {
        if let Some(session) = self.sessions.get_mut(&reflection.session) {
            session.next = reflection.number;
        }
        self.counts.reflected -= 1;
        self.counts.failed += 1;
    }
}

/// A time in NTP format: its fractions are finer than a nanosecond, and it needs no leap seconds.
fn stamped(time: Time<Utc>) -> Stamped {
    Stamped::of(time, Format::Ntp, wirestamp_clock::Span::ZERO)
}

#[cfg(test)]
mod tests;
