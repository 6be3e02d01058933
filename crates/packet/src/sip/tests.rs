use proptest::prelude::*;

use super::*;

const INVITE: &str = "INVITE sip:bob@biloxi.example.com SIP/2.0\r\n\
    Via: SIP/2.0/UDP pc33.atlanta.example.com;branch=z9hG4bK776asdhds\r\n\
    From: \"Alice <a\\\"b>\" <sip:alice@atlanta.example.com;transport=tcp>;tag=1928301774\r\n\
    t: sip:bob@biloxi.example.com\r\n\
    Call-ID: a84b4c76e66710@pc33\r\n\
    CSeq: 314159 INVITE\r\n\
    Subject: two\r\n lines\r\n\
    Content-Length: 5\r\n\r\nv=0\r\n";

fn parse(text: &str) -> Option<Message<'_>> {
    Message::parse(text.as_bytes())
}

#[test]
fn request_is_parsed() {
    let message = parse(INVITE).expect("a message");
    assert_eq!(message.start, StartLine::Request { method: "INVITE" });
    assert_eq!((message.sequence, message.method), (314_159, "INVITE"));
    assert_eq!((message.call_id, message.body), ("a84b4c76e66710@pc33", &b"v=0\r\n"[..]));
    let uri = "sip:alice@atlanta.example.com;transport=tcp";
    assert_eq!(message.from, Party { uri, tag: Some("1928301774") });
    assert_eq!(message.to, Party { uri: "sip:bob@biloxi.example.com", tag: None });
}

#[test]
fn case_and_empty_lines_before_do_not_matter() {
    let text = format!("\r\n{}", INVITE.replace("SIP/2.0\r", "sip/2.0\r"));
    assert!(parse(&text).is_some());
}

#[test]
fn response_is_parsed() {
    let text =
        "SIP/2.0 180 Ringing\nf: <sip:a@b>\nTo : sip:b@c ; Tag = x1 ;y=2\ni: 1\nCSeq: 1 INVITE\n\n";
    let message = parse(text).expect("a message");
    assert_eq!(message.start, StartLine::Response { status: 180, reason: "Ringing" });
    assert_eq!((message.from.uri, message.to.tag), ("sip:a@b", Some("x1")));
}

#[test]
fn other_messages_are_rejected() {
    for wrong in [
        "",
        "GET / HTTP/1.1\r\n\r\n",
        &INVITE.replace("CSeq", "C-Seq"),
        &INVITE.replace("INVITE sip", "invite sip"),
        &INVITE.replace("\\\"b>\" <", "b "),
        &INVITE.replace("a84b4c76e66710", "a\u{1b}[2J"),
        &INVITE.replace("a84b4c76e66710", &"a".repeat(1100)),
        &INVITE.replace("a84b4c76e66710", "a\u{202e}"),
        "SIP/2.0 99 No\r\nf: a\r\nt: b\r\ni: 1\r\nCSeq: 1 INVITE\r\n\r\n",
    ] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

#[test]
fn display_name_may_be_in_another_encoding() {
    let mut bytes = INVITE.as_bytes().to_vec();
    let place = INVITE.find("Alice").expect("the name");
    bytes[place] = 0xe9;
    let message = Message::parse(&bytes).expect("a message");
    assert_eq!(message.from.tag, Some("1928301774"));
}

#[test]
fn cut_header_is_read_up_to_the_last_whole_line() {
    let end = INVITE.find("Subject").expect("the field");
    assert!(parse(&INVITE[..end + 3]).is_some_and(|message| message.body.is_empty()));
    assert_eq!(parse(&INVITE[..end - 3]), None, "CSeq is cut");
}

/// RFC 3261 section 7.3.1; RFC 4475 section 3.1.1.1 has such a message.
#[test]
fn field_may_continue_on_the_next_lines() {
    let folded = INVITE
        .replace("Call-ID: ", "Call-ID:\r\n\t ")
        .replace(";tag=", "\r\n ;tag =\r\n ")
        .replace("314159 INVITE", "314159\r\n  INVITE")
        .replace("Length: 5", "Length:\r\n 5");
    assert_eq!(parse(&folded), parse(INVITE));
    assert_eq!(framing(folded.as_bytes()), Framing::Complete(folded.len()));
    let from = folded.find("\r\n ;tag").expect("the fold");
    assert_eq!(framing::lines(&folded.as_bytes()[..from + 2]).count(), 3);
    // The line before the cut may be continued.
    let end = INVITE.find("Subject").expect("the field");
    assert_eq!(parse(&INVITE[..end]), None);
}

#[test]
fn messages_of_a_stream_are_delimited() {
    let stream = [INVITE, INVITE].concat();
    assert_eq!(framing(stream.as_bytes()), Framing::Complete(INVITE.len()));
    for end in 0..INVITE.len() {
        assert_eq!(framing(&INVITE.as_bytes()[..end]), Framing::Incomplete, "{end}");
    }
    let without_body = INVITE.replace("Content-Length: 5\r\n", "");
    assert_eq!(framing(without_body.as_bytes()), Framing::Complete(without_body.len() - 5));
    for wrong in [
        "GET / HTTP/1.1\r\n",
        "\0",
        &INVITE.replace(": 5\r", ": 70000\r"),
        &"A".repeat(600),
        &INVITE.replace("two", &"x".repeat(17_000)),
    ] {
        assert_eq!(framing(wrong.as_bytes()), Framing::NotSip, "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_panic(
        start in 0..INVITE.len(), bytes in prop::collection::vec(any::<u8>(), 0..60), place in 0..INVITE.len(),
    ) {
        let mut message = INVITE.as_bytes().to_vec();
        message.splice(place..place, bytes);
        for part in [&message[..], &message[start..]] {
            let _ = Message::parse(part);
            if let Framing::Complete(length) = framing(part) {
                prop_assert!(length <= part.len());
            }
        }
    }
}
