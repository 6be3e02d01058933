//! What a test packet carries in its UDP payload.
//!
//! ```text
//!  0        4         6        8           16          24        32
//!  | "WSTP" | version | stream | sequence  | intended  | actual  | 0x20 0x21 ...
//! ```
//!
//! All numbers are big-endian; the times are nanoseconds of UTC since 1970. What is left of the
//! payload is filled with the low byte of each byte's offset.
//!
//! A live frame ([`crate::live`]) gets its numbers in the kernel, which has no UTC there: its
//! actual time is one of `CLOCK_MONOTONIC`, and its intended time is 0 to say so. Where a frame has
//! no room for all that, it carries version 2, in which the sequence number has 40 bits (two days at
//! 6 million packets a second) and the time 56 (two years and three months after boot):
//!
//! ```text
//!  0        4         6          11       18
//!  | "WSTP" | version | sequence | actual | 0x12 0x13 ...
//! ```

use std::ops::Range;

use thiserror::Error;
use wirestamp_clock::{Domain, RawStamp, Time, Utc};

/// Where each field is.
mod field {
    use super::Range;

    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: Range<usize> = 4..6;
    pub(super) const STREAM: Range<usize> = 6..8;
    pub(super) const SEQUENCE: Range<usize> = 8..16;
    pub(super) const INTENDED: Range<usize> = 16..24;
    pub(super) const ACTUAL: Range<usize> = 24..32;

    /// Of the brief form, both in one number.
    pub(super) const SEQUENCE_AND_ACTUAL: Range<usize> = 6..18;
}

/// Where in the UDP payload the lowest byte of the sequence number is: what a filter looks at that
/// picks every so many packets.
pub const SEQUENCE_LOW_BYTE_OFFSET: u8 = 15;

const MAGIC: [u8; 4] = *b"WSTP";
const VERSION: u16 = 1;
const BRIEF: u16 = 2;
/// Bits of the time in the brief form.
const BRIEF_TIME_BITS: u32 = 56;

/// The identity and the send times of a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Which stream the packet belongs to.
    pub stream: u16,
    /// Its number in the stream, from 0 up by one.
    pub sequence: u64,
    /// When it should have been sent.
    pub intended: Time<Utc>,
    /// When it was: the clock's reading right before the system call. That of a live frame is no
    /// UTC: [`Payload::sent_monotonic`].
    pub actual: Time<Utc>,
}

/// Why a UDP payload is none of ours.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PayloadError {
    /// Not long enough for the fields.
    #[error("{0} bytes are too short for a test payload of {min} or more", min = Payload::MIN_BYTES)]
    TooShort(usize),
    /// It does not begin with the mark of a test payload.
    #[error("not a test payload")]
    Foreign,
    /// A version that this program does not know.
    #[error("test payload of version {0}; this program knows up to {BRIEF}: update the older")]
    Version(u16),
}

impl Payload {
    /// Length of the fields: the shortest payload there is, but for that of short live frames.
    pub const MIN_BYTES: usize = field::ACTUAL.end;
    /// Length of the fields in the brief form of short live frames.
    pub(crate) const BRIEF_BYTES: usize = field::SEQUENCE_AND_ACTUAL.end;
    /// The fields that differ from packet to packet.
    pub(crate) const CHANGING: Range<usize> = field::STREAM.start..field::ACTUAL.end;

    /// Fills `buffer` with the constant part: mark, version, and the pattern behind the fields.
    pub(crate) fn fill(buffer: &mut [u8]) {
        for (byte, value) in buffer.iter_mut().zip((0..=u8::MAX).cycle()) {
            *byte = value;
        }
        if buffer.len() >= Self::MIN_BYTES {
            buffer[field::MAGIC].copy_from_slice(&MAGIC);
            buffer[field::VERSION].copy_from_slice(&VERSION.to_be_bytes());
        }
    }

    /// The payload of `length` bytes that live frames begin with, all numbers 0 except the stream's,
    /// which the brief form has no room for; `None` when even that is too long.
    pub(crate) fn live(stream: u16, length: usize) -> Option<Vec<u8>> {
        let mut buffer = vec![0; length];
        Self::fill(&mut buffer);
        if length >= Self::MIN_BYTES {
            let epoch = Time::from_nanos(0);
            Self { stream, sequence: 0, intended: epoch, actual: epoch }.write(&mut buffer);
        } else {
            buffer.get_mut(field::SEQUENCE_AND_ACTUAL)?.fill(0);
            buffer[field::MAGIC].copy_from_slice(&MAGIC);
            buffer[field::VERSION].copy_from_slice(&BRIEF.to_be_bytes());
        }
        Some(buffer)
    }

    /// When a live frame was sent, by `CLOCK_MONOTONIC`; `None` for a packet that tells it in UTC.
    #[must_use]
    pub fn sent_monotonic(&self) -> Option<RawStamp> {
        let value = u64::try_from(self.actual.as_nanos()).ok()?;
        (self.intended.as_nanos() == 0).then_some(RawStamp { domain: Domain::Monotonic, value })
    }

