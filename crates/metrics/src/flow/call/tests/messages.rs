//! Messages of calls: those that are kept, and those in several packets.

use super::*;

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
