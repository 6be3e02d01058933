use wirestamp_packet::{LinkType, Packet};

use super::*;
use crate::flow::{FlowConfig, FlowMonitor, FlowPacket};

const ALICE: [u8; 4] = [10, 0, 0, 1];
const BOB: [u8; 4] = [10, 0, 0, 2];

/// Packets of a capture, one each millisecond unless stated otherwise.
struct Capture {
    monitor: FlowMonitor,
    millis: i64,
}

impl Capture {
    fn new(flows: usize) -> Self {
        Self::with(FlowConfig { calls: flows, ..FlowConfig::default() })
    }

    fn with(config: FlowConfig) -> Self {
        Self { monitor: FlowMonitor::new(config), millis: 0 }
    }

    fn packet(&mut self, protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), rest: &[u8]) {
        self.frame(&Self::bytes(protocol, from, to, rest));
    }

    /// A packet of IPv4.
    fn bytes(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(24 + rest.len()).unwrap().to_be_bytes();
        let header = [0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
        let ports = [from.1, to.1].map(u16::to_be_bytes);
        [&header[..], &from.0, &to.0, ports.as_flattened(), rest].concat()
    }

    fn frame(&mut self, bytes: &[u8]) {
        let packet = Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
        let time = Time::from_nanos(self.millis * 1_000_000);
        let length = u32::try_from(bytes.len()).unwrap();
        self.monitor.observe(&FlowPacket { packet: &packet, length, time, encapsulation: None });
    }

    fn udp(&mut self, from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) {
        let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
        self.packet(17, from, to, &[&length[..], &[0, 0], payload].concat());
    }

    /// A message from one host to the other, `after` ms later.
    fn sip(&mut self, after: i64, from: [u8; 4], to: [u8; 4], message: &str) {
        self.millis += after;
        self.udp((from, 5060), (to, 5060), message.as_bytes());
    }

    /// A request of alice, or a response of bob, 100 ms later.
    fn step(&mut self, first_line: &str, cseq: &str) {
        let is_response = first_line.starts_with("SIP/");
        let (from, to) = if is_response { (BOB, ALICE) } else { (ALICE, BOB) };
        self.sip(100, from, to, &message("a", first_line, cseq, "", ""));
    }

    /// Packets of RTP, one each 20 ms.
    fn rtp(&mut self, from: ([u8; 4], u16), to: ([u8; 4], u16), packets: u16) {
        self.rtp_numbers(from, to, 0..packets);
    }

    fn rtp_numbers(
        &mut self,
        from: ([u8; 4], u16),
        to: ([u8; 4], u16),
        numbers: impl IntoIterator<Item = u16>,
    ) {
        for number in numbers {
            let [high, low] = number.to_be_bytes();
            let timestamp = (u32::from(number) * 160).to_be_bytes();
            let head = [[0x80, 0, high, low], timestamp, [0, 0, from.0[3], 0]];
            self.millis += 20;
            self.udp(from, to, &[head.as_flattened(), &[0xff; 160]].concat());
        }
    }

    fn calls(&mut self) -> Vec<CallReport> {
        let flows: Vec<_> = self.monitor.flows().collect();
        self.monitor.calls(&flows)
    }
}

