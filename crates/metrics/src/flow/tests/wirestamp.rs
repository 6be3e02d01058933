use wirestamp_packet::wstp::{LONG, SHORT, version_field};

use super::*;

/// A packet of `wirestamp send`, sent at this time.
fn packet(stream: u16, sequence: u64, sent: Time<Utc>) -> Vec<u8> {
    let sent = sent.as_nanos().to_be_bytes();
    let numbers = [sequence.to_be_bytes(), sent, sent];
    [&b"WSTP\0\x01"[..], &stream.to_be_bytes(), numbers.as_flattened(), &[0x20; 20]].concat()
}

/// Monitor after packets of one stream: number, and milliseconds of sending and of arrival.
fn test(packets: impl IntoIterator<Item = (u64, i64, i64)>) -> FlowMonitor {
    let mut monitor = monitor();
    for (sequence, sent, arrival) in packets {
        observe(&mut monitor, &udp(ENDS, &packet(7, sequence, at(sent))), at(arrival));
    }
    monitor
}

fn report(monitor: &mut FlowMonitor) -> (FlowReport, WirestampReport) {
    let report = reports(monitor).remove(0);
    let test = report.wirestamp.expect("a test of wirestamp");
    (report, test)
}

#[test]
fn packets_are_counted_by_their_numbers() {
    let sequences = (100..200_u64).filter(|it| it % 10 != 5).chain([150, 130]);
    let packets = sequences.map(|it| (it, it.cast_signed(), 500 + it.cast_signed()));
    let (report, test) = report(&mut test(packets));
    assert_eq!((test.sent, test.lost, test.out_of_order), (100, 10, 2));
    let counts = (report.lost, report.duplicated, report.reordered, report.sent());
    assert_eq!(counts, (Some(10), Some(2), Some(0), 100));
    assert!(report.iperf3.is_none() && report.rtp.is_none());
}

#[test]
fn jitter_is_that_of_the_delays_not_of_the_sending() {
    // Bursts without jitter, then a packet that takes 16 ms longer.
    let packets = (0..40_u64).map(|it| {
        let sent = (it / 4 * 50).cast_signed();
        (it, sent, sent + 7)
    });
    let mut monitor = test(packets);
    assert_eq!(report(&mut monitor).1.jitter_ms, 0.0);
    observe(&mut monitor, &udp(ENDS, &packet(7, 40, at(500))), at(523));
    assert!((report(&mut monitor).1.jitter_ms - 1.0).abs() < 1e-9);
}

#[test]
fn other_streams_and_hostile_numbers_are_not_counted() {
    let mut monitor = test([(1, 0, 0), (2, 1, 1)]);
    for (stream, sequence) in [(8, 3), (7, u64::MAX), (7, 1 << 50)] {
        observe(&mut monitor, &udp(ENDS, &packet(stream, sequence, at(2))), at(2));
    }
    let (report, test) = report(&mut monitor);
    assert_eq!((test.sent, test.lost, report.packets), (2, 0, 5));
}

#[test]
fn live_frames_are_counted_in_each_flow() {
    let long = |sequence: u64| {
        let mut bytes = packet(1, sequence, at(0));
        bytes[4..6].copy_from_slice(&version_field(LONG, 4).to_be_bytes());
        bytes
    };
    let short = |sequence: u64| {
        let version = version_field(SHORT, 4).to_be_bytes();
        [&b"WSTP"[..], &version, &sequence.to_be_bytes()[3..], &[0; 7]].concat()
    };
    let payloads: [&dyn Fn(u64) -> Vec<u8>; 2] = [&long, &short];
    for payload in payloads {
        let mut monitor = monitor();
        for sequence in (0..400_u16).filter(|it| ![10, 14, 251].contains(it)) {
            let ends = ([10, 0, 0, 1], 4000 + sequence % 4, [10, 0, 0, 2], 5004);
            let frame = udp(ends, &payload(sequence.into()));
            observe(&mut monitor, &frame, at(sequence.into()));
        }
        let mut found: Vec<_> = reports(&mut monitor)
            .iter()
            .map(|it| (it.sport, it.lost, it.sent(), it.reordered))
            .collect();
        found.sort_unstable();
        let of = |flow: u16, lost| (4000 + flow, Some(lost), 100, Some(0));
        assert_eq!(found, [of(0, 0), of(1, 0), of(2, 2), of(3, 1)]);
    }
}

#[test]
fn second_run_of_the_sender_is_counted_on() {
    let run = |from: i64| {
        (0..10_i64).filter(|it| *it != 4).map(move |it| (it.cast_unsigned(), from + it, from + it))
    };
    let (flow, test) = report(&mut test(run(0).chain(run(100))));
    assert_eq!((test.sent, test.lost, test.out_of_order, flow.packets), (20, 2, 0, 18));
}
