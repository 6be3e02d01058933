//! What a test packet carries in its UDP payload.
//!
//! ```text
//!  0        4         6        8           16          24        32
//!  | "WSTP" | version | stream | sequence  | intended  | actual  | 0x20 0x21 ...
//! ```
//!
//! All numbers are big-endian; the times are nanoseconds of UTC since 1970. What is left of the
//! payload is filled with the low byte of each byte's offset.

use std::ops::Range;

use thiserror::Error;
use wirestamp_clock::{Time, Utc};

/// Where each field is.
mod field {
    use super::Range;

    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: Range<usize> = 4..6;
    pub(super) const STREAM: Range<usize> = 6..8;
    pub(super) const SEQUENCE: Range<usize> = 8..16;
    pub(super) const INTENDED: Range<usize> = 16..24;
    pub(super) const ACTUAL: Range<usize> = 24..32;
}

/// Where in the UDP payload the lowest byte of the sequence number is: what a filter looks at that
/// picks every so many packets.
pub const SEQUENCE_LOW_BYTE_OFFSET: u8 = 15;

const MAGIC: [u8; 4] = *b"WSTP";
const VERSION: u16 = 1;

/// The identity and the send times of a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Which stream the packet belongs to.
    pub stream: u16,
    /// Its number in the stream, from 0 up by one.
    pub sequence: u64,
    /// When it should have been sent.
    pub intended: Time<Utc>,
    /// When it was: the clock's reading right before the system call.
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
    #[error("test payload of version {0}; this program knows version {VERSION}: update the older")]
    Version(u16),
}

impl Payload {
    /// Length of the fields: the shortest payload there is.
    pub const MIN_BYTES: usize = field::ACTUAL.end;

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
            bytes in prop::collection::vec(any::<u8>(), 0..64), ours: bool,
        ) {
            let mut bytes = bytes;
            if ours && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(b"WSTP\0\x01");
            }
            let _ = Payload::decode(&bytes);
        }
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
        let mut buffer = [0; 40];
        assert_eq!(Payload::decode(&buffer[..31]), Err(PayloadError::TooShort(31)));
        assert_eq!(Payload::decode(&buffer), Err(PayloadError::Foreign));
        buffer[..6].copy_from_slice(b"WSTP\0\x02");
        assert_eq!(Payload::decode(&buffer), Err(PayloadError::Version(2)));
    }

    #[test]
    fn the_rest_of_the_payload_counts_up() {
        let mut buffer = vec![0; 300];
        Payload::fill(&mut buffer);
        assert_eq!(buffer[32..34], [32, 33]);
        assert_eq!(buffer[255..257], [255, 0]);
    }
}