/// A message of the dialog `id` between alice, who calls, and bob.
fn message(id: &str, first_line: &str, cseq: &str, to_tag: &str, media: &str) -> String {
    let body = if media.is_empty() {
        String::new()
    } else {
        let (address, rest) = media.split_once(' ').expect("an address and the rest");
        format!("v=0\r\nc=IN IP4 {address}\r\nm=audio {rest}\r\n")
    };
    format!(
        "{first_line}\r\nFrom: <sip:alice@a>;tag=1\r\nTo: <sip:bob@b>{to_tag}\r\nCall-ID: {id}\r\n\
         CSeq: {cseq}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Invitation, ringing after 150 ms, answer after 2 s more, ACK.
fn set_up(capture: &mut Capture, id: &str, alice: &str, bob: &str) {
    let invite = message(id, "INVITE sip:bob@b SIP/2.0", "7 INVITE", "", alice);
    capture.sip(0, ALICE, BOB, &invite);
    capture.sip(10, BOB, ALICE, &message(id, "SIP/2.0 100 Trying", "7 INVITE", "", ""));
    capture.sip(140, BOB, ALICE, &message(id, "SIP/2.0 180 Ringing", "7 INVITE", ";tag=2", ""));
    let answer = message(id, "SIP/2.0 200 OK", "7 INVITE", ";tag=2", bob);
    capture.sip(2000, BOB, ALICE, &answer);
    capture.sip(1, ALICE, BOB, &message(id, "ACK sip:bob@b SIP/2.0", "7 ACK", ";tag=2", ""));
}

const OF_ALICE: &str = "10.0.0.1 4000 RTP/AVP 0";
const OF_BOB: &str = "10.0.0.2 5000 RTP/AVP 0";

#[test]
fn answered_call_has_times_and_both_directions() {
    let mut capture = Capture::new(100);
    set_up(&mut capture, "a", OF_ALICE, OF_BOB);
    capture.rtp((ALICE, 4000), (BOB, 5000), 100);
    capture.rtp((BOB, 5000), (ALICE, 4000), 100);
    // A request of bob has the tags the other way round.
    let bye = "BYE sip:alice@a SIP/2.0\r\nFrom: <sip:bob@b>;tag=2\r\nTo: <sip:alice@a>;tag=1\r\ni: a\r\n\
               CSeq: 1 BYE\r\n\r\n";
    capture.millis = 10_151;
    capture.sip(0, BOB, ALICE, bye);
    let [call] = &capture.calls()[..] else { panic!("one call") };
    assert_eq!((&*call.caller, &*call.callee), ("sip:alice@a", "sip:bob@b"));
    assert_eq!((call.state, call.status), (CallState::Ended, Some(200)));
    let times = [call.ringing_ms, call.setup_ms, call.duration_ms];
    assert_eq!(times, [Some(150.0), Some(2150.0), Some(8001.0)]);
    assert_eq!((call.ended_by, call.one_way_audio), (Some(CallSide::Callee), Some(false)));
    let packets = |streams: &[CallStream]| streams.iter().map(|it| it.packets).collect::<Vec<_>>();
    assert_eq!((packets(&call.to_callee), packets(&call.to_caller)), (vec![100], vec![100]));
    assert_eq!((call.to_callee[0].src.port(), call.to_callee[0].ssrc), (4000, 256));
    let texts: Vec<_> = call.messages.iter().map(|it| &*it.message).collect();
    assert_eq!(
        texts,
        ["INVITE", "100 Trying (INVITE)", "180 Ringing (INVITE)", "200 OK (INVITE)", "ACK", "BYE"]
    );
}

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
fn other_requests_are_no_calls_and_memory_is_bounded() {
    let mut capture = Capture::new(10);
    capture.sip(0, ALICE, BOB, &message("o", "OPTIONS sip:b SIP/2.0", "1 OPTIONS", "", ""));
    assert_eq!(capture.calls(), []);
    for number in 0..25 {
        let id = number.to_string();
        capture.sip(1, ALICE, BOB, &message(&id, "INVITE sip:b SIP/2.0", "1 INVITE", "", ""));
    }
    let ids: Vec<_> = capture.calls().into_iter().map(|call| call.call_id).collect();
    assert_eq!((ids.len(), &*ids[0], capture.monitor.evicted_calls()), (10, "15", 15));
    for number in 0..100 {
        let cseq = format!("{number} INVITE");
        capture.sip(1, ALICE, BOB, &message("24", "INVITE sip:b SIP/2.0", &cseq, ";tag=2", ""));
    }
    let call = capture.calls().pop().expect("a call");
    assert_eq!((call.messages.len(), call.messages_omitted), (32, 69));
    let (before, after) = call.messages_around_omitted();
    assert_eq!((before.len(), after.len()), (24, 8));
    assert_eq!(call.messages[31].time_ns - call.messages[30].time_ns, 1_000_000, "the last ones");
}

#[test]
fn messages_over_tcp_may_be_divided() {
    let mut capture = Capture::new(100);
    let invite = message("t", "INVITE sip:bob@b SIP/2.0", "7 INVITE", "", OF_ALICE);
    let mut sequence = 1000_u32;
    for part in invite.as_bytes().chunks(50) {
        let header =
            [&sequence.to_be_bytes()[..], &[0; 4], &[0x50, 0x10, 1, 0, 0, 0, 0, 0]].concat();
        capture.packet(6, (ALICE, 40_000), (BOB, 5060), &[&header[..], part].concat());
        sequence += u32::try_from(part.len()).unwrap();
    }
    assert_eq!(capture.calls()[0].state, CallState::Calling);
    // The stream is known from its first packet.
    capture.rtp((BOB, 5000), (ALICE, 4000), 1);
    assert_eq!(capture.calls()[0].to_caller.len(), 1);
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
fn stream_of_one_of_several_possible_calls_is_not_assigned() {
    let mut capture = Capture::new(100);
    // Both phones are behind address translation, and one host serves both calls on one port.
    set_up(&mut capture, "a", "192.168.1.7 4000 RTP/AVP 0", OF_BOB);
    set_up(&mut capture, "b", "192.168.1.8 4000 RTP/AVP 0", OF_BOB);
    capture.rtp(([10, 0, 0, 9], 40_000), (BOB, 5000), 60);
    assert!(capture.calls().iter().all(|call| call.to_callee.is_empty()));
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

/// The fragments of an IPv4 packet, with at most 400 bytes above IP.
fn fragments(packet: &[u8]) -> Vec<Vec<u8>> {
    let (header, body) = packet.split_at(20);
    let last = body.chunks(400).count() - 1;
    let fragment = |(index, piece): (usize, &[u8])| {
        let mut fragment = [header, piece].concat();
        let length = u16::try_from(fragment.len()).unwrap();
        let offset = u16::try_from(50 * index).unwrap() | u16::from(index < last) << 13;
        fragment[2..4].copy_from_slice(&length.to_be_bytes());
        fragment[6..8].copy_from_slice(&offset.to_be_bytes());
        fragment
    };
    body.chunks(400).enumerate().map(fragment).collect()
}

#[test]
fn messages_in_fragments_are_read_when_complete() {
    let mut invite = message("a", "INVITE sip:bob@b SIP/2.0", "7 INVITE", "", OF_ALICE);
    invite = invite.replace("Call-ID", &format!("X: {}\r\nCall-ID", "x".repeat(1500)));
    for order in [[0, 1, 2, 3, 4], [4, 2, 3, 0, 1]] {
        let mut capture = Capture::new(10);
        let length = u16::try_from(8 + invite.len()).unwrap().to_be_bytes();
        let datagram = [&length[..], &[0, 0], invite.as_bytes()].concat();
        let fragments = fragments(&Capture::bytes(17, (ALICE, 5060), (BOB, 5060), &datagram));
        assert_eq!(fragments.len(), order.len());
        for (sent, place) in order.into_iter().enumerate() {
            assert_eq!(capture.calls().len(), 0, "{sent}");
            capture.frame(&fragments[place]);
        }
        let [call] = &capture.calls()[..] else { panic!("one call") };
        assert_eq!((&*call.call_id, &*call.caller), ("a", "sip:alice@a"));
        assert_eq!(call.messages[0].src, "10.0.0.1:5060".parse().unwrap());
        capture.rtp((BOB, 5000), (ALICE, 4000), 2);
        assert_eq!(capture.calls()[0].to_caller.len(), 1, "by the session description");
    }
}
