//! What chronyd says when it is asked how right the clock is: the request `tracking` of its command
//! protocol, version 6, which chronyd has spoken since 2.0 (`candm.h` of its sources).
//!
//! | reply, at | octets | what |
//! |---|---|---|
//! | 0 | 1, 1, 2 | version, 2 for a reply, nothing |
//! | 4 | 2, 2, 2 | the request, the kind of reply, the status |
//! | 16 | 4 | the number of the request |
//! | 28 | 4 | the reference |
//! | 32 | 16, 2, 2 | its address, which family that is of, nothing |
//! | 52 | 2, 2, 12 | stratum, leap second, when it was updated |
//! | 68 | 9 times 4 | offset of the clock, last offset, its RMS, frequency, residual frequency, skew, root delay, root dispersion, interval |

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::{Keeper, Statement};
use crate::Span;
use crate::ratio::ceil_nanos;

/// Octets of a request, and of a reply to it: what is asked has to be as long as what is answered, so that
/// nobody makes chronyd multiply traffic.
pub const TRACKING_LENGTH: usize = 104;

const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REQUEST_TRACKING: u16 = 33;
const REPLY_TRACKING: u16 = 5;
/// What `local` in chronyd's configuration gives as the reference: the clock itself.
const LOCAL: u32 = 0x7f7f_0101;
/// The leap status of a clock that is not synchronised (RFC 5905 section 7.3).
const UNSYNCHRONISED: u16 = 3;

/// Where the fields of a reply are.
mod field {
    pub(super) const VERSION: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const COMMAND: usize = 4;
    pub(super) const REPLY: usize = 6;
    pub(super) const STATUS: usize = 8;
    pub(super) const SEQUENCE: usize = 16;
    pub(super) const REFERENCE: usize = 28;
    pub(super) const ADDRESS: usize = 32;
    pub(super) const FAMILY: usize = 48;
    pub(super) const STRATUM: usize = 52;
    pub(super) const LEAP: usize = 54;
    pub(super) const CORRECTION: usize = 68;
    pub(super) const ROOT_DELAY: usize = 92;
    pub(super) const ROOT_DISPERSION: usize = 96;
}

/// Asks how right the clock is; the reply has the same number.
#[must_use]
pub fn tracking_request(number: u32) -> [u8; TRACKING_LENGTH] {
    let mut request = [0; TRACKING_LENGTH];
    request[0] = VERSION;
    request[1] = REQUEST;
    request[4..6].copy_from_slice(&REQUEST_TRACKING.to_be_bytes());
    request[8..12].copy_from_slice(&number.to_be_bytes());
    request
}

/// Why something is no reply.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotTracking {
    /// It is shorter or longer.
    #[error("{0} octets, and not {TRACKING_LENGTH}")]
    Length(usize),
    /// It is of another version of the protocol.
    #[error("version {0} of chronyd's protocol, and not {VERSION}")]
    Version(u8),
    /// It does not answer this request.
    #[error("no answer to what was asked")]
    Other,
    /// chronyd does not say.
    #[error("chronyd refuses, with status {0}")]
    Refused(u16),
}

/// What chronyd follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Nothing.
    None,
    /// This machine's own clock, because it is configured to (`local`).
    Local,
    /// A clock at this machine, by its name: `GPS`, `PPS`.
    Clock(String),
    /// A server of NTP.
    Server(IpAddr),
    /// A server whose address is not known.
    Unresolved(u32),
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("nothing"),
            Self::Local => out.write_str("itself"),
            Self::Clock(name) => out.write_str(name),
            Self::Server(address) => address.fmt(out),
            Self::Unresolved(number) => write!(out, "{number:08X}"),
        }
    }
}

/// What chronyd knows of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// What it follows.
    pub reference: Reference,
    /// How many steps that is away from a clock that knows the time: 1 next to one.
    pub stratum: u16,
    /// Whether it says that the clock is synchronised.
    pub synchronised: bool,
    /// How far the system clock is ahead of what chronyd takes for the time.
    pub ahead: Span,
    /// The time to the clock that knows the time and back.
    pub root_delay: Span,
    /// How far everything between may be off besides.
    pub root_dispersion: Span,
}

