//! The `tracking` request of chronyd's command protocol, version 6, used since chronyd 2.0 (`candm.h` of its sources).
//!
//! | reply, at | octets | fields |
//! |---|---|---|
//! | 0 | 1, 1, 2 | version, 2 for a reply, reserved |
//! | 4 | 2, 2, 2 | request, kind of reply, status |
//! | 16 | 4 | sequence number of the request |
//! | 28 | 4 | reference identifier |
//! | 32 | 16, 2, 2 | reference address, its family, reserved |
//! | 52 | 2, 2, 12 | stratum, leap status, time of the last update |
//! | 68 | 9 times 4 | offset of the clock, last offset, its RMS, frequency, residual frequency, skew, root delay, root dispersion, interval |

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::status::{ClockSource, SyncStatus};
use crate::Span;
use crate::ratio::ceil_nanos;

/// Octets of a request and of its reply. chronyd requires equal lengths so that it cannot amplify traffic.
pub const TRACKING_LENGTH: usize = 104;

const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const REQUEST_TRACKING: u16 = 33;
const REPLY_TRACKING: u16 = 5;
/// Reference identifier of the machine's own clock (`local` in chronyd's configuration).
const LOCAL_REFERENCE: u32 = 0x7f7f_0101;
/// The leap status of a clock that is not synchronised (RFC 5905 section 7.3).
const UNSYNCHRONISED: u16 = 3;

/// Offsets of the fields in a reply.
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

/// Encodes a tracking request. The reply repeats `number`.
#[must_use]
pub fn tracking_request(number: u32) -> [u8; TRACKING_LENGTH] {
    let mut request = [0; TRACKING_LENGTH];
    request[0] = VERSION;
    request[1] = REQUEST;
    request[4..6].copy_from_slice(&REQUEST_TRACKING.to_be_bytes());
    request[8..12].copy_from_slice(&number.to_be_bytes());
    request
}

/// Error of [`Tracking::parse`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TrackingError {
    /// Wrong number of octets.
    #[error("{0} octets instead of {TRACKING_LENGTH}")]
    Length(usize),
    /// Unsupported version of the protocol.
    #[error("version {0} of chronyd's protocol instead of {VERSION}")]
    Version(u8),
    /// Reply to another request.
    #[error("the reply belongs to another request")]
    OtherRequest,
    /// Refusal by chronyd, with its status.
    #[error("chronyd refuses the request with status {0}")]
    Refused(u16),
}

/// Reference of chronyd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// No reference.
    None,
    /// The machine's own clock (`local` in the configuration).
    Local,
    /// A reference clock of this machine: `GPS`, `PPS`.
    Clock(String),
    /// An NTP server.
    Server(IpAddr),
    /// Identifier of a server without an address.
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

/// chronyd's tracking data of the system clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Reference that chronyd follows.
    pub reference: Reference,
    /// Distance from a clock with its own reference clock, which has stratum 1.
    pub stratum: u16,
    /// True if chronyd reports a synchronised clock.
    pub synchronised: bool,
    /// System clock minus chronyd's estimate of the time.
    pub offset: Span,
    /// Round-trip delay to the root clock.
    pub root_delay: Span,
    /// Further error accumulated on the way to the root clock.
    pub root_dispersion: Span,
}

impl Tracking {
    /// Parses the reply to request `number`.
    ///
    /// # Errors
    /// [`TrackingError`].
    pub fn parse(reply: &[u8], number: u32) -> Result<Self, TrackingError> {
        let length = TrackingError::Length(reply.len());
        let reply = Reply(reply.try_into().map_err(|_| length)?);
        let [version] = reply.octets(field::VERSION);
        if version != VERSION {
            return Err(TrackingError::Version(version));
        }
        if reply.octets(field::KIND) != [REPLY]
            || reply.short(field::COMMAND) != REQUEST_TRACKING
            || reply.word(field::SEQUENCE) != number
        {
            return Err(TrackingError::OtherRequest);
        }
        match (reply.short(field::STATUS), reply.short(field::REPLY)) {
            (0, REPLY_TRACKING) => {}
            (0, _) => return Err(TrackingError::OtherRequest),
            (status, _) => return Err(TrackingError::Refused(status)),
        }
        Ok(Self {
            reference: reply.reference(),
            stratum: reply.short(field::STRATUM),
            synchronised: reply.short(field::LEAP) < UNSYNCHRONISED,
            // chronyd's sign: positive if the clock is behind.
            offset: -reply.seconds(field::CORRECTION),
            root_delay: reply.seconds(field::ROOT_DELAY),
            root_dispersion: reply.seconds(field::ROOT_DISPERSION),
        })
    }

    /// Bound of the distance from UTC if the root clock is right: offset, root dispersion and half of the root
    /// delay (chronyc(1), `tracking`). None if chronyd is not synchronised or follows the machine's own clock,
    /// which is not UTC.
    #[must_use]
    pub fn error(&self) -> Option<Span> {
        let follows = !matches!(self.reference, Reference::None | Reference::Local);
        let delay = self.root_delay.abs().as_nanos();
        let half = Span::from_nanos(delay / 2 + delay % 2);
        let error = self.offset.abs() + self.root_dispersion.abs() + half;
        (self.synchronised && follows).then_some(error)
    }

