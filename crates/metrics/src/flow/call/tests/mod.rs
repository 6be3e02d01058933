//! Tests of calls, with the packets of a capture.

mod messages;
mod one_way_audio;
mod outcome;
mod streams;

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