    /// Writes the fields into a buffer that [`Self::fill`] has prepared.
    pub(crate) fn write(&self, buffer: &mut [u8]) {
        buffer[field::STREAM].copy_from_slice(&self.stream.to_be_bytes());
        buffer[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        buffer[field::INTENDED].copy_from_slice(&self.intended.as_nanos().to_be_bytes());
        buffer[field::ACTUAL].copy_from_slice(&self.actual.as_nanos().to_be_bytes());
    }

    /// Writes a whole payload: fields, and the pattern in the rest of `buffer`.
    ///
    /// # Errors
    /// [`PayloadError::TooShort`] when `buffer` is shorter than [`Self::MIN_BYTES`]; it is left as
    /// it was.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<(), PayloadError> {
        if buffer.len() < Self::MIN_BYTES {
            return Err(PayloadError::TooShort(buffer.len()));
        }
        Self::fill(buffer);
        self.write(buffer);
        Ok(())
    }

    /// Reads the fields of a payload as it came off the wire.
    ///
    /// # Errors
    /// [`PayloadError`] when it is not one of ours. Never panics, whatever the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        if let Some((fields, _)) = bytes.split_first_chunk()
            && fields[field::MAGIC] == MAGIC
            && fields[field::VERSION] == BRIEF.to_be_bytes()
        {
            return Ok(Self::decode_brief(fields));
        }
        let Some((fields, _)) = bytes.split_first_chunk::<{ Self::MIN_BYTES }>() else {
            return Err(PayloadError::TooShort(bytes.len()));
        };
        if fields[field::MAGIC] != MAGIC {
            return Err(PayloadError::Foreign);
        }
        match u16::from_be_bytes(take(fields, field::VERSION)) {
            VERSION => {}
            other => return Err(PayloadError::Version(other)),
        }
        let time = |at| Time::from_nanos(i64::from_be_bytes(take(fields, at)));
        Ok(Self {
            stream: u16::from_be_bytes(take(fields, field::STREAM)),
            sequence: u64::from_be_bytes(take(fields, field::SEQUENCE)),
            intended: time(field::INTENDED),
            actual: time(field::ACTUAL),
        })
    }

    fn decode_brief(fields: &[u8; Self::BRIEF_BYTES]) -> Self {
        let mut both = [0; 16];
        both[4..].copy_from_slice(&fields[field::SEQUENCE_AND_ACTUAL]);
        let both = u128::from_be_bytes(both);
        let time_mask = (1 << BRIEF_TIME_BITS) - 1;
        Self {
            stream: 0,
            sequence: u64::try_from(both >> BRIEF_TIME_BITS).unwrap_or(u64::MAX),
            intended: Time::from_nanos(0),
            actual: Time::from_nanos(i64::try_from(both & time_mask).unwrap_or(i64::MAX)),
        }
    }
}

/// The bytes of one field, whose range is as long as the number it holds.
fn take<const N: usize>(fields: &[u8; Payload::MIN_BYTES], at: Range<usize>) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&fields[at]);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            stream: u16, sequence: u64, intended: i64, actual: i64, length in 32_usize..1500,
        ) {
            let payload = Payload {
                stream,
                sequence,
                intended: Time::from_nanos(intended),
                actual: Time::from_nanos(actual),
            };
            let mut buffer = vec![0; length];
            payload.encode(&mut buffer).unwrap();
            prop_assert_eq!(Payload::decode(&buffer), Ok(payload));
            let low = buffer[usize::from(SEQUENCE_LOW_BYTE_OFFSET)];
            prop_assert_eq!(u64::from(low), sequence & 0xff);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..64), ours: bool, brief: bool,
        ) {
            let mut bytes = bytes;
            if ours && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(b"WSTP\0\x01");
                bytes[5] += u8::from(brief);
            }
            let _ = Payload::decode(&bytes);
        }
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
        let mut buffer = [0; 40];
        assert_eq!(Payload::decode(&buffer[..31]), Err(PayloadError::TooShort(31)));
        assert_eq!(Payload::decode(&buffer), Err(PayloadError::Foreign));
        buffer[..6].copy_from_slice(b"WSTP\0\x03");
        assert_eq!(Payload::decode(&buffer), Err(PayloadError::Version(3)));
    }

    #[test]
    fn a_live_payload_has_its_numbers_in_the_form_it_has_room_for() {
        let full = Payload::live(7, 32).unwrap();
        let payload = Payload::decode(&full).unwrap();
        assert_eq!((payload.stream, payload.sequence), (7, 0));
        let sent = RawStamp { domain: Domain::Monotonic, value: 0 };
        assert_eq!(payload.sent_monotonic(), Some(sent));

        let mut brief = Payload::live(7, 31).unwrap();
        assert_eq!(brief[18..20], [18, 19]);
        brief[10] = 5; // the last of the sequence number
        brief[11..18].fill(0xff);
        let payload = Payload::decode(&brief).unwrap();
        assert_eq!((payload.stream, payload.sequence), (0, 5));
        assert_eq!(payload.sent_monotonic().unwrap().value, (1 << 56) - 1);
        assert_eq!(Payload::decode(&brief[..17]), Err(PayloadError::TooShort(17)));
        assert_eq!(Payload::live(7, 17), None);
    }

    #[test]
    fn a_packet_that_tells_utc_has_no_monotonic_time() {
        let time = Time::from_nanos(1_700_000_000_000_000_000);
        let payload = Payload { stream: 1, sequence: 2, intended: time, actual: time };
        assert_eq!(payload.sent_monotonic(), None);
    }

    #[test]
    fn the_rest_of_the_payload_counts_up() {
        let mut buffer = vec![0; 300];
        Payload::fill(&mut buffer);
        assert_eq!(buffer[32..34], [32, 33]);
        assert_eq!(buffer[255..257], [255, 0]);
    }
}
