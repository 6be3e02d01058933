//! A view over the test packets of `wirestamp send`.
//!
//! ```text
//!  0        4         6        8           16          24        32
//!  | "WSTP" | version | stream | sequence  | intended  | actual  | ...
//! ```
//!
//! All numbers are big-endian; times are nanoseconds of UTC since 1970. In frames that the kernel fills in, the actual time is
//! `CLOCK_MONOTONIC`, and the intended one is 0. Short frames have version 2, with a sequence number of 40 bits and a time
//! of 56 bits:
//!
//! ```text
//!  0        4         6          11       18
//!  | "WSTP" | version | sequence | actual | ...
//! ```
//!
//! The kernel distributes its frames over flows in rotation, and numbers them over all flows. The version field
//! therefore also has the number of flows minus 1, in its upper 14 bits. All others have 0 there.

use std::num::{NonZeroU16, NonZeroU64};
use std::ops::Range;

/// The first bytes.
pub const MAGIC: [u8; 4] = *b"WSTP";
/// Version of the long form.
pub const LONG: u16 = 1;
/// Version of the short form.
pub const SHORT: u16 = 2;
/// Bits of the version in its field, below those of the flows.
const VERSION_BITS: u32 = 2;
/// Value of the bits of the flows where there are more than fit.
const MANY_FLOWS: u16 = u16::MAX >> VERSION_BITS;
/// Length of the fields in the long form.
pub const LONG_BYTES: usize = field::ACTUAL.end;
/// Length of the fields in the short form.
pub const SHORT_BYTES: usize = field::SEQUENCE_AND_ACTUAL.end;

/// Bits of the time in the short form.
const SHORT_TIME_BITS: u32 = 56;

/// Offsets of the fields.
pub mod field {
    use super::Range;

    /// [`super::MAGIC`]
    pub const MAGIC: Range<usize> = 0..4;
    /// [`super::version_field`]
    pub const VERSION: Range<usize> = 4..6;
    /// Number of the stream.
    pub const STREAM: Range<usize> = 6..8;
    /// Number of the packet in the stream, over all flows, from 0.
    pub const SEQUENCE: Range<usize> = 8..16;
    /// Intended send time.
    pub const INTENDED: Range<usize> = 16..24;
    /// Actual send time.
    pub const ACTUAL: Range<usize> = 24..32;
    /// Short form: both in one number.
    pub const SEQUENCE_AND_ACTUAL: Range<usize> = 6..18;
}

/// The fields of a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// Number of the stream; 0 in the short form.
    pub stream: u16,
    /// Number of the packet in the stream, over all flows, from 0.
    pub sequence: u64,
    /// Flows that the packets of the stream belong to in rotation. None for 16,384 or more.
    pub flows: Option<NonZeroU16>,
    /// Intended send time in nanoseconds; 0 where the actual time is `CLOCK_MONOTONIC`.
    pub intended_ns: i64,
    /// Actual send time in nanoseconds.
    pub actual_ns: i64,
}

/// Version field of a form whose packets are distributed over this number of flows.
#[must_use]
pub fn version_field(version: u16, flows: u16) -> u16 {
    version | flows.saturating_sub(1).min(MANY_FLOWS) << VERSION_BITS
}

impl TestPacket {
    /// Number of the packet in its flow, from 0; none if the number of flows is unknown.
    #[must_use]
    pub fn sequence_in_flow(&self) -> Option<u64> {
        Some(self.sequence / NonZeroU64::from(self.flows?))
    }

    /// Parses the fields at the begin of a payload; `None` if it is not a test packet, or of another version.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let head = payload.first_chunk::<SHORT_BYTES>()?;
        if head[field::MAGIC] != MAGIC {
            return None;
        }
        let version = u16::from_be_bytes(*head[field::VERSION].first_chunk()?);
        let flows = Some(version >> VERSION_BITS).filter(|others| *others < MANY_FLOWS);
        let flows = flows.and_then(|others| NonZeroU16::new(others + 1));
        let version = version & ((1 << VERSION_BITS) - 1);
        if version == SHORT {
            return Some(Self { flows, ..Self::short(head) });
        }
        let fields = payload.first_chunk::<LONG_BYTES>()?;
        (version == LONG).then(|| Self {
            flows,
            stream: u16::from_be_bytes(take(fields, field::STREAM)),
            sequence: u64::from_be_bytes(take(fields, field::SEQUENCE)),
            intended_ns: i64::from_be_bytes(take(fields, field::INTENDED)),
            actual_ns: i64::from_be_bytes(take(fields, field::ACTUAL)),
        })
    }

    fn short(fields: &[u8; SHORT_BYTES]) -> Self {
        let mut both = [0; 16];
        both[4..].copy_from_slice(&fields[field::SEQUENCE_AND_ACTUAL]);
        let both = u128::from_be_bytes(both);
        let time_mask = (1 << SHORT_TIME_BITS) - 1;
        Self {
            stream: 0,
            flows: None,
            sequence: u64::try_from(both >> SHORT_TIME_BITS).unwrap_or(u64::MAX),
            intended_ns: 0,
            actual_ns: i64::try_from(both & time_mask).unwrap_or(i64::MAX),
        }
    }
}

/// The bytes of one field.
fn take<const N: usize>(fields: &[u8; LONG_BYTES], at: Range<usize>) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&fields[at]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed_and_others_rejected() {
        let mut long = [0; LONG_BYTES];
        long[..8].copy_from_slice(b"WSTP\0\x01\0\x07");
        (long[15], long[23], long[31]) = (5, 6, 8);
        let flows = NonZeroU16::new(1);
        let parsed = TestPacket { stream: 7, sequence: 5, flows, intended_ns: 6, actual_ns: 8 };
        assert_eq!(TestPacket::parse(&long), Some(parsed));
        assert_eq!(TestPacket::parse(&long[..LONG_BYTES - 1]), None);
        let mut short = [0; SHORT_BYTES];
        short[..6].copy_from_slice(b"WSTP\0\x02");
        (short[10], short[17]) = (5, 8);
        let parsed = TestPacket { stream: 0, sequence: 5, flows, intended_ns: 0, actual_ns: 8 };
        assert_eq!(TestPacket::parse(&short), Some(parsed));
        assert_eq!(TestPacket::parse(&short[..SHORT_BYTES - 1]), None);
        long[5] = 3;
        assert_eq!(TestPacket::parse(&long), None);
        assert_eq!(TestPacket::parse(&[0; 40]), None);
    }

    #[test]
    fn packets_are_numbered_in_each_of_several_flows() {
        for (version, bytes, low) in [(LONG, LONG_BYTES, 15), (SHORT, SHORT_BYTES, 10)] {
            let parse = |flows| {
                let mut payload = vec![0; bytes];
                payload[field::MAGIC].copy_from_slice(&MAGIC);
                let version = version_field(version, flows).to_be_bytes();
                payload[field::VERSION].copy_from_slice(&version);
                payload[low] = 203;
                TestPacket::parse(&payload).expect("a test packet")
            };
            for (flows, expected) in [(0, 203), (1, 203), (2, 101), (4, 50), (16_383, 0)] {
                assert_eq!(parse(flows).sequence_in_flow(), Some(expected), "{flows} flows");
            }
            for flows in [16_384, u16::MAX] {
                assert_eq!((parse(flows).flows, parse(flows).sequence), (None, 203));
                assert_eq!(parse(flows).sequence_in_flow(), None);
            }
        }
    }
}
