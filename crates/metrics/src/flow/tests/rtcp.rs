//! Reports of the far ends by RTCP.

use wirestamp_clock::Span;

use super::*;
use crate::CaptureLoss;

type Ends = ([u8; 4], u16, [u8; 4], u16);

/// The opposite direction of the stream.
const BACK: Ends = ([10, 0, 0, 2], 5004, [10, 0, 0, 1], 4000);

/// SSRCs of the streams there and back.
const THERE: u32 = 7;
const RETURN: u32 = 9;

/// The next higher ports.
const fn above((source, source_port, destination, destination_port): Ends) -> Ends {
    (source, source_port + 1, destination, destination_port + 1)
}

/// A packet of this type (RFC 3550 section 6.4.1).
fn packet(count: u8, packet_type: u8, content: &[u32]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    let words = content.iter().flat_map(|word| word.to_be_bytes());
    [0x80 | count, packet_type, high, low].into_iter().chain(words).collect()
}

/// An SR with the middle 32 bits of its NTP timestamp, and report blocks.
fn sender_report(ssrc: u32, ntp_middle: u32, blocks: &[[u32; 6]]) -> Vec<u8> {
    let info = [ssrc, 0xabcd_0000 | ntp_middle >> 16, ntp_middle << 16 | 0x1234, 0, 0, 0];
    let count = u8::try_from(blocks.len()).expect("at most 31");
    packet(count, 200, &[&info[..], blocks.as_flattened()].concat())
}

fn receiver_report(ssrc: u32, block: [u32; 6]) -> Vec<u8> {
    packet(1, 201, &[&[ssrc][..], &block].concat())
}

/// A block on a stream: a quarter and 5 packets lost, jitter of 80 units.
fn block(ssrc: u32, highest: u32, last: u32, wait: u32) -> [u32; 6] {
    [ssrc, 0x4000_0005, highest, 80, last, wait]
}

fn observe_rtcp(monitor: &mut FlowMonitor, ends: Ends, bytes: &[u8], millis: i64) {
    observe(monitor, &udp(ends, bytes), at(millis));
}

/// A monitor that captured 50 packets of each stream, from 0 to 980 ms, numbered from 1000.
fn with_streams() -> FlowMonitor {
    let mut monitor = monitor();
    for number in 0..50 {
        let millis = 20 * i64::from(number);
        observe(&mut monitor, &udp(ENDS, &voice(THERE, 0, 1000 + number)), at(millis));
        observe(&mut monitor, &udp(BACK, &voice(RETURN, 0, 1000 + number)), at(millis));
    }
    monitor
}

/// Reports on the stream with this SSRC.
fn reported(monitor: &mut FlowMonitor, ssrc: u32) -> Option<RtcpReport> {
    let mut flows = monitor.flows();
    flows.find(|flow| flow.rtp.as_ref().is_some_and(|rtp| rtp.ssrc == ssrc))?.rtcp
}

const fn trip(count: u64, [last, min, max]: [i64; 3]) -> Option<RoundTripReport> {
    let [last_ns, min_ns, max_ns] = [last * 1_000_000, min * 1_000_000, max * 1_000_000];
    Some(RoundTripReport { count, last_ns, min_ns, max_ns, error_ns: 15_259 })
}

