//! Speech mode of AMR-WB payloads (RFC 4867 section 4).

/// Bits of a speech frame by mode, from 6.60 kbit/s (0) to 23.85 kbit/s (8): RFC 4867 section 3.6, 3GPP TS 26.201.
const SPEECH_BITS: [usize; 9] = [132, 177, 253, 285, 317, 365, 397, 461, 477];

/// Bits of a frame of comfort noise, frame type 9.
const COMFORT_NOISE_BITS: usize = 40;

/// Layout of a payload. The session description names it (`octet-align`), but it is often not captured.
#[derive(Clone, Copy)]
enum Layout {
    /// Section 4.3: the header has 4 bits, an entry 6; only the end is padded.
    BandwidthEfficient,
    /// Section 4.4, without interleaving, checksums and robust sorting: header, entries and frames are padded.
    OctetAligned,
}

/// Mode of the first speech frame, 0 (6.60 kbit/s) to 8 (23.85 kbit/s).
///
/// `payload` are the captured bytes, at least one for each frame and one more; `length` is the length on the wire. The
/// layout is that whose length the frames fill exactly. `None` without a speech frame (comfort noise, lost speech), and
/// where no layout fits, or both do with different modes.
#[must_use]
pub fn amr_wb_mode(payload: &[u8], length: usize) -> Option<u8> {
    let modes = [Layout::BandwidthEfficient, Layout::OctetAligned]
        .map(|layout| layout.mode(payload, length));
    match modes {
        [Some(one), Some(other)] => one.filter(|_| one == other),
        [mode, None] | [None, mode] => mode.flatten(),
    }
}

impl Layout {
    /// Mode of the first speech frame, if there is one; none if the payload has another layout.
    fn mode(self, payload: &[u8], length: usize) -> Option<Option<u8>> {
        let (header, entry_length) = match self {
            Self::BandwidthEfficient => (4, 6),
            Self::OctetAligned => (8, 8),
        };
        let (mut at, mut frames, mut mode) = (header, 0, None);
        loop {
            let entry = six_bits(payload, at)?;
            at += entry_length;
            let frame_type = entry >> 1 & 0x0f;
            frames += self.frame_bits(frame_type)?;
            mode = mode.or((usize::from(frame_type) < SPEECH_BITS.len()).then_some(frame_type));
            let is_last = entry & 0x20 == 0;
            if is_last {
                break;
            }
        }
        ((at + frames).div_ceil(8) == length).then_some(mode)
    }

    /// Bits of a frame with its padding; none for types that are reserved.
    fn frame_bits(self, frame_type: u8) -> Option<usize> {
        let bits = match frame_type {
            9 => COMFORT_NOISE_BITS,
            14 | 15 => 0, // lost speech, no data
            speech => *SPEECH_BITS.get(usize::from(speech))?,
        };
        Some(match self {
            Self::BandwidthEfficient => bits,
            Self::OctetAligned => bits.next_multiple_of(8),
        })
    }
}

/// Six bits from a position on, the first one highest.
fn six_bits(bytes: &[u8], at: usize) -> Option<u8> {
    let first = *bytes.get(at / 8)?;
    let second = if at % 8 > 2 { *bytes.get(at / 8 + 1)? } else { 0 };
    let shifted = u16::from_be_bytes([first, second]) << (at % 8) >> 10;
    u8::try_from(shifted).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A payload of frames of these types, in both layouts. The codec mode request is 15 (none), frames are good.
    fn payloads(types: &[u8]) -> [Vec<u8>; 2] {
        [(Layout::BandwidthEfficient, 4, 6), (Layout::OctetAligned, 8, 8)].map(
            |(layout, header, entry_length)| {
                let mut bits = vec![true; 4];
                bits.resize(header, false);
                for (place, frame_type) in types.iter().enumerate() {
                    bits.push(place + 1 < types.len());
                    bits.extend((0..4).rev().map(|bit| frame_type >> bit & 1 == 1));
                    bits.push(true);
                    bits.extend(vec![false; entry_length - 6]);
                }
                for frame_type in types {
                    let frame = layout.frame_bits(*frame_type).expect("a type in use");
                    bits.extend((0..frame).map(|bit| bit % 3 == 0));
                }
                bits.chunks(8)
                    .map(|byte| {
                        byte.iter().zip((0..8).rev()).map(|(bit, at)| u8::from(*bit) << at).sum()
                    })
                    .collect()
            },
        )
    }

    fn modes(types: &[u8]) -> [Option<u8>; 2] {
        payloads(types).map(|payload| amr_wb_mode(&payload, payload.len()))
    }

    #[test]
    fn mode_is_read_in_both_layouts() {
        for mode in 0..9 {
            assert_eq!(modes(&[mode]), [Some(mode); 2]);
            assert_eq!(modes(&[14, mode, 0]), [Some(mode); 2]);
        }
    }

    /// RFC 4867 section 3.6: 33 bytes of 12.65 kbit/s, bandwidth efficient, and one more, octet-aligned.
    #[test]
    fn payloads_have_the_usual_lengths() {
        assert_eq!(payloads(&[2]).map(|payload| payload.len()), [33, 34]);
    }

    #[test]
    fn noise_has_no_mode() {
        for types in [&[9][..], &[15], &[9, 14]] {
            assert_eq!(modes(types), [None; 2]);
        }
    }

    #[test]
    fn first_bytes_are_sufficient() {
        for payload in payloads(&[8, 8]) {
            assert_eq!(amr_wb_mode(&payload[..3], payload.len()), Some(8));
            assert_eq!(amr_wb_mode(&payload[..1], payload.len()), None);
            assert_eq!(amr_wb_mode(&payload, payload.len() + 1), None);
        }
    }

    proptest! {
        #[test]
        fn any_payload_has_a_mode_of_the_codec_or_none(
            payload in prop::collection::vec(any::<u8>(), 0..80), length in 0..100_usize,
        ) {
            prop_assert!(amr_wb_mode(&payload, length).is_none_or(|mode| mode < 9));
        }
    }
}
