//! RTP header of test packets that imitate a call or a video (RFC 3550 section 5.1).
//!
//! The test payload follows the header.

use std::ops::Range;

use wirestamp_clock::Span;

/// Bytes of the header: no contributing sources, no extension.
pub(crate) const HEADER_BYTES: usize = 12;

/// The fields that differ from packet to packet: sequence number and timestamp.
pub(crate) const CHANGING: Range<usize> = 2..8;

/// Offset of the sequence number's lower byte.
pub(crate) const SEQUENCE_LOW_BYTE_OFFSET: u8 = 3;

/// Version 2 without padding, extension and contributing sources.
pub(crate) const FLAGS: u8 = 0x80;

/// The SSRC of stream 0. That of another stream is larger by its number.
const FIRST_SSRC: u32 = 0x5753_0000;

/// A payload type and its clock (RFC 3551 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    payload_type: u8,
    clock_hz: u32,
}

impl Encoding {
    /// Speech, 8 kbit/s.
    pub(crate) const G729: Self = Self { payload_type: 18, clock_hz: 8_000 };
    /// An MPEG-2 transport stream.
    pub(crate) const MP2T: Self = Self { payload_type: 33, clock_hz: 90_000 };

    /// Writes the constant fields at the beginning of `payload`.
    pub(crate) fn fill(self, stream: u16, payload: &mut [u8]) {
        payload[0] = FLAGS;
        payload[1] = self.payload_type;
        let ssrc = FIRST_SSRC + u32::from(stream);
        payload[CHANGING.end..HEADER_BYTES].copy_from_slice(&ssrc.to_be_bytes());
    }

    /// Writes sequence number and timestamp of the packet that is due `offset` after the start of sending.
    pub(crate) fn write(self, sequence: u64, offset: Span, payload: &mut [u8]) {
        let [.., high, low] = sequence.to_be_bytes();
        let ticks = i128::from(offset.as_nanos()) * i128::from(self.clock_hz) / 1_000_000_000;
        let [.., a, b, c, d] = ticks.to_be_bytes();
        payload[CHANGING].copy_from_slice(&[high, low, a, b, c, d]);
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_packet::rtp::Rtp;

    use super::*;

    #[test]
    fn header_is_parsed_as_rtp() {
        let mut payload = [0; 98];
        Encoding::G729.fill(7, &mut payload);
        for (sequence, expected, timestamp) in [(0, 0, 0), (3, 3, 480), (65_538, 2, 10_486_080)] {
            let offset = Span::from_millis(20 * i64::try_from(sequence).unwrap());
            Encoding::G729.write(sequence, offset, &mut payload);
            let rtp = Rtp::parse(&payload, payload.len()).unwrap();
            assert_eq!((rtp.payload_type(), rtp.ssrc()), (18, FIRST_SSRC + 7));
            assert_eq!((rtp.sequence(), rtp.timestamp()), (expected, timestamp));
            assert_eq!(rtp.payload_range(), Some(HEADER_BYTES..98));
        }
    }

    #[test]
    fn timestamp_wraps() {
        let mut payload = [0; HEADER_BYTES];
        let offset = Span::from_secs(100_000);
        Encoding::MP2T.write(1, offset, &mut payload);
        let timestamp = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
        assert_eq!(u64::from(timestamp), 9_000_000_000 % (1 << 32));
    }
}