#[test]
fn report_is_joined_on_the_ports_of_rtp_and_on_the_next_ones() {
    let same: fn(Ends) -> Ends = |ends| ends;
    for ports in [same, above] {
        let mut monitor = with_streams();
        let sent = sender_report(THERE, 0x0005_8000, &[]);
        observe_rtcp(&mut monitor, ports(ENDS), &sent, 1000);
        let answer = receiver_report(RETURN, block(THERE, 3 << 16 | 1049, 0x0005_8000, 0x8000));
        observe_rtcp(&mut monitor, ports(BACK), &answer, 1540);
        assert_eq!(monitor.unmatched_rtcp_reports(), 0);
        let found = reported(&mut monitor, THERE).expect("reports");
        assert_eq!((found.sender_reports, found.receiver_reports), (1, 1));
        assert_eq!((found.reporter_ssrc, found.cumulative_lost), (Some(RETURN), Some(5)));
        assert_eq!((found.fraction_lost, found.max_fraction_lost), (Some(0.25), Some(0.25)));
        assert_eq!(found.extended_highest_sequence, Some(3 << 16 | 1049));
        // 80 units of 8 kHz.
        assert_eq!((found.jitter_ns, found.jitter_unknown), (Some(10_000_000), None));
        assert_eq!(found.round_trip_to_receiver, trip(1, [40, 40, 40]));
        assert_eq!(found.round_trip_to_sender, None);
        assert_eq!(found.round_trip_to_sender_unknown, Some(UnknownRtcpValue::NoReport));
        assert_eq!(found.loss_comparison_unknown, Some(UnknownRtcpValue::TooFewReports));
        let back = reported(&mut monitor, RETURN).expect("the round trip to its sender");
        assert_eq!(back.round_trip_to_sender, trip(1, [40, 40, 40]));
        assert_eq!(back.receiver_reports, 0);
        let rtcp: u64 = monitor.flows().filter(|it| it.rtp.is_none()).map(|it| it.packets).sum();
        assert_eq!(rtcp, 2, "RTCP is no RTP");
    }
}

#[test]
fn both_parts_of_the_round_trip_are_measured() {
    let mut monitor = with_streams();
    observe_rtcp(&mut monitor, above(ENDS), &sender_report(THERE, 0x100, &[]), 1000);
    // 30 ms from here to the receiver and back, after a wait of 1 s.
    let answer = sender_report(RETURN, 0x200, &[block(THERE, 1049, 0x100, 0x1_0000)]);
    observe_rtcp(&mut monitor, above(BACK), &answer, 2030);
    // 70 ms to the sender and back, after 2 s.
    let answer = sender_report(THERE, 0x300, &[block(RETURN, 1049, 0x200, 0x2_0000)]);
    observe_rtcp(&mut monitor, above(ENDS), &answer, 4100);
    let answer = receiver_report(RETURN, block(THERE, 1049, 0x300, 0x8000));
    observe_rtcp(&mut monitor, above(BACK), &answer, 4635);
    let there = reported(&mut monitor, THERE).expect("reports");
    assert_eq!(there.round_trip_to_receiver, trip(2, [35, 30, 35]));
    assert_eq!(there.round_trip_to_sender, trip(1, [70, 70, 70]));
    let back = reported(&mut monitor, RETURN).expect("reports");
    assert_eq!(back.round_trip_to_receiver, trip(1, [70, 70, 70]));
    assert_eq!(back.round_trip_to_sender, trip(2, [35, 30, 35]));
}

#[test]
fn reports_without_one_stream_are_counted_and_not_joined() {
    let about = |ssrc| receiver_report(RETURN, block(ssrc, 1049, 0, 0));
    let cases = [(BACK, 8), (ENDS, THERE), (above(above(BACK)), THERE)];
    for (ends, ssrc) in cases {
        let mut monitor = with_streams();
        observe_rtcp(&mut monitor, ends, &about(ssrc), 1000);
        assert_eq!(monitor.unmatched_rtcp_reports(), 1);
        assert_eq!(reported(&mut monitor, THERE), None);
    }
    // The same source at the next ports: two streams can be meant.
    let mut monitor = with_streams();
    for number in 0..10 {
        let bytes = udp(above(ENDS), &voice(THERE, 0, 1040 + number));
        observe(&mut monitor, &bytes, at(1000));
    }
    observe_rtcp(&mut monitor, above(BACK), &about(THERE), 1000);
    assert_eq!(monitor.unmatched_rtcp_reports(), 1);
    assert!(monitor.flows().all(|flow| flow.rtcp.is_none()));
}

