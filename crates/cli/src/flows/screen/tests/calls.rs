//! SIP calls on the screen.

use wirestamp_metrics::flow::{CallMessage, CallReport, CallState, CallStream};

use super::*;

/// A SIP call with the stream of `call("10.77.1.7:5008", ...)`, over a proxy.
fn sip_call() -> CallReport {
    let [caller, proxy, callee] =
        ["10.77.1.7:5060", "10.77.1.9:5060", "10.77.2.2:5060"].map(|it| it.parse().unwrap());
    let message = |millis: i64, src, dst, text: &str| CallMessage {
        time_ns: millis * 1_000_000,
        src,
        dst,
        message: text.to_owned(),
    };
    let stream = CallStream {
        src: "10.77.1.7:5008".parse().unwrap(),
        dst: "10.77.2.2:6000".parse().unwrap(),
        ssrc: 0x1234_abcd,
        first_ns: 0,
        codec: None,
        packets: 1,
        lost: None,
        loss_ratio: None,
        mean_jitter_ms: None,
        mos: None,
        dtmf: None,
    };
    CallReport {
        call_id: "1@caller".to_owned(),
        caller: "sip:ann@one".to_owned(),
        callee: "sip:bob@two".to_owned(),
        state: CallState::Answered,
        status: Some(200),
        reason: None,
        begin_ns: 0,
        ringing_ms: None,
        setup_ms: Some(1234.0),
        duration_ms: None,
        ended_by: None,
        repeated_messages: 0,
        one_way_audio: None,
        silent_side: None,
        to_callee: vec![stream],
        to_caller: Vec::new(),
        messages: vec![
            message(0, caller, proxy, "INVITE"),
            message(2, proxy, callee, "INVITE"),
            message(1234, callee, caller, "200 OK (INVITE)"),
        ],
        messages_omitted: 0,
    }
}

#[test]
fn messages_of_a_call_are_a_ladder_on_the_page_of_its_stream() {
    let data = Data { calls: vec![sip_call()], ..data() };
    let (text, _) = drawn(&after(&[Key::Enter, Key::End], &data), &data, 100, 60);
    assert!(text.contains(LADDER), "\n{text}");
    let of_another = after(&[Key::Down, Key::Enter], &data);
    let (text, _) = drawn(&of_another, &data, 100, 60);
    assert!(!text.contains("INVITE"), "\n{text}");
}

#[test]
fn streams_of_calls_that_are_over_are_last_in_a_live_capture() {
    let over = |live, states: &[CallState]| {
        let calls = states.iter().map(|state| CallReport { state: *state, ..sip_call() });
        let data = Data { calls: calls.collect(), live, ..data() };
        let place = listed(&State::default(), &data).iter().position(|it| it == "10.77.1.7:5008");
        place == Some(3)
    };
    for (state, is_over) in [
        (CallState::Calling, false),
        (CallState::Ringing, false),
        (CallState::Answered, false),
        (CallState::Ended, true),
        (CallState::Cancelled, true),
        (CallState::Failed, true),
    ] {
        assert_eq!(over(true, &[state]), is_over, "{state:?}");
        assert!(!over(false, &[state]), "{state:?}");
    }
    // A new call with the stream of an earlier one.
    assert!(!over(true, &[CallState::Ended, CallState::Answered]));
}

#[test]
fn calls_that_are_over_are_last_on_a_page() {
    let named = |id: &str, state| CallReport { callee: id.into(), state, ..sip_call() };
    let calls = vec![
        named("sip:b", CallState::Answered),
        named("sip:c", CallState::Ended),
        named("sip:d", CallState::Failed),
        named("sip:e", CallState::Ringing),
    ];
    let data = Data { calls, live: false, ..data() };
    let (text, _) = drawn(&after(&[Key::Enter, Key::End], &data), &data, 100, 80);
    let calls: Vec<_> = text.lines().filter(|line| line.starts_with("call ")).collect();
    let expected = ["e, ringing", "b, answered", "d, failed", "c, ended"];
    assert_eq!(calls, expected.map(|it| format!("call            sip:ann@one > sip:{it}")));
}

#[test]
fn omitted_messages_are_named_at_their_place() {
    let [message, ..] = &sip_call().messages[..] else { panic!("messages") };
    let (messages, messages_omitted) = (vec![message.clone(); 32], 1500);
    let call = CallReport { messages, messages_omitted, repeated_messages: 1, ..sip_call() };
    let data = Data { calls: vec![call], ..data() };
    let (text, _) = drawn(&after(&[Key::Enter, Key::End], &data), &data, 100, 80);
    let lines: Vec<_> =
        text.lines().skip_while(|line| !line.starts_with("call ")).skip(2).collect();
    assert_eq!(
        lines.iter().position(|line| *line == "... 1 500 messages omitted"),
        Some(24),
        "{text}"
    );
    assert_eq!(lines.get(33), Some(&"1 message captured again"), "{text}");
}

const LADDER: &str = "\
call            sip:ann@one > sip:bob@two, answered
               10.77.1.7:5060            10.77.1.9:5060            10.77.2.2:5060
   0.000 s            │──────── INVITE ────────▶│                         │
   0.002 s            │                         │──────── INVITE ────────▶│
   1.234 s            │◀──────────────── 200 OK (INVITE) ─────────────────│
";
