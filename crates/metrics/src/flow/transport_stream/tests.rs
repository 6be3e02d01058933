use super::*;

/// A packet with this PID, counter and payload.
fn packet(pid: u16, counter: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = pid.to_be_bytes();
    let mut bytes = vec![0x47, 0x40 | high, low, 0x10 | counter & 0x0f];
    bytes.extend(payload);
    bytes.resize(PACKET_BYTES, 0xff);
    bytes
}

/// A packet with a clock reference in milliseconds.
fn clock(pid: u16, counter: u8, millis: u64) -> Vec<u8> {
    let base = (millis * 90) << 15;
    let mut bytes = packet(pid, counter, &[&[7, 0x10][..], &base.to_be_bytes()[2..]].concat());
    (bytes[1], bytes[3]) = (bytes[1] & 0x1f, 0x30 | counter & 0x0f);
    bytes
}

/// A program association table with one program, whose map has PID 0x1000.
fn associations(counter: u8) -> Vec<u8> {
    let table = [0, 0, 0xb0, 0x0d, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0x2a, 0xb1, 0x04, 0xb2];
    packet(0, counter, &table)
}

/// Records datagrams of one packet, 10 ms apart.
fn report(packets: impl IntoIterator<Item = Vec<u8>>) -> TransportStreamReport {
    let mut stream = TransportStream::default();
    for (number, bytes) in (0..).zip(packets) {
        stream.record(&bytes, bytes.len(), Time::from_nanos(number * 10_000_000));
    }
    stream.report().expect("a transport stream")
}

#[test]
fn clean_stream_has_no_errors() {
    let found = report((0..100).flat_map(|number| {
        let time = u64::from(number) * 20;
        [associations(number), packet(0x1000, number, &[0; 20]), clock(0x100, number, time)]
    }));
    let expected = TransportStreamReport { packets: 300, pids: 3, ..Default::default() };
    assert_eq!(found, expected);
}

#[test]
fn continuity_errors_are_counted() {
    let of = |counters: &[u8]| {
        report(counters.iter().map(|counter| packet(0x100, *counter, &[*counter])))
            .continuity_errors
    };
    assert_eq!(of(&[14, 15, 0, 1]), 0);
    assert_eq!(of(&[0, 1, 1, 2]), 0, "repeated once");
    assert_eq!(of(&[0, 1, 1, 1, 2]), 1, "repeated twice");
    assert_eq!(of(&[0, 1, 3, 4, 8]), 2, "lost");
    assert_eq!(of(&[0, 1, 3, 2, 4]), 3, "out of order");
    let lost = [[0, 0], [1, 1], [2, 2], [2, 3], [3, 4]];
    let lost = lost.map(|[counter, content]| packet(0x100, counter, &[content]));
    assert_eq!(report(lost).continuity_errors, 1, "15 are lost");
}

#[test]
fn tables_are_due_each_half_second() {
    let media = |numbers: std::ops::Range<u8>| numbers.map(|number| packet(0x100, number, &[]));
    let tables = |numbers: std::ops::Range<u8>| numbers.map(associations);
    let found = report(tables(0..1).chain(media(0..60)).chain(tables(1..2)).chain(media(60..70)));
    assert_eq!((found.pat_errors, found.pmt_errors), (1, 1), "there is no map");
    // Of 2 s without tables, three intervals of 0.5 s and 50 ms for the check are over.
    let found = report(media(0..200));
    assert_eq!((found.pat_errors, found.pmt_errors), (3, 0));
    let damaged = (0..4).map(|number| {
        let mut bytes = associations(number);
        bytes[15] ^= 1;
        bytes
    });
    assert_eq!(report(damaged).crc_errors, 4);
    let map = |number| packet(0x1000, number, &[0, 2, 0xb0]);
    let late = tables(0..1).chain(media(0..60)).chain([map(0)]);
    assert_eq!(report(late).pmt_errors, 1);
}

#[test]
fn clock_references_are_due_each_100_ms() {
    // A clock reference in each `gap`-th packet of 10 ms.
    let of = |gap: usize, times: &[u64]| {
        let found = report(times.iter().enumerate().flat_map(|(number, millis)| {
            let counter = u8::try_from(number % 16).unwrap();
            let others = std::iter::repeat_n(packet(NULL_PID, 0, &[]), gap - 1);
            [clock(0x100, counter, *millis)].into_iter().chain(others)
        }));
        (found.pcr_repetition_errors, found.pcr_discontinuity_errors)
    };
    assert_eq!(of(4, &[0, 100, 200, 300]), (0, 0));
    assert_eq!(of(4, &[0, 100, 201, 300]), (0, 1));
    assert_eq!(of(4, &[5000, 5100, 0, 100]), (0, 1));
    assert_eq!(of(4, &[0, 40, 5080, 5120]), (0, 1), "a jump that is not late");
    assert_eq!(of(12, &[0, 40, 80, 120]).0, 3);
}

#[test]
fn damaged_packets_are_counted() {
    let good = || packet(0x100, 0, &[]);
    let mut marked = good();
    marked[1] |= 0x80;
    let wrong = vec![0; PACKET_BYTES];
    let null = packet(NULL_PID, 3, &[]);
    let begin = (0..4).map(|number| packet(0x100, number, &[]));
    let mut long = packet(0x100, 0, &[]);
    (long[3], long[4]) = (0x30, 200);
    let after = packet(0x100, 9, &[]);
    let found = report(begin.chain([marked, wrong, null, long, after]));
    let errors = (found.transport_errors, found.sync_byte_errors, found.null_packets);
    assert_eq!((errors, found.packets, found.continuity_errors), ((1, 1, 1), 9, 0));
    assert_eq!(found.malformed_packets, 1);
}

#[test]
fn other_flows_and_cut_packets_have_no_report() {
    let mut stream = TransportStream::default();
    let time = Time::from_nanos(0);
    let bytes = packet(0x100, 0, &[]);
    for _ in 0..10 {
        (0..3).for_each(|_| stream.record(&bytes, bytes.len(), time));
        stream.record(&[0; 40], 40, time);
    }
    assert_eq!(stream.report(), None);
    (0..4).for_each(|_| stream.record(&bytes, bytes.len(), time));
    assert!(stream.report().is_some());
    stream.record(&bytes[..96], bytes.len(), time);
    assert_eq!(stream.report(), None);
}
