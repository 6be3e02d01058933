//! UDP payload of a test packet.
//!
//! ```text
//!  0        4         6        8           16          24        32
//!  | "WSTP" | version | stream | sequence  | intended  | actual  | 0x20 0x21 ...
//! ```
//!
//! All numbers are big-endian; times are nanoseconds of UTC since 1970. The rest of the payload is
//! filled with the low byte of each byte's offset.
//!
//! The kernel writes the numbers of a live frame ([`crate::live`]), and has no UTC there: the actual
//! time is `CLOCK_MONOTONIC`, marked by an intended time of 0. A frame too short for this carries
//! version 2, the short form. Its sequence number has 40 bits (two days at 6 million packets per
//! second), its time 56 bits (until two years and three months after boot):
//!
//! ```text
//!  0        4         6          11       18
//!  | "WSTP" | version | sequence | actual | 0x12 0x13 ...
//! ```
//!
//! Live frames are distributed over flows in rotation, and numbered over all of them. The upper 14 bits
//! of the version field are the number of flows minus 1; 0 in all other packets.
//!
//! In a call or a video ([`crate::Pattern`]) an RTP header of 12 bytes precedes it.

use std::ops::Range;

use wirestamp_clock::{Domain, RawStamp, Time, Utc};
use wirestamp_packet::wstp::{self, LONG, MAGIC, SHORT, TestPacket, field, version_field};

use crate::rtp;

/// Offset of the sequence number's lowest byte in the UDP payload, for filters that select every
/// n-th packet.
pub const SEQUENCE_LOW_BYTE_OFFSET: u8 = 15;

/// The identity and the send times of a test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Number of the packet's stream.
    pub stream: u16,
    /// Number of the packet in the stream, from 0.
    pub sequence: u64,
    /// Intended send time: the deadline.
    pub intended: Time<Utc>,
    /// Actual send time: the clock's reading right before the system call. Not UTC for a live frame:
    /// see [`Payload::sent_monotonic`].
    pub actual: Time<Utc>,
}

impl Payload {
    /// Length of the fields: the min payload, except for short live frames.
    pub const MIN_BYTES: usize = wstp::LONG_BYTES;
    /// Length of the fields in the short form.
    pub(crate) const SHORT_BYTES: usize = wstp::SHORT_BYTES;
    /// The fields that differ from packet to packet.
    pub(crate) const CHANGING: Range<usize> = field::STREAM.start..field::ACTUAL.end;

    /// Fills `buffer` with the constant part: magic number, version, and the pattern after the fields.
    pub(crate) fn fill(buffer: &mut [u8]) {
        for (byte, value) in buffer.iter_mut().zip((0..=u8::MAX).cycle()) {
            *byte = value;
        }
        if buffer.len() >= Self::MIN_BYTES {
            buffer[field::MAGIC].copy_from_slice(&MAGIC);
            buffer[field::VERSION].copy_from_slice(&LONG.to_be_bytes());
        }
    }

    /// The initial payload of live frames, `length` bytes long: all numbers are 0 except that of the flows
    /// and the stream's, which the short form lacks. `None` if `length` is too short for the short form.
    pub(crate) fn live(stream: u16, flows: u16, length: usize) -> Option<Vec<u8>> {
        let mut buffer = vec![0; length];
        Self::fill(&mut buffer);
        if length >= Self::MIN_BYTES {
            let epoch = Time::from_nanos(0);
            Self { stream, sequence: 0, intended: epoch, actual: epoch }.write(&mut buffer);
            buffer[field::VERSION].copy_from_slice(&version_field(LONG, flows).to_be_bytes());
        } else {
            buffer.get_mut(field::SEQUENCE_AND_ACTUAL)?.fill(0);
            buffer[field::MAGIC].copy_from_slice(&MAGIC);
            buffer[field::VERSION].copy_from_slice(&version_field(SHORT, flows).to_be_bytes());
        }
        Some(buffer)
    }

    /// Send time of a live frame by `CLOCK_MONOTONIC`; `None` for a packet with UTC times.
    #[must_use]
    pub fn sent_monotonic(&self) -> Option<RawStamp> {
        let value = u64::try_from(self.actual.as_nanos()).ok()?;
        (self.intended.as_nanos() == 0).then_some(RawStamp { domain: Domain::Monotonic, value })
    }

