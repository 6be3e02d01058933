//! Packets of senders and reflectors.

use std::ops::Range;

use super::authentication::CODE;
use super::{ErrorEstimate, Mode, Stamped};

/// Bytes of a TWAMP Light sender's packet before its padding (RFC 4656 section 4.1.2).
const TWAMP_LIGHT: usize = 14;

/// Reason why a datagram is not a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStamp {
    /// Fewer bytes than the fields.
    #[error("{0} bytes are too few for a STAMP packet of {1}")]
    TooShort(usize, usize),
    /// The code does not match the key: another key, or a forged packet.
    #[error("the packet's HMAC does not match the key")]
    Forged,
    /// The answer of a reflector. If it were answered, the answers of two reflectors would never end.
    #[error("the packet is the answer of a reflector")]
    Answer,
}

/// Max time from the arrival of a packet to its answer, in seconds.
const MAX_TURNAROUND: i32 = 60;

/// A sender's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Sequence number, from 0 in each session.
    pub sequence: u32,
    /// Send time.
    pub timestamp: Stamped,
    /// Format and error of that time.
    pub error: ErrorEstimate,
    /// Session identifier, which distinguishes sessions between the same addresses and ports; 0 for none.
    pub session: u16,
}

/// A reflector's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reflected {
    /// Sequence number: that of the sender's packet, or the reflector's own in stateful mode.
    pub sequence: u32,
    /// Return time.
    pub timestamp: Stamped,
    /// Format and error of that time and of `received`.
    pub error: ErrorEstimate,
    /// Time at which the sender's packet was received.
    pub received: Stamped,
    /// Content of the sender's packet.
    pub sent: Sent,
    /// The TTL or hop limit with which the sender's packet arrived.
    pub ttl: u8,
}

/// Positions of the fields.
struct Layout {
    timestamp: usize,
    received: usize,
    sent_sequence: usize,
    sent_timestamp: usize,
    sent_error: usize,
    ttl: usize,
    /// Length in bytes, including the code, if there is one.
    length: usize,
}

const OPEN: Layout = Layout {
    timestamp: 4,
    received: 16,
    sent_sequence: 24,
    sent_timestamp: 28,
    sent_error: 36,
    ttl: 40,
    length: 44,
};

const AUTHENTICATED: Layout = Layout {
    timestamp: 16,
    received: 32,
    sent_sequence: 48,
    sent_timestamp: 64,
    sent_error: 72,
    ttl: 80,
    length: 112,
};

/// In an authenticated packet, the bytes covered by the code, and the code.
const CODED: Range<usize> = 0..96;
const CODE_AT: Range<usize> = 96..96 + CODE;

impl Mode<'_> {
    const fn layout(self) -> &'static Layout {
        match self {
            Self::Open => &OPEN,
            Self::Authenticated(_) => &AUTHENTICATED,
        }
    }

    /// Bytes of a packet without extensions.
    #[must_use]
    pub const fn length(self) -> usize {
        self.layout().length
    }

    /// Appends a packet whose fields `fill` sets.
    fn write(self, packet: &mut Vec<u8>, fill: impl FnOnce(&mut Fields<'_>)) {
        let begin = packet.len();
        packet.resize(begin + self.length(), 0);
        let bytes = &mut packet[begin..];
        fill(&mut Fields(bytes));
        if let Self::Authenticated(key) = self {
            let code = key.code(&bytes[CODED]);
            bytes[CODE_AT].copy_from_slice(&code);
        }
    }

    /// The fields of a packet of sufficient length and with a valid code.
    fn read(self, packet: &[u8]) -> Result<&[u8], NotStamp> {
        let length = self.length();
        let bytes = packet.get(..length).ok_or(NotStamp::TooShort(packet.len(), length))?;
        match self {
            Self::Authenticated(key) if !key.verifies(&bytes[CODED], &bytes[CODE_AT]) => {
                Err(NotStamp::Forged)
            }
            _ => Ok(bytes),
        }
    }
}

impl Sent {
    /// Appends the packet.
    pub fn write(&self, mode: Mode<'_>, packet: &mut Vec<u8>) {
        mode.write(packet, |fields| fields.put(0, mode.layout().timestamp, self));
    }

