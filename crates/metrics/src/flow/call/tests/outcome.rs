//! Outcomes of calls: answered, failed, cancelled or ended.

use super::*;

#[test]
fn unanswered_calls_have_their_outcome() {
    let call = |messages: &[(&str, &str)]| {
        let mut capture = Capture::new(100);
        for (first_line, cseq) in messages {
            capture.step(first_line, cseq);
        }
        let [call] = &capture.calls()[..] else { panic!("one call") };
        (call.state, call.status, call.repeated_messages)
    };
    let invite = ("INVITE sip:bob@b SIP/2.0", "1 INVITE");
    assert_eq!(call(&[invite, invite, invite]), (CallState::Calling, None, 2));
    let busy = ("SIP/2.0 486 Busy Here", "1 INVITE");
    assert_eq!(call(&[invite, busy]), (CallState::Failed, Some(486), 0));
    let challenge = ("SIP/2.0 407 Proxy Authentication Required", "1 INVITE");
    let again = ("INVITE sip:bob@b SIP/2.0", "2 INVITE");
    assert_eq!(call(&[invite, challenge, again]), (CallState::Calling, None, 0));
    let cancel = ("CANCEL sip:bob@b SIP/2.0", "1 CANCEL");
    let terminated = ("SIP/2.0 487 Request Terminated", "1 INVITE");
    assert_eq!(call(&[invite, cancel, terminated]), (CallState::Cancelled, Some(487), 0));
}

#[test]
fn surplus_answers_of_a_forked_call_do_not_end_it() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "f", OF_ALICE, OF_BOB);
    let other = message("f", "SIP/2.0 200 OK", "7 INVITE", ";tag=3", "10.0.0.3 6000 RTP/AVP 0");
    capture.sip(1, BOB, ALICE, &other);
    capture.sip(1, ALICE, BOB, &message("f", "BYE sip:c@c SIP/2.0", "8 BYE", ";tag=3", ""));
    assert_eq!(capture.calls()[0].state, CallState::Answered);
    capture.sip(500, ALICE, BOB, &message("f", "BYE sip:bob@b SIP/2.0", "9 BYE", ";tag=2", ""));
    let call = &capture.calls()[0];
    assert_eq!((call.state, call.duration_ms), (CallState::Ended, Some(503.0)));
}

#[test]
fn call_captured_from_its_middle_has_no_false_times() {
    let mut capture = Capture::new(100);
    capture.sip(
        0,
        ALICE,
        BOB,
        &message("m", "INVITE sip:b SIP/2.0", "9 INVITE", ";tag=2", OF_ALICE),
    );
    capture.sip(10, BOB, ALICE, &message("m", "SIP/2.0 200 OK", "9 INVITE", ";tag=2", OF_BOB));
    assert_eq!(capture.calls()[0].state, CallState::Answered);
    capture.sip(100, ALICE, BOB, &message("m", "BYE sip:b SIP/2.0", "10 BYE", ";tag=2", ""));
    let call = &capture.calls()[0];
    assert_eq!((call.state, call.ended_by), (CallState::Ended, Some(CallSide::Caller)));
    assert_eq!((call.ringing_ms, call.setup_ms, call.duration_ms), (None, None, None));
}

#[test]
fn new_attempt_after_a_cancelled_one_has_its_own_outcome() {
    let mut capture = Capture::new(100);
    for (first_line, cseq) in [
        ("INVITE sip:b SIP/2.0", "1 INVITE"),
        ("CANCEL sip:b SIP/2.0", "1 CANCEL"),
        ("SIP/2.0 487 Request Terminated", "1 INVITE"),
        ("INVITE sip:c SIP/2.0", "2 INVITE"),
        ("SIP/2.0 486 Busy Here", "2 INVITE"),
    ] {
        capture.step(first_line, cseq);
    }
    assert_eq!(capture.calls()[0].state, CallState::Failed);
}

#[test]
fn cancelled_branch_of_a_proxy_is_no_cancelled_call() {
    const PROXY: [u8; 4] = [10, 0, 0, 5];
    let mut capture = Capture::new(100);
    let invite = |to: &str| message("p", &format!("INVITE sip:{to} SIP/2.0"), "1 INVITE", "", "");
    capture.sip(0, ALICE, PROXY, &invite("b"));
    capture.sip(1, PROXY, BOB, &invite("b"));
    let refused = message("p", "SIP/2.0 486 Busy Here", "1 INVITE", ";tag=2", "");
    capture.sip(100, BOB, PROXY, &refused);
    assert_eq!(capture.calls()[0].state, CallState::Calling, "another branch may answer");
    capture.sip(1, PROXY, BOB, &message("p", "CANCEL sip:b SIP/2.0", "1 CANCEL", "", ""));
    capture.sip(1, PROXY, ALICE, &message("p", "SIP/2.0 603 Decline", "1 INVITE", ";tag=4", ""));
    let call = &capture.calls()[0];
    assert_eq!((call.state, call.status), (CallState::Failed, Some(603)));
}
