use proptest::prelude::*;

use super::*;

/// Whether a monitor recognises any of these datagrams, one every 20 ms between the same ports, as RTP.
fn recognised_as_rtp(datagrams: impl IntoIterator<Item = Vec<u8>>) -> bool {
    let mut monitor = monitor();
    for (number, payload) in (0..).zip(datagrams) {
        observe(&mut monitor, &udp(ENDS, &payload), at(20 * number));
    }
    monitor.flows().any(|report| report.rtp.is_some())
}

/// A payload that begins with these bytes, as long as RTP's usually are.
fn begins_with(bytes: &[u8]) -> Vec<u8> {
    let mut payload = bytes.to_vec();
    payload.resize(172, 0xa5);
    payload
}

#[test]
fn rtp_itself_is_recognised_as_rtp() {
    assert!(recognised_as_rtp((0..10).map(|number| voice(7, 0, number))));
}

/// RFC 1035 section 4.1.1: the identification comes first, followed by constant fields.
#[test]
fn queries_for_names_are_not() {
    let query = |id: u16| {
        let [high, low] = id.to_be_bytes();
        begins_with(&[high, low, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, b'w', b'w', b'w'])
    };
    assert!(!recognised_as_rtp((0x8000..0x8100).map(query)));
    assert!(!recognised_as_rtp((0..200u16).map(|it| query(0x8000 ^ it.wrapping_mul(0x2b5d)))));
}

/// RFC 9000 sections 17.2 and 17.3.1: the second highest bit is set, whatever the highest is.
#[test]
fn quic_is_not() {
    let long = |number: u8| begins_with(&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, number]);
    let short = |number: u8| begins_with(&[0x40, 9, 0, number, 0, 0, 0, number, 1, 2, 3, 4]);
    assert!(!recognised_as_rtp((0..50).map(long)));
    assert!(!recognised_as_rtp((0..50).map(short)));
}

/// RFC 8489 section 5, RFC 6347 section 4.1 and RFC 7983: the first byte differs from RTP.
#[test]
fn stun_dtls_and_turn_are_not() {
    let stun = |number: u8| begins_with(&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42, 9, 9, 9, number]);
    let dtls = |number: u8| begins_with(&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, number, 0, 50]);
    let turn = |number: u8| begins_with(&[0x40, 0, 0, 160, 0x80, 0, 0, number, 0, 0, 1, number]);
    for make in [stun, dtls, turn] {
        assert!(!recognised_as_rtp((0..50).map(make)));
    }
}

/// RFC 3550 section 6.4: RFC 5761 excludes these packet types from RTP. A length that increases at the position of
/// RTP's sequence number is the worst case.
#[test]
fn rtcp_is_not() {
    for packet_type in 200..=207 {
        let report = |length| begins_with(&[0x80, packet_type, 0, length, 0, 0, 0, 9, 1, 2, 3, 4]);
        assert!(!recognised_as_rtp((0..50).map(report)));
    }
}

/// RFC 4303 section 2 in UDP (RFC 3948): an index that looks like RTP's first bytes, a counter at the position of the
/// timestamp, and a vector of which the first half is constant (RFC 4106).
#[test]
fn encapsulated_security_payload_is_not() {
    let packet = |number: u8| begins_with(&[0x80, 96, 1, 2, 0, 0, 0, number, 5, 6, 7, 8]);
    assert!(!recognised_as_rtp((0..50).map(packet)));
}

/// Counters at other positions, including the source.
#[test]
fn numbers_elsewhere_are_not() {
    for place in [4, 7, 11] {
        let packet = |number: u8| {
            let mut bytes = [0x80, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5];
            bytes[place] = number;
            begins_with(&bytes)
        };
        assert!(!recognised_as_rtp((0..50).map(packet)), "{place}");
    }
    // With large steps at the position of the sequence number, like the low half of a clock.
    let clock = |tick: u16| {
        let [high, low] = (tick.wrapping_mul(977)).to_be_bytes();
        begins_with(&[0x80, 0, high, low, 0, 0, 0, 5, 0, 0, 0, 5])
    };
    assert!(!recognised_as_rtp((0..50).map(clock)));
}

proptest! {
    #[test]
    fn random_datagrams_are_not(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..200),
    ) {
        prop_assert!(!recognised_as_rtp(datagrams));
    }

    /// Random packets, but all with the version of RTP and the same sources.
    #[test]
    fn arbitrary_packets_keep_reports_valid(
        packets in prop::collection::vec(
            (any::<u16>(), any::<i64>(), 0..4u32, any::<u8>(), 0..3u8), 1..300),
    ) {
        let mut monitor = FlowMonitor::new(FlowConfig { flows: 2, ..FlowConfig::default() });
        for (number, nanos, ssrc, payload_type, ends) in packets {
            let ends = ([10, 0, 0, ends], 4000, [10, 0, 0, 2], 5004);
            let payload = voice(ssrc, payload_type, number % 40);
            observe(&mut monitor, &udp(ends, &payload), Time::from_nanos(nanos));
        }
        for report in reports(&mut monitor) {
            prop_assert!(report.packets > 0);
            let Some(rtp) = report.rtp else { continue };
            prop_assert!(report.lost.is_some_and(|lost| lost <= rtp.expected));
            prop_assert!(rtp.mos.is_none_or(|mos| (1.0..=4.5).contains(&mos)));
            prop_assert!(rtp.loss_over_time.len() <= 60);
        }
    }
}
