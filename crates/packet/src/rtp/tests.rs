use proptest::prelude::*;

use super::*;

/// PCMU, sequence number 0x1234, timestamp 160, two bytes of payload.
const CALL: [u8; 14] = [0x80, 0, 0x12, 0x34, 0, 0, 0, 160, 0xde, 0xad, 0xbe, 0xef, 7, 8];

fn parse(bytes: &[u8]) -> Option<Rtp<'_>> {
    Rtp::parse(bytes, bytes.len())
}

/// The call's packet with other first two bytes, and with `rest` instead of its payload.
fn packet(flags: u8, second: u8, rest: &[u8]) -> Vec<u8> {
    [&[flags, second], &CALL[2..12], rest].concat()
}

#[test]
fn packet_of_a_call_is_parsed() {
    let rtp = parse(&CALL).expect("RTP");
    assert_eq!((rtp.payload_type(), rtp.marker()), (0, false));
    assert_eq!((rtp.sequence(), rtp.timestamp(), rtp.ssrc()), (0x1234, 160, 0xdead_beef));
    assert_eq!(rtp.payload_range(), Some(12..14));
}

#[test]
fn sources_extension_and_padding_are_not_payload() {
    let sources = [0, 0, 0, 1, 0, 0, 0, 2];
    // The profile 0xbede with one word, five bytes of payload, three of padding.
    let rest = [0xbe, 0xde, 0, 1, 1, 2, 3, 4, b'h', b'e', b'l', b'l', b'o', 0, 0, 3];
    let bytes = packet(0xb2, 0x80 | 96, &[&sources[..], &rest].concat());
    let rtp = parse(&bytes).expect("RTP");
    assert_eq!((rtp.payload_type(), rtp.marker()), (96, true));
    assert_eq!(rtp.payload_range(), Some(28..33));
    assert_eq!(&bytes[28..33], b"hello");
}

#[test]
fn extension_and_payload_may_be_empty() {
    let bytes = packet(0x90, 0, &[0xbe, 0xde, 0, 0]);
    assert_eq!(parse(&bytes).expect("RTP").payload_range(), Some(16..16));
    let padding_only = packet(0xa0, 0, &[0, 2]);
    assert_eq!(parse(&padding_only).expect("RTP").payload_range(), Some(12..12));
}

#[test]
fn other_datagrams_are_rejected() {
    let is_rejected = |bytes: &[u8]| parse(bytes).is_none();
    assert!(is_rejected(&[]) && is_rejected(&CALL[..11]));
    for flags in [0x00, 0x40, 0xc0] {
        assert!(is_rejected(&packet(flags, 0, &[])), "version {}", flags >> 6);
    }
    assert!(is_rejected(&packet(0x81, 0, &[])), "a source that is not there");
    assert!(is_rejected(&packet(0x90, 0, &[0, 0, 0, 1])), "an extension");
    for count in [0, 3] {
        assert!(is_rejected(&packet(0xa0, 0, &[7, count])), "{count} bytes of padding");
    }
    assert!(is_rejected(&packet(0xa0, 0, &[])));
}

#[test]
fn rtcp_is_rejected_by_its_packet_type() {
    // Sender report, receiver report, feedback and extended report; then RTP with a marker.
    for packet_type in [192, 200, 201, 205, 207, 223] {
        assert_eq!(parse(&packet(0x80, packet_type, &[])), None);
    }
    for second in [0, 127, 0x80, 0x80 | 34, 191, 224, 255] {
        assert!(parse(&packet(0x80, second, &[])).is_some(), "{second}");
    }
}

#[test]
fn truncated_packet_keeps_its_fields_and_length() {
    let rtp = Rtp::parse(&CALL[..13], 172).expect("RTP");
    assert_eq!((rtp.ssrc(), rtp.payload_range()), (0xdead_beef, Some(12..172)));
    let padded = packet(0xa0, 0, &[7, 8]);
    let rtp = Rtp::parse(&padded, 172).expect("RTP");
    assert_eq!(rtp.payload_range(), None);
    assert_eq!(Rtp::parse(&CALL[..11], 172), None);
    assert_eq!(Rtp::parse(&packet(0x90, 0, &[0, 0, 0, 9]), 172), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        of_version_2 in any::<bool>(),
        on_wire in 0usize..200,
    ) {
        if let (true, Some(flags)) = (of_version_2, bytes.first_mut()) {
            *flags = 0x80 | *flags & 0x3f;
        }
        if let Some(rtp) = Rtp::parse(&bytes, on_wire) {
            let _ = (rtp.marker(), rtp.payload_type(), rtp.sequence(), rtp.timestamp(), rtp.ssrc());
            if let Some(payload) = rtp.payload_range() {
                prop_assert!(payload.start >= 12 && payload.start <= payload.end);
                prop_assert!(payload.end <= on_wire);
            }
        }
    }

    #[test]
    fn written_packets_are_parsed(
        (marker, payload_type) in (any::<bool>(), 0u8..64),
        (sequence, timestamp, ssrc) in any::<(u16, u32, u32)>(),
        sources in prop::collection::vec(any::<u32>(), 0..16),
        extension in any::<Option<(u16, [u32; 3])>>(),
        payload in prop::collection::vec(any::<u8>(), 0..40),
        padding in 0u8..9,
    ) {
        let count = u8::try_from(sources.len()).expect("at most 15");
        let flags =
            0x80 | u8::from(padding > 0) << 5 | u8::from(extension.is_some()) << 4 | count;
        let mut bytes = vec![flags, u8::from(marker) << 7 | payload_type];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(timestamp.to_be_bytes());
        bytes.extend(ssrc.to_be_bytes());
        bytes.extend(sources.iter().flat_map(|source| source.to_be_bytes()));
        if let Some((profile, words)) = extension {
            bytes.extend(profile.to_be_bytes());
            bytes.extend([0, 3]);
            bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        }
        bytes.extend(&payload);
        bytes.extend((0..padding).map(|_| padding));

        let rtp = parse(&bytes).expect("RTP");
        prop_assert_eq!((rtp.marker(), rtp.payload_type()), (marker, payload_type));
        prop_assert_eq!((rtp.sequence(), rtp.timestamp()), (sequence, timestamp));
        prop_assert_eq!(rtp.ssrc(), ssrc);
        prop_assert_eq!(rtp.payload_range().map(|range| &bytes[range]), Some(&payload[..]));
    }
}
