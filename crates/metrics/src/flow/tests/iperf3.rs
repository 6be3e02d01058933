use super::*;
use crate::CaptureLoss;

/// A datagram of a test with one datagram per millisecond.
fn datagram(count: u64, wide: bool) -> Vec<u8> {
    datagram_sent(count, count, wide)
}

/// A datagram sent at this millisecond.
fn datagram_sent(count: u64, millis: u64, wide: bool) -> Vec<u8> {
    let micros = u32::try_from(millis * 1000).unwrap();
    let clock = [7 + micros / 1_000_000, micros % 1_000_000].map(u32::to_be_bytes);
    let count = count.to_be_bytes();
    [clock.as_flattened(), if wide { &count } else { &count[4..] }, &[0x30; 40]].concat()
}

/// Monitor after these datagrams at these milliseconds.
fn test(opened: bool, wide: bool, datagrams: impl IntoIterator<Item = (u64, i64)>) -> FlowMonitor {
    let mut monitor = monitor();
    if opened {
        observe(&mut monitor, &udp(ENDS, &[0x36, 0x37, 0x38, 0x39]), at(0));
    }
    for (count, millis) in datagrams {
        observe(&mut monitor, &udp(ENDS, &datagram(count, wide)), at(millis));
    }
    monitor
}

fn report(monitor: &mut FlowMonitor) -> (FlowReport, Iperf3Report) {
    let report = reports(monitor).remove(0);
    let test = report.iperf3.expect("a test of iperf3");
    (report, test)
}

fn on_time(counts: impl IntoIterator<Item = u64>) -> impl Iterator<Item = (u64, i64)> {
    counts.into_iter().map(|count| (count, 100 + count.cast_signed()))
}

#[test]
fn test_is_recognised_with_earlier_datagrams() {
    for wide in [false, true] {
        let datagrams = on_time((3..100).filter(|count| count % 10 != 0));
        let (report, test) = report(&mut test(true, wide, datagrams));
        assert_eq!((test.sent, test.lost, test.out_of_order), (99, 2 + 9, 0), "{wide}");
        assert_eq!(test.counter_bits, if wide { 64 } else { 32 });
        assert_eq!((report.lost, report.sent(), report.packets), (Some(11), 99, 89));
        assert!(test.jitter_ms < 1e-9 && report.rtp.is_none());
    }
}

#[test]
fn datagrams_before_the_capture_are_not_lost() {
    let (_, test) = report(&mut test(false, false, on_time((5000..5100).filter(|it| *it != 5050))));
    assert_eq!((test.sent, test.lost), (100, 1));
}

#[test]
fn duplicates_hide_losses_only_for_iperf3() {
    let datagrams = on_time([1, 2, 3, 4, 5, 8, 8, 7, 9]);
    let (report, test) = report(&mut test(true, false, datagrams));
    assert_eq!((test.sent, test.lost, test.out_of_order), (9, 0, 2));
    assert_eq!((report.lost, report.duplicated, report.reordered), (Some(1), Some(1), Some(1)));
}

#[test]
fn second_test_on_the_same_ports_is_counted_on() {
    for wide in [false, true] {
        let mut monitor = test(true, wide, on_time((1..=100).filter(|count| count % 10 != 5)));
        observe(&mut monitor, &udp(ENDS, &[0x36, 0x37, 0x38, 0x39]), at(5000));
        // The first two datagrams of the second test are lost.
        for count in 3..=100_u64 {
            let sent = 5000 + count;
            let bytes = datagram_sent(count, sent, wide);
            observe(&mut monitor, &udp(ENDS, &bytes), at(100 + sent.cast_signed()));
        }
        let (report, test) = report(&mut monitor);
        assert_eq!((test.sent, test.lost, test.out_of_order), (200, 10 + 2, 0), "{wide}");
        let counts = (report.lost, report.duplicated, report.reordered);
        assert_eq!(counts, (Some(12), Some(0), Some(0)));
    }
}

#[test]
fn reordering_at_the_start_of_the_capture_is_no_duplicate() {
    let datagrams = on_time([5001, 5000, 5002, 5003, 5004]);
    let (report, test) = report(&mut test(false, false, datagrams));
    assert_eq!((test.sent, test.lost, test.out_of_order), (4, 0, 1));
    let counts = (report.lost, report.duplicated, report.reordered);
    assert_eq!(counts, (Some(0), Some(0), Some(1)));
}

#[test]
fn datagrams_before_the_first_fill_no_gaps() {
    let (report, test) = report(&mut test(false, false, on_time([10, 7, 12, 8, 13, 14])));
    assert_eq!((test.sent, test.lost, test.out_of_order), (5, 1, 2), "11 is lost");
    let counts = (report.lost, report.duplicated, report.reordered);
    assert_eq!(counts, (Some(1), Some(0), Some(2)));
}

#[test]
fn capture_loss_is_no_network_loss() {
    let lost = |it: &u64| *it == 50 || (200..300).contains(it);
    let mut monitor = test(true, false, on_time((1..400).filter(|it| !lost(it))));
    monitor.missed(CaptureLoss { from: at(299), until: at(401), packets: 100 });
    let (flow, of_test) = report(&mut monitor);
    assert_eq!((flow.lost, of_test.lost, of_test.capture_lost), (Some(1), 1, 100));
    // One of them was only late, not lost.
    observe(&mut monitor, &udp(ENDS, &datagram(299, false)), at(600));
    let (flow, of_test) = report(&mut monitor);
    assert_eq!((flow.lost, of_test.lost, of_test.capture_lost), (Some(1), 1, 99));
}

#[test]
fn other_flows_are_not_examined_for_long() {
    let mut monitor = monitor();
    for number in 0..16 {
        observe(&mut monitor, &udp(ENDS, &[0x11; 60]), at(number));
    }
    for (count, millis) in on_time(1..50) {
        observe(&mut monitor, &udp(ENDS, &datagram(count, false)), at(millis));
    }
    assert!(reports(&mut monitor)[0].iperf3.is_none());
    let json = serde_json::to_value(&reports(&mut monitor)[0]).unwrap();
    assert!(json.get("iperf3").is_none(), "{json}");
}