/// The first words of SRTCP are in plain text, and the rest is not.
#[test]
fn encrypted_reports_of_a_receiver_are_counted() {
    let encrypted = |sender: u32| [&packet(1, 201, &[sender])[..], &[0x5a; 38]].concat();
    for (ports, sender, counts) in
        [(BACK, 5, (0, 1)), (above(BACK), 5, (0, 1)), (BACK, RETURN, (1, 0))]
    {
        let mut monitor = with_streams();
        observe_rtcp(&mut monitor, ports, &encrypted(sender), 1000);
        let of_sender = reported(&mut monitor, RETURN).map_or(0, |it| it.unreadable_packets);
        assert_eq!((of_sender, monitor.unreadable_rtcp_packets()), counts);
    }
    // Other traffic that begins as RTCP does.
    let mut monitor = with_streams();
    let others = ([10, 0, 0, 1], 6000, [10, 0, 0, 2], 7000);
    observe_rtcp(&mut monitor, others, &encrypted(5), 1000);
    assert_eq!(monitor.unreadable_rtcp_packets(), 0);
}

#[test]
fn many_blocks_are_bounded() {
    let mut monitor = with_streams();
    let report = packet(31, 201, &[&[RETURN][..], &block(THERE, 1049, 0, 0).repeat(31)].concat());
    observe_rtcp(&mut monitor, BACK, &report.repeat(5), 1000);
    assert_eq!(monitor.unmatched_rtcp_reports(), 5 * 31 - 128);
    assert_eq!(reported(&mut monitor, THERE).map(|it| it.receiver_reports), Some(128));
}

#[test]
fn reports_on_another_run_of_numbers_are_not_used() {
    let mut monitor = with_streams();
    let answer = receiver_report(RETURN, block(THERE, 40_000, 0, 0));
    observe_rtcp(&mut monitor, BACK, &answer, 1000);
    let found = reported(&mut monitor, THERE).expect("reports");
    assert_eq!((found.mismatched_reports, found.receiver_reports), (1, 0));
    assert_eq!((found.cumulative_lost, found.jitter_ns), (None, None));
    assert_eq!(found.jitter_unknown, Some(UnknownRtcpValue::NoReport));
}

#[test]
fn reference_times_give_the_round_trip_to_the_sender() {
    let mut monitor = with_streams();
    let report = receiver_report(5, block(THERE, 1049, 0, 0));
    // A reference time of 0x00060000 (RFC 3611 section 4.4).
    let reference = packet(0, 207, &[5, 0x0400_0002, 0xabcd_0006, 0x0000_1234]);
    observe_rtcp(&mut monitor, BACK, &[report, reference].concat(), 1000);
    let answer = packet(0, 207, &[THERE, 0x0500_0003, 5, 0x0006_0000, 0x4000]);
    observe_rtcp(&mut monitor, ENDS, &answer, 1312);
    let found = reported(&mut monitor, THERE).expect("reports");
    assert_eq!(found.round_trip_to_sender, trip(1, [62, 62, 62]));
    assert_eq!(found.round_trip_to_receiver, None);
    assert_eq!(found.round_trip_to_receiver_unknown, Some(UnknownRtcpValue::NothingAnswered));
}

#[test]
fn voip_metrics_belong_to_the_stream_that_is_received() {
    let metrics = |ssrc, ratings| {
        let content = [ssrc, 0x4020_0000, 0, 0, 0x7f7f_7f10, ratings, 0xb000_003c, 0x0064_00c8];
        packet(0, 207, &[&[RETURN, 0x0700_0008][..], &content].concat())
    };
    let mut monitor = with_streams();
    observe_rtcp(&mut monitor, above(BACK), &metrics(THERE, 0x507f_7f7f), 1000);
    observe_rtcp(&mut monitor, above(BACK), &metrics(THERE, 0x5d7f_2928), 2000);
    observe_rtcp(&mut monitor, above(BACK), &metrics(8, 0x5d7f_2928), 2000);
    assert_eq!(monitor.unmatched_rtcp_reports(), 1);
    let voip = reported(&mut monitor, THERE).and_then(|it| it.voip_metrics).expect("metrics");
    assert_eq!((voip.reports, voip.loss_rate, voip.discard_rate), (2, 0.25, 0.125));
    assert_eq!((voip.r_factor, voip.external_r_factor), (Some(93), None));
    assert_eq!((voip.mos_lq, voip.mos_cq), (Some(4.1), Some(4.0)));
    assert_eq!((voip.signal_level_dbm0, voip.round_trip_ms), (None, None));
    assert_eq!((voip.jitter_buffer_adaptive, voip.jitter_buffer_nominal_ms), (Some(true), 60));
    assert_eq!((voip.jitter_buffer_max_ms, voip.jitter_buffer_absolute_max_ms), (100, 200));
}