impl Tracking {
    /// Reads the reply to the request of this number.
    ///
    /// # Errors
    /// [`NotTracking`].
    pub fn parse(reply: &[u8], number: u32) -> Result<Self, NotTracking> {
        let length = NotTracking::Length(reply.len());
        let reply = Reply(reply.try_into().map_err(|_| length)?);
        let [version] = reply.octets(field::VERSION);
        if version != VERSION {
            return Err(NotTracking::Version(version));
        }
        if reply.octets(field::KIND) != [REPLY]
            || reply.short(field::COMMAND) != REQUEST_TRACKING
            || reply.word(field::SEQUENCE) != number
        {
            return Err(NotTracking::Other);
        }
        match (reply.short(field::STATUS), reply.short(field::REPLY)) {
            (0, REPLY_TRACKING) => {}
            (0, _) => return Err(NotTracking::Other),
            (status, _) => return Err(NotTracking::Refused(status)),
        }
        Ok(Self {
            reference: reply.reference(),
            stratum: reply.short(field::STRATUM),
            synchronised: reply.short(field::LEAP) < UNSYNCHRONISED,
            // It says how far the clock is behind.
            ahead: -reply.seconds(field::CORRECTION),
            root_delay: reply.seconds(field::ROOT_DELAY),
            root_dispersion: reply.seconds(field::ROOT_DISPERSION),
        })
    }

    /// How far the clock can be from UTC, if the clock at the root is right: the offset, the root dispersion,
    /// and half of the root delay (chronyc(1), `tracking`). None if nobody says that it is on UTC; chronyd
    /// that follows the machine's own clock claims to be right, and knows nothing of UTC.
    #[must_use]
    pub fn error(&self) -> Option<Span> {
        let follows = !matches!(self.reference, Reference::None | Reference::Local);
        let delay = self.root_delay.abs().as_nanos();
        let half = Span::from_nanos(delay / 2 + delay % 2);
        let error = self.ahead.abs() + self.root_dispersion.abs() + half;
        (self.synchronised && follows).then_some(error)
    }

    /// That of the clock.
    #[must_use]
    pub fn statement(&self) -> Statement {
        Statement {
            by: Keeper::Chrony,
            source: Some(self.reference.to_string()),
            stratum: Some(self.stratum),
            ahead: self.ahead,
            error: self.error(),
        }
    }
}

/// A reply as it came.
struct Reply<'a>(&'a [u8; TRACKING_LENGTH]);

