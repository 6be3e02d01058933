use proptest::prelude::*;

use super::*;

/// Offer of a phone, with or without the headers in `SIP`.
const OFFER: &str = "v=0\r\n\
    o=alice 2890844526 2890844526 IN IP4 host.example\r\n\
    s=-\r\n\
    c=IN IP4 192.0.2.1\r\n\
    t=0 0\r\n\
    m=audio 49170 RTP/AVP 0 18 96 98 0\r\n\
    a=rtpmap:96 opus/48000/2\r\n\
    a=rtcp-mux\r\n\
    m=video 51372/2 RTP/AVP 31 97\r\n\
    c=IN IP6 2001:db8::7\r\n\
    a=rtpmap:97 H264/90000\r\n\
    a=rtcp:53020 IN IP6 2001:db8::8\r\n";

const SIP: &str = "INVITE sip:bob@example.com SIP/2.0\r\n\
    v: SIP/2.0/UDP host.example;branch=z9hG4bK776asdhds\r\n\
    c: application/sdp\r\n\
    \r\n";

fn media(message: &str) -> Vec<RtpMedia<'_>> {
    find(message.as_bytes()).expect("a session description")
}

/// The media of a description with these lines after `v=0`.
fn read(lines: &[&str]) -> Vec<(Option<String>, u16)> {
    let message = format!("v=0\n{}\n", lines.join("\n"));
    let address = |medium: &RtpMedia<'_>| medium.address.map(|address| address.to_string());
    media(&message).iter().map(|it| (address(it), it.port)).collect()
}

/// Each format as `type name/clock`.
fn formats(medium: &RtpMedia<'_>) -> Vec<String> {
    let write = |format: &RtpFormat<'_>| match format.encoding {
        Some(encoding) => {
            format!("{} {}/{}", format.payload_type, encoding.name, encoding.clock_rate_hz)
        }
        None => format!("{} unknown", format.payload_type),
    };
    medium.formats.iter().map(write).collect()
}

#[test]
fn offer_has_destinations_and_formats() {
    let media = media(OFFER);
    let [audio, video] = &media[..] else { panic!("two media: {media:?}") };
    assert_eq!((audio.kind, video.kind), ("audio", "video"));
    assert_eq!((audio.port, audio.port_count), (49170, 1));
    assert_eq!(audio.address, "192.0.2.1".parse().ok());
    assert_eq!(formats(audio), ["0 PCMU/8000", "18 G729/8000", "96 opus/48000", "98 unknown"]);
    assert_eq!((video.port, video.port_count), (51372, 2));
    assert_eq!(video.address, "2001:db8::7".parse().ok());
    assert_eq!(formats(video), ["31 H261/90000", "97 H264/90000"]);
}

#[test]
fn description_is_found_in_sip_and_multipart() {
    let alone = media(OFFER);
    assert_eq!(media(&format!("{SIP}{OFFER}")), alone);
    let parts = format!("{SIP}--part\r\n\r\n{OFFER}--part\r\nm=audio 1 RTP/AVP 0\r\n");
    assert_eq!(media(&parts), alone);
    assert_eq!(media(&OFFER.replace("\r\n", "\n")), alone);
    for other in ["", SIP, "v=0", "v=1\r\n", "xv=0\r\nm=audio 1 RTP/AVP 0\r\n"] {
        assert_eq!(find(other.as_bytes()), None, "{other:?}");
    }
}

#[test]
fn other_and_rejected_media_are_left_out() {
    let found = read(&[
        "c=IN IP4 192.0.2.1",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "c=IN IP4 192.0.2.9",
        "m=audio 0 RTP/AVP 0",
        "m=video 9 TCP/RTP/AVP 31",
        "m=audio 7000 RTP/SAVPF 0",
        "m=video 7002 UDP/TLS/RTP/SAVPF 31",
    ]);
    let here = Some("192.0.2.1".to_owned());
    assert_eq!(found, [(here.clone(), 7000), (here, 7002)]);
}

#[test]
fn groups_names_and_holds_are_parsed() {
    let cases = [
        ("c=IN IP4 233.252.0.1/127/3", Some("233.252.0.1")),
        ("c=IN IP6 ff15::101/3", Some("ff15::101")),
        ("c=IN IP4 host.example", None),
        ("c=IN IP4 0.0.0.0", None),
        ("c=IN IP6 ::", None),
        ("b=AS:64", Some("192.0.2.1")),
        ("c=IN IP4 192.0.2.7\nc=IN IP4 192.0.2.8", Some("192.0.2.8")),
    ];
    for (line, address) in cases {
        let found = read(&["c=IN IP4 192.0.2.1", "m=audio 7000 RTP/AVP 0", line]);
        assert_eq!(found, [(address.map(str::to_owned), 7000)], "{line}");
    }
}

#[test]
fn unreadable_lines_are_skipped() {
    let lines = [
        "c=IN ATM 1",
        "m=audio 70000 RTP/AVP 0",
        "c=IN IP4 192.0.2.1",
        "m=audio 7000 RTP/AVP 128",
        "m=audio",
        "m=audio 7000/x RTP/AVP 0",
        "m=audio 7000 RTP/AVP 96",
        "a=rtpmap:96 opus",
        "a=rtpmap:96 opus/0",
        "a=rtpmap:300 opus/48000",
        "a=rtcp:x",
        "c=IN IP4",
        "a=rtpmap:99 speex/16000",
    ];
    assert_eq!(read(&lines), [(None, 7000)]);
}

#[test]
fn encoding_with_a_long_name_is_unknown() {
    let encoding = |length: usize| {
        let name = "x".repeat(length);
        let text =
            format!("v=0\nc=IN IP4 192.0.2.1\nm=audio 7000 RTP/AVP 96\na=rtpmap:96 {name}/8000\n");
        let media = find(text.as_bytes()).expect("a session description");
        media[0].formats[0].encoding.is_some()
    };
    assert_eq!((encoding(64), encoding(65)), (true, false));
}

#[test]
fn unreadable_address_does_not_fall_back_to_the_session() {
    let lines = ["c=IN IP4 192.0.2.1", "m=audio 7000 RTP/AVP 0", "c=IN IP5 1"];
    assert_eq!(read(&lines), [(None, 7000)]);
}

#[test]
fn truncated_line_is_ignored() {
    let cut = "v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 7000 RTP/AVP 0\r\nm=video 7002 RTP/AVP 3";
    assert_eq!(media(cut).len(), 1);
    assert_eq!(find(&cut.as_bytes()[..4]), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let message = [b"v=0\n", &bytes[..]].concat();
        prop_assert!(find(&message).is_some());
        let _ = find(&bytes);
    }

    #[test]
    fn mutated_and_truncated_messages_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut message = [SIP, OFFER].concat().into_bytes();
        for (place, byte) in changes {
            let place = place.index(message.len());
            message[place] = byte;
        }
        message.truncate(kept.index(message.len() + 1));
        for medium in find(&message).unwrap_or_default() {
            prop_assert!(medium.port != 0 && medium.formats.len() <= 128);
            let rates = medium.formats.iter().filter_map(|format| format.encoding);
            prop_assert!(rates.into_iter().all(|encoding| encoding.clock_rate_hz != 0));
        }
    }
}
