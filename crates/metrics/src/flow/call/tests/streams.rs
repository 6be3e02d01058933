//! RTP streams and the calls that they are assigned to.

use super::*;

#[test]
fn streams_behind_address_translation_are_found_by_their_source() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", "192.168.1.7 4000 RTP/AVP 0", OF_BOB);
    capture.rtp((BOB, 5000), ([10, 0, 0, 9], 40_000), 60);
    let [call] = &capture.calls()[..] else { panic!("one call") };
    assert_eq!((call.to_caller.len(), call.to_callee.len()), (1, 0));
}

/// The sources of the streams to the callee, of two calls with the same ports, the second one `pause` ms after the first.
fn sources_of_sequential_calls(pause: i64) -> Vec<Vec<std::net::IpAddr>> {
    let mut capture = Capture::new(100);
    for (id, ssrc_host) in [("a", ALICE), ("b", [10, 0, 0, 77])] {
        set_up(&mut capture, id, OF_ALICE, OF_BOB);
        capture.rtp((ssrc_host, 4000), (BOB, 5000), 60);
        let bye = message(id, "BYE sip:bob@b SIP/2.0", "8 BYE", ";tag=2", "");
        capture.sip(100, ALICE, BOB, &bye);
        capture.millis += pause;
    }
    let sources = |call: &CallReport| call.to_callee.iter().map(|it| it.src.ip()).collect();
    capture.calls().iter().map(sources).collect()
}

#[test]
fn sequential_calls_on_one_port_keep_their_streams() {
    // Streams may begin up to 5 s after the end of their call.
    for pause in [60_000, 1_000] {
        let [one, other] = [ALICE, [10, 0, 0, 77]].map(|host| vec![std::net::IpAddr::from(host)]);
        assert_eq!(sources_of_sequential_calls(pause), [one, other], "{pause}");
    }
}

#[test]
fn call_with_ports_and_source_of_an_earlier_one_has_its_own_stream() {
    let mut capture = Capture::new(100);
    for (id, numbers) in [("a", 0..100), ("b", 100..200)] {
        set_up(&mut capture, id, OF_ALICE, OF_BOB);
        let captured = numbers.filter(|number| *number != 150);
        capture.rtp_numbers((ALICE, 4000), (BOB, 5000), captured);
        capture.sip(100, ALICE, BOB, &message(id, "BYE sip:bob@b SIP/2.0", "8 BYE", ";tag=2", ""));
        capture.millis += 1000;
    }
    let streams: Vec<_> = capture.calls().into_iter().flat_map(|call| call.to_callee).collect();
    let counts: Vec<_> = streams.iter().map(|it| (it.packets, it.lost)).collect();
    assert_eq!(counts, [(100, Some(0)), (99, Some(1))]);
    assert_eq!(streams[0].ssrc, streams[1].ssrc);
    let flows: Vec<_> = capture.monitor.flows().collect();
    for stream in &streams {
        assert_eq!(flows.iter().filter(|flow| stream.is_of(flow)).count(), 1);
    }
}

#[test]
fn call_that_begins_before_the_end_of_another_continues_its_stream() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", OF_ALICE, OF_BOB);
    capture.rtp_numbers((ALICE, 4000), (BOB, 5000), 0..50);
    // A transfer, which ends the call before.
    set_up(&mut capture, "b", OF_ALICE, OF_BOB);
    capture.sip(1, ALICE, BOB, &message("a", "BYE sip:bob@b SIP/2.0", "8 BYE", ";tag=2", ""));
    capture.rtp_numbers((ALICE, 4000), (BOB, 5000), 50..100);
    let streams: Vec<_> = capture.monitor.flows().filter(|flow| flow.rtp.is_some()).collect();
    assert_eq!(streams.iter().map(|it| it.packets).collect::<Vec<_>>(), [100]);
}

#[test]
fn several_media_may_share_a_port() {
    let bundle =
        |port: &str| format!("{port} RTP/AVP 0\r\nm=video {}", port.split_once(' ').unwrap().1);
    let [alice, bob] = ["10.0.0.1 4000", "10.0.0.2 5000"].map(bundle);
    let [alice, bob] = [alice, bob].map(|media| format!("{media} RTP/AVP 96"));
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", &alice, &bob);
    // Behind address translation, so that only the destination was announced.
    capture.rtp(([10, 0, 0, 9], 40_000), (BOB, 5000), 60);
    assert_eq!(capture.calls()[0].to_callee.len(), 1);
}

#[test]
fn stream_of_one_of_several_possible_calls_is_not_assigned() {
    let mut capture = Capture::new(100);
    // Both phones are behind address translation, and one host serves both calls on one port.
    set_up(&mut capture, "a", "192.168.1.7 4000 RTP/AVP 0", OF_BOB);
    set_up(&mut capture, "b", "192.168.1.8 4000 RTP/AVP 0", OF_BOB);
    capture.rtp(([10, 0, 0, 9], 40_000), (BOB, 5000), 60);
    assert!(capture.calls().iter().all(|call| call.to_callee.is_empty()));
}