    /// Sync status that chronyd reports.
    #[must_use]
    pub fn status(&self) -> SyncStatus {
        SyncStatus {
            clock_source: ClockSource::Chrony,
            reference: Some(self.reference.to_string()),
            stratum: Some(self.stratum),
            offset: self.offset,
            error: self.error(),
        }
    }
}

/// An unparsed reply of the right length.
struct Reply<'a>(&'a [u8; TRACKING_LENGTH]);

impl Reply<'_> {
    /// `N` octets from `at`; all fields lie within the reply.
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
            (0, LOCAL_REFERENCE) => Reference::Local,
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

    /// Seconds in chronyd's floating-point format: a signed exponent of 7 bits and a signed coefficient of
    /// 25 bits. The value is `coefficient * 2^(exponent - 25)`.
    fn seconds(&self, at: usize) -> Span {
        let bits = self.word(at).cast_signed();
        let (exponent, coefficient) = (bits >> 25, bits << 7 >> 7);
        let nanos = f64::from(coefficient) * f64::from(exponent - 25).exp2() * 1e9;
        // Rounded away from zero, because the result is part of a bound.
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
    fn tracking_reply_is_parsed() {
        let gps = Tracking::parse(&reply(*b"GPS\0", 0, 0, seconds()), 7).unwrap();
        let expected = Tracking {
            reference: Reference::Clock("GPS".to_owned()),
            stratum: 1,
            synchronised: true,
            offset: Span::from_millis(-500),
            root_delay: Span::from_millis(250),
            root_dispersion: Span::from_millis(125),
        };
        assert_eq!((gps.error(), &gps), (Some(Span::from_millis(750)), &expected));
        let behind = float(-(1 << 23), 1);
        let server =
            Tracking::parse(&reply([1; 4], 1, 1, [behind, 0, 0, 0, 0, 0, 0, 0, 0]), 7).unwrap();
        assert_eq!(server.offset, Span::from_millis(500));
        assert_eq!(server.reference.to_string(), "192.0.2.1");
    }

    #[test]
    fn clock_without_external_reference_has_no_error_bound() {
        for (reference, leap) in [([0; 4], 0), ([127, 127, 1, 1], 0), (*b"GPS\0", 3)] {
            let tracking = Tracking::parse(&reply(reference, 0, leap, seconds()), 7).unwrap();
            assert_eq!(tracking.error(), None, "{tracking:?}");
        }
    }

    #[test]
    fn invalid_replies_are_rejected() {
        let good = reply(*b"GPS\0", 0, 0, seconds());
        let changed = |at: usize, octet: u8| {
            let mut reply = good.clone();
            reply[at] = octet;
            Tracking::parse(&reply, 7).unwrap_err()
        };
        assert_eq!(Tracking::parse(&good[1..], 7), Err(TrackingError::Length(103)));
        assert_eq!(changed(0, 5), TrackingError::Version(5));
        assert_eq!(changed(1, 1), TrackingError::OtherRequest);
        assert_eq!(changed(5, 34), TrackingError::OtherRequest);
        assert_eq!(changed(7, 6), TrackingError::OtherRequest);
        assert_eq!(changed(9, 2), TrackingError::Refused(2));
        assert_eq!(Tracking::parse(&good, 8), Err(TrackingError::OtherRequest));
        assert_eq!(tracking_request(7)[..12], [6, 1, 0, 0, 0, 33, 0, 0, 0, 0, 0, 7]);
    }

    proptest! {
        #[test]
        fn floats_are_parsed_within_their_last_bit(
            coefficient in -(1_i32 << 24)..1 << 24,
            exponent in -64_i32..64,
        ) {
            let seconds = [float(coefficient, exponent); 9];
            let tracking = Tracking::parse(&reply(*b"PPS\0", 0, 0, seconds), 7).unwrap();
            let expected = f64::from(coefficient) * f64::from(exponent - 25).exp2() * 1e9;
            if expected.abs() < 9e18 {
                let off = approx(tracking.root_delay.as_nanos().unsigned_abs()) - expected.abs();
                prop_assert!(off.abs() <= 1.0 + expected.abs() * 1e-15, "{off}");
            }
            prop_assert_eq!(tracking.offset, -tracking.root_delay);
            prop_assert!(tracking.error().unwrap() >= tracking.offset.abs());
        }

        #[test]
        fn arbitrary_octets_do_not_panic(octets in prop::collection::vec(any::<u8>(), 0..120), number: u32) {
            if let Ok(tracking) = Tracking::parse(&octets, number) {
                prop_assert!(tracking.error().is_none_or(|error| error >= Span::ZERO));
            }
        }

        #[test]
        fn arbitrary_fields_do_not_panic(octets: [u8; 76]) {
            let mut reply = reply(*b"GPS\0", 0, 0, [0; 9]);
            reply[28..].copy_from_slice(&octets);
            let tracking = Tracking::parse(&reply, 7).unwrap().status();
            prop_assert!(tracking.error.is_none_or(|error| error >= Span::ZERO));
        }
    }
}
