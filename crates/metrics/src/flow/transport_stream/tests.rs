use proptest::prelude::*;

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
    clock_field(pid, counter, (millis * 90) << 15)
}

/// A packet with these 48 bits of a clock reference.
fn clock_field(pid: u16, counter: u8, field: u64) -> Vec<u8> {
    let mut bytes = packet(pid, counter, &[&[7, 0x10][..], &field.to_be_bytes()[2..]].concat());
    (bytes[1], bytes[3]) = (bytes[1] & 0x1f, 0x30 | counter & 0x0f);
    bytes
}

/// A packet of video with a presentation time stamp.
fn presentation(pid: u16, counter: u8) -> Vec<u8> {
    packet(pid, counter, &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1])
}

/// A whole section with its checksum.
fn section(table: u8, extension: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 9).unwrap();
    let head = [&[table][..], &(0xb000 | length).to_be_bytes(), &extension.to_be_bytes()].concat();
    let mut bytes = [&head[..], &[0xc1, 0, 0], content].concat();
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).rev().fold(crc, |crc, bit| {
            let is_odd = crc >> 31 != u32::from(byte >> bit & 1);
            if is_odd { (crc << 1) ^ 0x04c1_1db7 } else { crc << 1 }
        })
    });
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// A packet that begins with these sections.
fn sections(pid: u16, counter: u8, sections: &[Vec<u8>]) -> Vec<u8> {
    packet(pid, counter, &[&[0], &sections.concat()[..]].concat())
}

/// A program association table with one program, whose map has PID 0x1000.
fn associations(counter: u8) -> Vec<u8> {
    sections(0, counter, &[section(0, 1, &[0, 1, 0xf0, 0])])
}

/// The map of program 1: video on these PIDs, and the clock on PID 0x100.
fn map(counter: u8, pids: &[u16]) -> Vec<u8> {
    map_with_clock(counter, 0x100, pids)
}

/// The map of program 1: the clock on this PID, and video on these PIDs.
fn map_with_clock(counter: u8, clock: u16, pids: &[u16]) -> Vec<u8> {
    let entry = |pid: &u16| [&[0x1b][..], &pid.to_be_bytes(), &[0xf0, 0]].concat();
    let entries: Vec<_> = pids.iter().flat_map(entry).collect();
    let content = [&(0xe000 | clock).to_be_bytes()[..], &[0xf0, 0], &entries].concat();
    sections(0x1000, counter, &[section(2, 1, &content)])
}

fn scrambled(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[3] |= 0x80;
    bytes
}

/// Max time without a packet of a PID in these tests.
const PERIOD: Span = Span::from_secs(1);

/// Records datagrams of one packet, 10 ms apart.
fn report(packets: impl IntoIterator<Item = Vec<u8>>) -> TransportStreamReport {
    let (mut stream, losses) = (TransportStream::new(PERIOD), LossTimes::default());
    for (number, bytes) in (0..).zip(packets) {
        stream.record(&bytes, bytes.len(), Time::from_nanos(number * 10_000_000), &losses);
    }
    let found = stream.report(&losses).expect("a transport stream");
    TransportStreamReport { media_delivery: None, ..found }
}