    /// Parses a sender's packet. In open mode it may be as short as one of TWAMP Light.
    ///
    /// # Errors
    /// See [`NotStamp`].
    pub fn parse(packet: &[u8], mode: Mode<'_>) -> Result<Self, NotStamp> {
        let fields = match mode {
            Mode::Open if packet.len() < TWAMP_LIGHT => {
                return Err(NotStamp::TooShort(packet.len(), TWAMP_LIGHT));
            }
            Mode::Open if packet.len() < OPEN.length => packet,
            _ => mode.read(packet)?,
        };
        let at = mode.layout().timestamp;
        Ok(Self { session: half(fields, at + 10), ..head(fields, 0, at, at + 8) })
    }
}

impl Reflected {
    /// Appends the packet.
    pub fn write(&self, mode: Mode<'_>, packet: &mut Vec<u8>) {
        let layout = mode.layout();
        let Self { sequence, timestamp, error, received, sent, ttl } = *self;
        let own = Sent { sequence, timestamp, error, session: sent.session };
        mode.write(packet, |fields| {
            fields.put(0, layout.timestamp, &own);
            fields.set(layout.received, received.0.to_be_bytes());
            fields.set(layout.sent_sequence, sent.sequence.to_be_bytes());
            fields.set(layout.sent_timestamp, sent.timestamp.0.to_be_bytes());
            fields.set(layout.sent_error, sent.error.0.to_be_bytes());
            fields.set(layout.ttl, [ttl]);
        });
    }

    /// Whether a datagram that a reflector receives is the answer of a reflector: it has a receive time, shortly before
    /// its transmit time. Senders of STAMP have zeros there; senders of TWAMP Light may have any bytes.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        let [received, sent] = [self.received, self.timestamp].map(|it| (it.0 >> 32) as u32);
        let turnaround = sent.wrapping_sub(received).cast_signed();
        self.received != Stamped(0) && (-1..=MAX_TURNAROUND).contains(&turnaround)
    }

    /// Parses a reflector's packet.
    ///
    /// # Errors
    /// See [`NotStamp`].
    pub fn parse(packet: &[u8], mode: Mode<'_>) -> Result<Self, NotStamp> {
        let (layout, fields) = (mode.layout(), mode.read(packet)?);
        let at = layout.timestamp;
        let Sent { sequence, timestamp, error, .. } = head(fields, 0, at, at + 8);
        let sent = head(fields, layout.sent_sequence, layout.sent_timestamp, layout.sent_error);
        Ok(Self {
            sequence,
            timestamp,
            error,
            received: Stamped(u64::from_be_bytes(bytes(fields, layout.received))),
            sent: Sent { session: half(fields, at + 10), ..sent },
            ttl: fields.get(layout.ttl).copied().unwrap_or(0),
        })
    }
}

/// The fields of a packet to be written.
struct Fields<'a>(&'a mut [u8]);

impl Fields<'_> {
    fn set<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        self.0[at..at + N].copy_from_slice(&value);
    }

    /// Writes the sequence number, and from `timestamp` on the time, the error estimate and the session.
    fn put(&mut self, sequence: usize, timestamp: usize, of: &Sent) {
        self.set(sequence, of.sequence.to_be_bytes());
        self.set(timestamp, of.timestamp.0.to_be_bytes());
        self.set(timestamp + 8, of.error.0.to_be_bytes());
        self.set(timestamp + 10, of.session.to_be_bytes());
    }
}

/// The common fields of both kinds of packet, without the session.
fn head(fields: &[u8], sequence: usize, timestamp: usize, error: usize) -> Sent {
    Sent {
        sequence: u32::from_be_bytes(bytes(fields, sequence)),
        timestamp: Stamped(u64::from_be_bytes(bytes(fields, timestamp))),
        error: ErrorEstimate(half(fields, error)),
        session: 0,
    }
}

fn half(fields: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(fields, at))
}

/// The bytes of a field; zeros beyond the end of a short packet.
fn bytes<const N: usize>(fields: &[u8], at: usize) -> [u8; N] {
    fields.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}
