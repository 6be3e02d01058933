//! Pages as the kernel writes them, and any bytes.

use proptest::prelude::*;

use super::*;

/// `events/header_page` of Linux 6.18 on x86-64.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}

fn word(kind: u32, delta: u32) -> u32 {
    if cfg!(target_endian = "big") { kind << DELTA_BITS | delta } else { kind | delta << 5 }
}

/// The words of a data area, as bytes.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A page with this timestamp, word of length, and data.
fn page(timestamp: u64, commit: u64, data: &[u8]) -> Vec<u8> {
    [&timestamp.to_ne_bytes()[..], &commit.to_ne_bytes(), data].concat()
}

/// Times and data of all records from `start` on, and whether the page is malformed.
fn records(data: &[u8], start: u64) -> (Vec<(u64, Vec<u8>)>, bool) {
    let mut cursor = Cursor::new(start);
    let (mut found, mut malformed) = (Vec::new(), false);
    while let Some(next) = cursor.next(data) {
        match next {
            Ok(record) => found.push((record.time, record.data.to_vec())),
            Err(Malformed) => malformed = true,
        }
    }
    (found, malformed)
}

#[test]
fn layout_is_that_of_the_header_file() {
    let expected = PageLayout { timestamp: 0, commit: 8, long: 8, data: 16, size: 4096 };
    assert_eq!(layout(), expected);
    let without = HEADER_PAGE.replace("commit", "other");
    assert_eq!(PageLayout::parse(&without), None);
    let overlapping = HEADER_PAGE.replace("offset:16", "offset:9");
    assert_eq!(PageLayout::parse(&overlapping), None);
}

#[test]
fn short_and_long_records_have_their_bytes_and_times() {
    let data = bytes(&[word(2, 5), 11, 12, word(0, 7), 12, 21, 22, word(1, 0), 31]);
    let expected = [(105, bytes(&[11, 12])), (112, bytes(&[21, 22])), (112, bytes(&[31]))];
    assert_eq!(records(&data, 100), (expected.to_vec(), false));
}

#[test]
fn long_time_difference_extends_the_next_record() {
    let data = bytes(&[word(TIME_EXTEND, 3), 2, word(1, 0), 9]);
    assert_eq!(records(&data, 1000), (vec![(1003 + (2 << 27), bytes(&[9]))], false));
}

#[test]
fn absolute_stamp_keeps_the_upper_five_bits() {
    let stamp = |time: u64| {
        #[expect(clippy::cast_possible_truncation, reason = "as the kernel stores it")]
        let (low, high) = (time as u32 & 0x7ff_ffff, (time >> 27) as u32);
        bytes(&[word(TIME_STAMP, low), high, word(1, 1), 9])
    };
    let time_of = |data: &[u8], before| records(data, before).0[0].0;
    assert_eq!(time_of(&stamp(0x7ff_1234_5678_9abc), 17), 0x7ff_1234_5678_9abd);
    let before = 0xa800_0000_0000_0005;
    assert_eq!(time_of(&stamp(77), before), before + 73, "59 bits and the page's upper bits");
    let before = 0xafff_ffff_ffff_ffff;
    assert_eq!(time_of(&stamp(4), before), 0xb000_0000_0000_0005, "the 59 bits started again");
}

#[test]
fn rejected_record_is_skipped_with_its_time() {
    let data = bytes(&[word(PADDING, 40), 8, 1, word(1, 2), 9]);
    assert_eq!(records(&data, 0), (vec![(42, bytes(&[9]))], false));
    let data = bytes(&[word(PADDING, 1), 8, 1, word(1, 2), 9]);
    assert_eq!(records(&data, 0), (vec![(2, bytes(&[9]))], false), "1 stands for 0");
}

#[test]
fn padding_without_time_ends_the_page() {
    let data = bytes(&[word(1, 1), 7, word(PADDING, 0), 0xffff_ffff, word(1, 1), 9]);
    assert_eq!(records(&data, 0), (vec![(1, bytes(&[7]))], false));
}

#[test]
fn record_beyond_the_page_is_malformed() {
    for entry in [word(2, 1), word(0, 1), word(PADDING, 3), word(TIME_EXTEND, 3)] {
        let data = bytes(&[word(1, 1), 7, entry]);
        assert_eq!(records(&data, 0), (vec![(1, bytes(&[7]))], true), "{entry:#x}");
    }
    let data = bytes(&[word(0, 1), u32::MAX, 1, 2]);
    assert_eq!(records(&data, 0), (Vec::new(), true));
}

#[test]
fn cursor_continues_where_the_kernel_had_stopped() {
    let data = bytes(&[word(1, 1), 7, word(1, 2), 8, word(1, 3), 9]);
    let mut cursor = Cursor::new(100);
    let mut times = Vec::new();
    for written in [8, 8, 24] {
        while let Some(record) = cursor.next(&data[..written]) {
            times.push(record.unwrap().time);
        }
        assert_eq!(cursor.position(), written);
    }
    assert_eq!(times, [101, 103, 106]);
}

#[test]
fn lost_events_are_in_the_header_of_the_page() {
    let data = bytes(&[word(1, 1), 7]);
    let stored = [&data[..], &23_u64.to_ne_bytes()].concat();
    let missed = |flags: u32, data: &[u8]| {
        let bytes = page(5, u64::from(flags) + 8, data);
        let page = layout().page(&bytes).unwrap();
        assert_eq!((page.timestamp, page.committed), (5, 8));
        page.missed
    };
    assert_eq!(missed(0, &stored), Missed::None);
    assert_eq!(missed(MISSED, &stored), Missed::Unknown);
    assert_eq!(missed(MISSED | MISSED_IS_STORED, &stored), Missed::Events(23));
    assert_eq!(missed(MISSED | MISSED_IS_STORED, &data), Missed::Unknown, "no room");
    assert_eq!(layout().page(&[0; 12]), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_their_end(
        text in ".{0,200}",
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        start in any::<u64>(),
    ) {
        let _ = PageLayout::parse(&text);
        if let Some(page) = layout().page(&bytes) {
            let written = &page.data[..page.committed];
            let mut cursor = Cursor::new(start);
            let mut before = 0;
            while let Some(record) = cursor.next(written) {
                prop_assert!(cursor.position() > before && cursor.position() <= written.len());
                before = cursor.position();
                prop_assert!(record.is_err() || record.is_ok_and(|it| it.data.len() <= written.len()));
            }
            prop_assert_eq!(cursor.position(), written.len());
        }
    }

    #[test]
    fn written_records_are_read_back(
        start in 0..1_u64 << 58,
        events in prop::collection::vec((0..1_u64 << 40, prop::collection::vec(any::<u32>(), 1..40)), 0..20),
    ) {
        let (mut words, mut expected, mut time) = (Vec::new(), Vec::new(), start);
        for (delta, data) in &events {
            time += delta;
            #[expect(clippy::cast_possible_truncation, reason = "as the kernel stores it")]
            let (low, high) = (*delta as u32 & 0x7ff_ffff, (delta >> 27) as u32);
            let own = if high == 0 { low } else {
                words.extend([word(TIME_EXTEND, low), high]);
                0
            };
            let length = u32::try_from(data.len()).unwrap();
            match length {
                1..=28 => words.push(word(length, own)),
                _ => words.extend([word(0, own), 4 * length + 4]),
            }
            words.extend(data);
            expected.push((time, bytes(data)));
        }
        prop_assert_eq!(records(&bytes(&words), start), (expected, false));
    }
}