#[test]
fn clean_stream_has_no_errors() {
    let found = report((0..100).flat_map(|number| {
        let time = u64::from(number) * 20;
        [associations(number), map(number, &[0x100]), clock(0x100, number, time)]
    }));
    let expected = TransportStreamReport {
        packets: 300,
        pids: 3,
        pcr_accuracy_errors: Some(0),
        pcr_accuracy_checked: 90,
        pcr_accuracy_max_ns: Some(0.0),
        ..Default::default()
    };
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

/// Packets of video, 10 ms each.
fn media(count: u8) -> impl Iterator<Item = Vec<u8>> + Clone {
    (0..count).map(|number| packet(0x100, number, &[]))
}

#[test]
fn tables_are_due_each_half_second() {
    let of = |packets: &mut dyn Iterator<Item = Vec<u8>>| {
        let found = report(packets);
        (found.pat_errors, found.pmt_errors, found.crc_errors)
    };
    let pat = |counter| [associations(counter)].into_iter();
    assert_eq!(of(&mut pat(0).chain(media(59)).chain(pat(1)).chain(media(10))), (1, 1, 0));
    // 2 s without tables: after 0.5, 1 and 1.5 s.
    assert_eq!(of(&mut media(201)), (3, 0, 0));
    let late = pat(0).chain(media(55)).chain([map(0, &[0x100])]);
    assert_eq!(of(&mut late.clone()), (1, 1, 0), "a late map");
    let mut damaged = associations(1);
    damaged[15] ^= 1;
    let damaged = pat(0).chain(media(40)).chain([damaged]).chain(media(20));
    assert_eq!(of(&mut damaged.clone()), (1, 1, 1), "a damaged section is none");
    let other = [sections(0, 0, &[section(0x42, 1, &[])]), scrambled(associations(1))];
    assert_eq!(of(&mut other.into_iter().chain(media(48))), (2, 0, 0));
    let maps = [associations(0), scrambled(map(0, &[])), map(1, &[]), scrambled(map(2, &[]))];
    assert_eq!(of(&mut maps.into_iter()), (0, 2, 0));
}

#[test]
fn programs_that_leave_the_association_table_are_not_due() {
    let none = |counter| sections(0, counter, &[section(0, 1, &[])]);
    let begin = [associations(0), map(0, &[0x100]), none(1)].into_iter();
    let found =
        report(begin.chain((0..5).flat_map(|number| {
            media(40).map(|_| packet(NULL_PID, 0, &[])).chain([none(number + 2)])
        })));
    assert_eq!((found.pat_errors, found.pmt_errors, found.pid_errors), (0, 0, 0));
}

#[test]
fn sections_of_several_packets_are_checked() {
    let programs: Vec<u8> = (1..=100).flat_map(|program| [0, program, 0xf0, 0]).collect();
    let long = section(0, 1, &programs);
    let split = |counter: u8, bytes: &[u8]| {
        let (begin, rest) = bytes.split_at(183);
        let mut packets = vec![packet(0, counter, &[&[0], begin].concat())];
        for (number, part) in (1..).zip(rest.chunks(184)) {
            let mut bytes = packet(0, counter + number, part);
            bytes[1] &= 0x1f;
            packets.push(bytes);
        }
        packets
    };
    let mut damaged = long.clone();
    damaged[300] ^= 1;
    let found = report([split(0, &long), split(3, &damaged), split(6, &long)].concat());
    assert_eq!((found.crc_errors, found.pat_errors, found.continuity_errors), (1, 0, 0));
    // Without its middle packet, a section is incomplete, and not damaged.
    let mut lost = split(0, &long);
    lost.remove(1);
    let found = report([lost, split(3, &long)].concat());
    assert_eq!((found.crc_errors, found.pat_errors, found.continuity_errors), (0, 0, 1));
}

#[test]
fn checksums_of_all_tables_of_the_standard_are_checked() {
    let tables = [(1, 1), (0x10, 0x40), (0x11, 0x42), (0x11, 0x4a), (0x12, 0x4e), (0x14, 0x73)];
    let damaged = tables.map(|(pid, table)| {
        let mut bytes = section(table, 1, &[1, 2, 3]);
        bytes[9] ^= 4;
        sections(pid, 0, &[bytes])
    });
    let mut none = section(0x70, 1, &[1, 2, 3]);
    none[9] ^= 4;
    let time = sections(0x14, 1, &[none]);
    assert_eq!(report(damaged.into_iter().chain([time])).crc_errors, 6, "not of the TDT");
}

#[test]
fn pids_of_a_program_map_are_due_in_each_period() {
    let begin = [associations(0), map(0, &[0x100, 0x101])];
    let maps = |to: u8| {
        (0..to).flat_map(|number| {
            media(20)
                .map(move |mut it| {
                    it[3] = 0x10 | (it[3] & 0x0f).wrapping_add(number * 4) & 0x0f;
                    it
                })
                .chain([associations(number + 1), map(number + 1, &[0x100, 0x101])])
        })
    };
    // 22 packets of 10 ms in each of 15 rounds, without PID 0x101: 3.3 s.
    let found = report(begin.clone().into_iter().chain(maps(15)));
    assert_eq!((found.pid_errors, found.pat_errors, found.pmt_errors), (3, 0, 0), "{found:?}");
    let found = report(begin.into_iter().chain(maps(15)).chain([packet(0x101, 0, &[])]));
    assert_eq!(found.pid_errors, 3, "{found:?}");
}

#[test]
fn encrypted_packets_need_a_conditional_access_table() {
    let access = |counter| sections(1, counter, &[section(1, 0xffff, &[])]);
    let other = |counter| sections(1, counter, &[section(2, 1, &[])]);
    let of = |packets: &mut dyn Iterator<Item = Vec<u8>>| report(packets).cat_errors;
    assert_eq!(of(&mut media(10)), 0, "nothing is encrypted");
    assert_eq!(of(&mut media(10).map(scrambled)), 1);
    assert_eq!(of(&mut media(10).map(scrambled).chain([access(0)])), 0);
    assert_eq!(of(&mut media(10).chain([access(0), other(1), other(2)])), 2);
    // A period of 1 s without the table, after 0.1 s and with the packet after it.
    let long = media(250).map(scrambled);
    assert_eq!(of(&mut media(10).map(scrambled).chain([access(0)]).chain(long)), 2);
}

#[test]
fn nothing_else_is_checked_without_synchronisation() {
    let wrong = || vec![0; PACKET_BYTES];
    let mut marked = packet(0x100, 9, &[]);
    marked[1] |= 0x80;
    let begin = [associations(0), map(0, &[0x100]), packet(0x100, 0, &[]), packet(0x100, 1, &[])];
    let lost = begin.into_iter().chain([wrong(), wrong(), marked]).chain(media(3));
    let found = report(lost.chain([wrong()]));
    assert_eq!((found.sync_losses, found.sync_byte_errors, found.transport_errors), (1, 3, 0));
    assert_eq!((found.packets, found.continuity_errors), (11, 0));
    // 4 s without synchronisation, and 0.4 s with it.
    let begin = [associations(0), map(0, &[0x100]), packet(0x100, 0, &[]), packet(0x100, 1, &[])];
    let wrong = std::iter::repeat_n(wrong(), 400);
    let found = report(begin.into_iter().chain(wrong).chain(media(45)));
    assert_eq!((found.sync_losses, found.sync_byte_errors), (1, 400));
    assert_eq!((found.pat_errors, found.pmt_errors, found.pid_errors), (0, 0, 0));
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
fn impossible_clock_references_are_ignored() {
    let max = ((1_u64 << 33) - 1) << 15;
    let clocks = [max | 511, max | 299, 0, max | 511, 1, 2];
    let found = report((0..).zip(clocks).map(|(number, it)| clock_field(0x100, number, it)));
    assert_eq!(found.pcr_discontinuity_errors, 0, "the clock wraps");
}

#[test]
fn presentation_times_of_encrypted_packets_are_not_due() {
    let of = |packets: &mut dyn Iterator<Item = Vec<u8>>| report(packets).pts_errors;
    let begin = || (0..4).map(|number| presentation(0x100, number));
    let encrypted = || media(100).map(scrambled);
    assert_eq!(of(&mut begin().chain(media(100))), 1);
    assert_eq!(of(&mut begin().chain(encrypted())), 0);
    assert_eq!(of(&mut begin().chain(encrypted()).chain(begin()).chain(media(100))), 1);
}

#[test]
fn pids_that_leave_the_program_map_are_not_due() {
    // A PID with only the clock, and one with presentation times. Packets of both come also after the second map.
    let parts = |counter| [clock(0x101, counter, 10), presentation(0x102, counter)];
    let of = |second: Vec<u8>| {
        let first = [associations(0), map_with_clock(0, 0x101, &[0x100, 0x102])];
        let begin = first.into_iter().chain(parts(0)).chain([second]).chain(parts(1));
        let found = report(begin.chain(media(100)));
        (found.pcr_repetition_errors, found.pts_errors)
    };
    assert_eq!(of(map_with_clock(1, 0x101, &[0x100, 0x102])), (1, 1));
    assert_eq!(of(map_with_clock(1, 0x101, &[0x100])), (1, 0));
    assert_eq!(of(map_with_clock(1, 0x1fff, &[0x100])), (0, 0));
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
    let (mut stream, losses) = (TransportStream::new(PERIOD), LossTimes::default());
    let time = Time::from_nanos(0);
    let bytes = packet(0x100, 0, &[]);
    for _ in 0..10 {
        (0..3).for_each(|_| stream.record(&bytes, bytes.len(), time, &losses));
        stream.record(&[0; 40], 40, time, &losses);
    }
    assert_eq!(stream.report(&losses), None);
    (0..4).for_each(|_| stream.record(&bytes, bytes.len(), time, &losses));
    assert!(stream.report(&losses).is_some());
    stream.record(&bytes[..96], bytes.len(), time, &losses);
    assert_eq!(stream.report(&losses), None);
}

proptest! {
    #[test]
    fn any_packets_are_recorded_without_panic(
        packets in prop::collection::vec((0..4_u16, any::<[u8; 40]>(), any::<u8>(), -1000..1000_i64), 8..200),
    ) {
        let (mut stream, losses) = (TransportStream::new(PERIOD), LossTimes::default());
        let tables = [associations(0), map(0, &[0x100, 1]), associations(1), map(1, &[2])];
        tables.iter().for_each(|it| stream.record(it, it.len(), Time::from_nanos(0), &losses));
        let mut time = 0;
        for (pid, content, flags, step) in packets {
            let pid = [0, 1, 0x100, 0x1000][usize::from(pid)];
            let mut bytes = packet(pid, flags, &content);
            bytes[3] = flags;
            if flags.is_multiple_of(7) {
                bytes[0] = flags;
            }
            time += step * 1_000_000;
            stream.record(&bytes, bytes.len(), Time::from_nanos(time), &losses);
        }
        let found = stream.report(&losses).expect("a transport stream");
        prop_assert!(found.null_packets + found.malformed_packets <= found.packets);
    }
}