    /// Writes the fields into a buffer prepared by [`Self::fill`].
    pub(crate) fn write(&self, buffer: &mut [u8]) {
        buffer[field::STREAM].copy_from_slice(&self.stream.to_be_bytes());
        buffer[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        buffer[field::INTENDED].copy_from_slice(&self.intended.as_nanos().to_be_bytes());
        buffer[field::ACTUAL].copy_from_slice(&self.actual.as_nanos().to_be_bytes());
    }

    /// Writes a whole payload: the fields, and the pattern in the rest of `buffer`.
    ///
    /// # Panics
    /// When `buffer` is shorter than [`Self::MIN_BYTES`].
    pub fn encode(&self, buffer: &mut [u8]) {
        Self::fill(buffer);
        self.write(buffer);
    }

    /// Reads the fields of a received payload, after an RTP header if there is one; `None` when it is not a test
    /// payload, or of another version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_at_checked(rtp::HEADER_BYTES) {
            Some((&[rtp::FLAGS, ..], after)) => Self::decode_fields(after),
            _ => Self::decode_fields(bytes),
        }
    }

    fn decode_fields(bytes: &[u8]) -> Option<Self> {
        let TestPacket { stream, sequence, intended_ns, actual_ns, .. } = TestPacket::parse(bytes)?;
        let [intended, actual] = [intended_ns, actual_ns].map(Time::from_nanos);
        Some(Self { stream, sequence, intended, actual })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoded_payload_decodes_to_itself(
            stream: u16, sequence: u64, intended: i64, actual: i64, length in 32_usize..1500,
        ) {
            let payload = Payload {
                stream,
                sequence,
                intended: Time::from_nanos(intended),
                actual: Time::from_nanos(actual),
            };
            let mut buffer = vec![0; length];
            payload.encode(&mut buffer);
            prop_assert_eq!(Payload::decode(&buffer), Some(payload));
            let low = buffer[usize::from(SEQUENCE_LOW_BYTE_OFFSET)];
            prop_assert_eq!(u64::from(low), sequence & 0xff);
        }

        #[test]
        fn decoding_arbitrary_bytes_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..64), ours: bool, short: bool,
        ) {
            let mut bytes = bytes;
            if ours && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(b"WSTP\0\x01");
                bytes[5] += u8::from(short);
            }
            let _ = Payload::decode(&bytes);
        }
    }

    #[test]
    fn foreign_and_newer_payloads_are_rejected() {
        let mut buffer = [0; 40];
        assert_eq!(Payload::decode(&buffer), None);
        buffer[..6].copy_from_slice(b"WSTP\0\x01");
        assert!(Payload::decode(&buffer).is_some());
        assert_eq!(Payload::decode(&buffer[..31]), None);
        buffer[..6].copy_from_slice(b"WSTP\0\x03");
        assert_eq!(Payload::decode(&buffer), None);
    }

    #[test]
    fn short_live_payload_uses_the_short_form() {
        let full = Payload::live(7, 1, 32).unwrap();
        let payload = Payload::decode(&full).unwrap();
        assert_eq!((payload.stream, payload.sequence), (7, 0));
        let sent = RawStamp { domain: Domain::Monotonic, value: 0 };
        assert_eq!(payload.sent_monotonic(), Some(sent));

        let mut short = Payload::live(7, 1, 31).unwrap();
        assert_eq!(short[18..20], [18, 19]);
        short[10] = 5; // the last of the sequence number
        short[11..18].fill(0xff);
        let payload = Payload::decode(&short).unwrap();
        assert_eq!((payload.stream, payload.sequence), (0, 5));
        assert_eq!(payload.sent_monotonic().unwrap().value, (1 << 56) - 1);
        assert_eq!(Payload::decode(&short[..17]), None);
        assert_eq!(Payload::live(7, 1, 17), None);
    }

    #[test]
    fn live_payload_has_the_number_of_flows() {
        for length in [31, 32] {
            for flows in [1, 8, 300] {
                let payload = Payload::live(7, flows, length).unwrap();
                let packet = TestPacket::parse(&payload).unwrap();
                assert_eq!(packet.flows.map(u16::from), Some(flows), "{length} bytes");
            }
        }
    }

    #[test]
    fn payload_after_an_rtp_header_is_decoded() {
        let time = Time::from_nanos(1_700_000_000_000_000_000);
        let payload = Payload { stream: 1, sequence: 2, intended: time, actual: time };
        let mut bytes = [0; 60];
        payload.encode(&mut bytes[rtp::HEADER_BYTES..]);
        assert_eq!(Payload::decode(&bytes), None);
        rtp::Encoding::G729.fill(1, &mut bytes);
        assert_eq!(Payload::decode(&bytes), Some(payload));
    }

    #[test]
    fn packet_with_utc_has_no_monotonic_time() {
        let time = Time::from_nanos(1_700_000_000_000_000_000);
        let payload = Payload { stream: 1, sequence: 2, intended: time, actual: time };
        assert_eq!(payload.sent_monotonic(), None);
    }

    #[test]
    fn rest_of_payload_counts_up() {
        let mut buffer = vec![0; 300];
        Payload::fill(&mut buffer);
        assert_eq!(buffer[32..34], [32, 33]);
        assert_eq!(buffer[255..257], [255, 0]);
    }
}