impl Reply<'_> {
    /// Those from a place on; all fields lie within.
    fn octets<const N: usize>(&self, at: usize) -> [u8; N] {
        let octets = self.0.get(at..).and_then(|rest| rest.first_chunk());
        octets.copied().unwrap_or([0; N])
    }

    fn short(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.octets(at))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.octets(at))
    }

    fn reference(&self) -> Reference {
        let number = self.word(field::REFERENCE);
        match (self.short(field::FAMILY), number) {
            (0, 0) => Reference::None,
            (0, LOCAL) => Reference::Local,
            (0, _) => {
                let name = self.octets::<4>(field::REFERENCE);
                let name = name.iter().filter(|it| it.is_ascii_graphic());
                Reference::Clock(name.copied().map(char::from).collect())
            }
            (1, _) => Reference::Server(Ipv4Addr::from(self.octets::<4>(field::ADDRESS)).into()),
            (2, _) => Reference::Server(Ipv6Addr::from(self.octets::<16>(field::ADDRESS)).into()),
            _ => Reference::Unresolved(number),
        }
    }

    /// Seconds in chronyd's own format: 7 bits of a signed exponent and 25 bits of a signed coefficient, of
    /// which the value is `coefficient * 2^(exponent - 25)`.
    fn seconds(&self, at: usize) -> Span {
        let bits = self.word(at).cast_signed();
        let (exponent, coefficient) = (bits >> 25, bits << 7 >> 7);
        let nanos = f64::from(coefficient) * f64::from(exponent - 25).exp2() * 1e9;
        // Away from zero: what it is part of is a bound.
        let size = Span::from_nanos(ceil_nanos(nanos.abs()));
        if nanos < 0.0 { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ratio::approx;

    /// A reply to request 7.
    fn reply(reference: [u8; 4], family: u16, leap: u16, seconds: [u32; 9]) -> Vec<u8> {
        let mut reply = vec![6, 2, 0, 0, 0, 33, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        reply.extend([0; 8]);
        reply.extend(reference);
        reply.extend([192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        reply.extend([family.to_be_bytes(), [0; 2], [0, 1], leap.to_be_bytes()].concat());
        reply.extend([0; 12]);
        reply.extend(seconds.into_iter().flat_map(u32::to_be_bytes));
        reply
    }

    /// `coefficient * 2^(exponent - 25)` s.
    fn float(coefficient: i32, exponent: i32) -> u32 {
        ((exponent << 25) | (coefficient & 0x1ff_ffff)).cast_unsigned()
    }

    /// 0.5 s behind, a root delay of 0.25 s and a root dispersion of 0.125 s.
    fn seconds() -> [u32; 9] {
        let [half, quarter, eighth] = [1, 0, -1].map(|exponent| float(1 << 23, exponent));
        [half, 0, 0, 0, 0, 0, quarter, eighth, 0]
    }

    #[test]
    fn what_chronyd_says_is_read() {
        let gps = Tracking::parse(&reply(*b"GPS\0", 0, 0, seconds()), 7).unwrap();
        let expected = Tracking {
            reference: Reference::Clock("GPS".to_owned()),
            stratum: 1,
            synchronised: true,
            ahead: Span::from_millis(-500),
            root_delay: Span::from_millis(250),
            root_dispersion: Span::from_millis(125),
        };
        assert_eq!((gps.error(), &gps), (Some(Span::from_millis(750)), &expected));
        let behind = float(-(1 << 23), 1);
        let server =
            Tracking::parse(&reply([1; 4], 1, 1, [behind, 0, 0, 0, 0, 0, 0, 0, 0]), 7).unwrap();
        assert_eq!(server.ahead, Span::from_millis(500));
        assert_eq!(server.reference.to_string(), "192.0.2.1");
    }

    #[test]
    fn a_clock_that_follows_nothing_is_on_no_time() {
        for (reference, leap) in [([0; 4], 0), ([127, 127, 1, 1], 0), (*b"GPS\0", 3)] {
            let said = Tracking::parse(&reply(reference, 0, leap, seconds()), 7).unwrap();
            assert_eq!(said.error(), None, "{said:?}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let good = reply(*b"GPS\0", 0, 0, seconds());
        let changed = |at: usize, octet: u8| {
            let mut reply = good.clone();
            reply[at] = octet;
            Tracking::parse(&reply, 7).unwrap_err()
        };
        assert_eq!(Tracking::parse(&good[1..], 7), Err(NotTracking::Length(103)));
        assert_eq!(changed(0, 5), NotTracking::Version(5));
        assert_eq!(changed(1, 1), NotTracking::Other);
        assert_eq!(changed(5, 34), NotTracking::Other);
        assert_eq!(changed(7, 6), NotTracking::Other);
        assert_eq!(changed(9, 2), NotTracking::Refused(2));
        assert_eq!(Tracking::parse(&good, 8), Err(NotTracking::Other));
        assert_eq!(tracking_request(7)[..12], [6, 1, 0, 0, 0, 33, 0, 0, 0, 0, 0, 7]);
    }

    proptest! {
        #[test]
        fn every_number_is_read_within_its_last_bit(
            coefficient in -(1_i32 << 24)..1 << 24,
            exponent in -64_i32..64,
        ) {
            let seconds = [float(coefficient, exponent); 9];
            let said = Tracking::parse(&reply(*b"PPS\0", 0, 0, seconds), 7).unwrap();
            let wanted = f64::from(coefficient) * f64::from(exponent - 25).exp2() * 1e9;
            if wanted.abs() < 9e18 {
                let off = approx(said.root_delay.as_nanos().unsigned_abs()) - wanted.abs();
                prop_assert!(off.abs() <= 1.0 + wanted.abs() * 1e-15, "{off}");
            }
            prop_assert_eq!(said.ahead, -said.root_delay);
            prop_assert!(said.error().unwrap() >= said.ahead.abs());
        }

        #[test]
        fn no_octets_harm(octets in prop::collection::vec(any::<u8>(), 0..120), number: u32) {
            if let Ok(said) = Tracking::parse(&octets, number) {
                prop_assert!(said.error().is_none_or(|error| error >= Span::ZERO));
            }
        }

        #[test]
        fn no_reply_harms(octets: [u8; 76]) {
            let mut reply = reply(*b"GPS\0", 0, 0, [0; 9]);
            reply[28..].copy_from_slice(&octets);
            let said = Tracking::parse(&reply, 7).unwrap().statement();
            prop_assert!(said.error.is_none_or(|error| error >= Span::ZERO));
        }
    }
}
