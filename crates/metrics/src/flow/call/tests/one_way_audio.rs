//! Calls with audio in one direction.

use super::*;

#[test]
fn audio_in_one_direction_is_noted() {
    let call = |alice: &str, packets| {
        let mut capture = Capture::new(100);
        set_up(&mut capture, "a", alice, OF_BOB);
        capture.rtp((ALICE, 4000), (BOB, 5000), packets);
        capture.calls()[0].one_way_audio
    };
    assert_eq!([call(OF_ALICE, 150), call(OF_ALICE, 0)], [Some(true), None]);
    assert_eq!(call(OF_ALICE, 90), None, "less than 2 s");
    let held = "10.0.0.1 4000 RTP/AVP 0\r\na=sendonly";
    assert_eq!(call(held, 150), None, "intended");
}

#[test]
fn evicted_streams_leave_one_way_audio_unknown() {
    let config = FlowConfig { flows: 3, calls: 100, ..FlowConfig::default() };
    let mut capture = Capture::with(config);
    set_up(&mut capture, "a", OF_ALICE, OF_BOB);
    capture.rtp((BOB, 5000), (ALICE, 4000), 150);
    for port in 6000..6010 {
        capture.udp((ALICE, port), (BOB, port), &[7; 30]);
    }
    capture.rtp((ALICE, 4000), (BOB, 5000), 150);
    let [call] = &capture.calls()[..] else { panic!("one call") };
    assert_eq!((call.to_caller.len(), call.to_callee.len()), (0, 1));
    assert_eq!((call.one_way_audio, call.silent_side), (None, None));
}

#[test]
fn silent_side_is_the_one_without_audio_after_the_answer() {
    let mut capture = Capture::new(100);
    let invite = message("a", "INVITE sip:bob@b SIP/2.0", "7 INVITE", "", OF_ALICE);
    capture.sip(0, ALICE, BOB, &invite);
    let progress = message("a", "SIP/2.0 183 Session Progress", "7 INVITE", ";tag=2", OF_BOB);
    capture.sip(10, BOB, ALICE, &progress);
    capture.rtp((BOB, 5000), (ALICE, 4000), 100);
    capture.sip(10, BOB, ALICE, &message("a", "SIP/2.0 200 OK", "7 INVITE", ";tag=2", OF_BOB));
    capture.rtp((ALICE, 4000), (BOB, 5000), 200);
    let call = &capture.calls()[0];
    assert_eq!((call.one_way_audio, call.silent_side), (Some(true), Some(CallSide::Callee)));
    assert_eq!(call.to_caller.len(), 1);
}

#[test]
fn asymmetric_ports_behind_address_translation_are_no_one_way_audio() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", "192.168.1.7 4000 RTP/AVP 0", OF_BOB);
    capture.rtp(([10, 0, 0, 9], 40_000), (BOB, 5000), 150);
    // The server sends from another port than it announced.
    capture.rtp((BOB, 5002), ([10, 0, 0, 9], 40_000), 150);
    let call = &capture.calls()[0];
    assert_eq!((call.to_callee.len(), call.to_caller.len()), (1, 1));
    assert_ne!(call.one_way_audio, Some(true));
}

#[test]
fn call_on_hold_by_the_old_form_has_no_one_way_audio() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", OF_ALICE, "0.0.0.0 5000 RTP/AVP 0");
    capture.rtp((BOB, 5000), (ALICE, 4000), 150);
    assert_eq!(capture.calls()[0].one_way_audio, None);
}