#[test]
fn jitter_of_an_unknown_clock_rate_is_null() {
    let mut monitor = monitor();
    for number in 0..10 {
        observe(&mut monitor, &udp(ENDS, &voice(THERE, 96, number)), at(20 * i64::from(number)));
    }
    observe_rtcp(&mut monitor, BACK, &receiver_report(RETURN, block(THERE, 9, 0, 0)), 200);
    let found = reported(&mut monitor, THERE).expect("reports");
    assert_eq!((found.jitter_ns, found.max_jitter_ns), (None, None));
    assert_eq!(found.jitter_unknown, Some(UnknownRtcpValue::UnknownClockRate));
}

/// RFC 3711 section 3.4: header and SSRC are not encrypted.
#[test]
fn encrypted_reports_are_counted() {
    let mut monitor = with_streams();
    let encrypted = [sender_report(THERE, 5, &[]), vec![0x80, 0, 0, 1, 9, 9, 9, 9]].concat();
    observe_rtcp(&mut monitor, above(ENDS), &encrypted, 1000);
    let found = reported(&mut monitor, THERE).expect("a count");
    assert_eq!((found.unreadable_packets, found.sender_reports), (1, 0));
}

/// Two reports with 200 packets between them, of which 10 are missing here and 25 at the receiver.
fn compared(capture_loss: Option<CaptureLoss>) -> RtcpReport {
    let mut monitor = with_streams();
    let answer = |lost: u32, highest| {
        receiver_report(RETURN, [THERE, 0x4000_0000 | lost, highest, 80, 0, 0])
    };
    observe_rtcp(&mut monitor, BACK, &answer(2, 1049), 990);
    for number in 50..260u16 {
        if number % 20 != 10 {
            let millis = 20 * i64::from(number);
            observe(&mut monitor, &udp(ENDS, &voice(THERE, 0, 1000 + number)), at(millis));
        }
    }
    capture_loss.into_iter().for_each(|loss| monitor.missed(loss));
    observe_rtcp(&mut monitor, BACK, &answer(27, 1249), 5200);
    reported(&mut monitor, THERE).expect("reports")
}

#[test]
fn losses_beyond_this_point_are_those_of_the_receiver_without_ours() {
    let expected =
        LossComparison { expected: 200, lost_here: 10, lost_at_receiver: 25, lost_beyond: 15 };
    assert_eq!(compared(None).loss_comparison, Some(expected));
}

#[test]
fn losses_beyond_are_unknown_if_the_capture_lost_packets() {
    let loss = CaptureLoss { packets: 1, from: at(3000), until: at(3000) + Span::from_millis(1) };
    let found = compared(Some(loss));
    assert_eq!(found.loss_comparison, None);
    assert_eq!(found.loss_comparison_unknown, Some(UnknownRtcpValue::CaptureLost));
}

#[test]
fn reports_round_trip_through_json() {
    let found = compared(None);
    let text = serde_json::to_string(&found).expect("JSON");
    assert_eq!(serde_json::from_str::<RtcpReport>(&text).expect("a report"), found);
    let reason = serde_json::to_value(UnknownRtcpValue::AnsweredNotCaptured).expect("JSON");
    assert_eq!(reason, UnknownRtcpValue::AnsweredNotCaptured.name());
}
