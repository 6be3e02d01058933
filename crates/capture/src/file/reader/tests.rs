//! Tests of reading blocks of pcapng and of selecting interfaces.

use std::fs;

use wirestamp_clock::Time;
use wirestamp_packet::LinkType;

use super::*;

/// A block of pcapng: its type, its length, its content, and its length again.
fn block(kind: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 12).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &length, content, &length].concat()
}

/// A section with two interfaces of Ethernet, and these blocks.
fn section(blocks: &[Vec<u8>]) -> Vec<u8> {
    let start = [0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes);
    let interface = block(1, [1_u32, 0].map(u32::to_le_bytes).as_flattened());
    [block(0x0a0d_0d0a, start.as_flattened()), interface.clone(), interface, blocks.concat()]
        .concat()
}

/// An obsolete Packet Block at this time in microseconds. It has 4 of 60 bytes.
fn packet_block(interface: u32, drop_count: u32, micros: u32) -> Vec<u8> {
    let head = [interface | drop_count << 16, 0, micros, 4, 60].map(u32::to_le_bytes);
    block(2, &[head.as_flattened(), b"abcd"].concat())
}

/// An Enhanced Packet Block of the first interface at this time in microseconds, with the option epb_dropcount.
fn enhanced_packet_block(dropped: Option<u64>, micros: u32) -> Vec<u8> {
    let head = [0, 0, micros, 4, 60].map(u32::to_le_bytes);
    let option = dropped.map(|count| {
        let head = [4_u16, 8].map(u16::to_le_bytes);
        [head.as_flattened(), &count.to_le_bytes(), &[0; 4]].concat()
    });
    block(6, &[head.as_flattened(), b"abcd", &option.unwrap_or_default()].concat())
}

fn simple_packet_block() -> Vec<u8> {
    block(3, &[4_u32.to_le_bytes(), *b"abcd"].concat())
}

fn reader(blocks: &[Vec<u8>], interface: &str) -> (tempfile::TempDir, Reader) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets.pcapng");
    fs::write(&path, section(blocks)).unwrap();
    let reader = Reader::open(&folder.path().join(format!("packets.pcapng{interface}")));
    (folder, reader.unwrap())
}

#[test]
fn obsolete_packet_blocks_are_packets() {
    let blocks = [packet_block(0, 0, 7), packet_block(1, 0xffff, 8), packet_block(0, 3, 9)];
    let (_folder, mut reader) = reader(&blocks, "");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let Packet { interface, time, link, ref bytes, length, .. } = packet;
        assert_eq!((link, &bytes[..], length), (LinkType::Ethernet, &b"abcd"[..], 60));
        packets.push((interface, time.as_nanos(), packet.missed));
    }
    let [from, until] = [7000, 9000].map(Time::from_nanos);
    let missed = vec![CaptureLoss { from, until, packets: 3 }];
    assert_eq!(packets, [(0, 7000, vec![]), (1, 8000, vec![]), (0, 9000, missed)]);
    let counts = reader.interfaces().iter().map(|it| (it.packets, it.capture_lost()));
    assert!(counts.eq([(2, Some(3)), (1, None)]));
}

#[test]
fn drop_counts_of_enhanced_packet_blocks_are_losses() {
    let dropped = [None, Some(2), None, Some(0), Some(3)];
    let blocks: Vec<_> =
        dropped.into_iter().zip(7..).map(|(count, at)| enhanced_packet_block(count, at)).collect();
    let (_folder, mut reader) = reader(&blocks, "");
    let mut missed = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let lost = |it: &CaptureLoss| ([it.from, it.until].map(Time::as_nanos), it.packets);
        missed.extend(packet.missed.iter().map(lost));
    }
    assert_eq!(missed, [([7000, 8000], 2), ([10_000, 11_000], 3)]);
    assert_eq!(reader.capture_lost(), Some(5));
}

#[test]
fn drop_count_of_the_first_packet_has_no_time() {
    let (_folder, mut reader) = reader(&[enhanced_packet_block(Some(4), 7)], "");
    assert!(reader.next_packet().unwrap().unwrap().missed.is_empty());
    assert_eq!((reader.take_missed().len(), reader.capture_lost()), (0, Some(4)));
}

#[test]
fn packets_without_time_stamps_are_refused() {
    let blocks = [packet_block(1, 0, 7), simple_packet_block(), packet_block(1, 0, 8)];
    let (_folder, mut all) = reader(&blocks, "");
    assert!(all.next_packet().unwrap().is_some());
    let error = all.next_packet().unwrap_err();
    assert!(matches!(error, Error::WithoutTimes { .. }), "{error}");
    assert!(error.to_string().contains("Simple Packet Blocks"), "{error}");

    // They belong to the first interface.
    let (_folder, mut second) = reader(&blocks, "#1");
    assert!((0..2).all(|_| second.next_packet().unwrap().is_some()));
    assert!(second.next_packet().unwrap().is_none());
}

/// A reader of a section whose interface has this option, with a packet at tick 7.
fn reader_with_option(code: u16, value: &[u8]) -> (tempfile::TempDir, Reader) {
    let length = u16::try_from(value.len()).unwrap();
    let option = [code, length].map(u16::to_le_bytes);
    let padded = value.len().next_multiple_of(4);
    let value = [value, &[0; 4][..padded - value.len()]].concat();
    let interface = [1_u32, 0].map(u32::to_le_bytes);
    let interface =
        block(1, &[interface.as_flattened(), option.as_flattened(), &value, &[0; 4]].concat());
    let start = [0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes);
    let start = block(0x0a0d_0d0a, start.as_flattened());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets.pcapng");
    fs::write(&path, [start, interface, enhanced_packet_block(None, 7)].concat()).unwrap();
    let reader = Reader::open(&path).unwrap();
    (folder, reader)
}

#[test]
fn stamps_that_are_not_supported_are_no_damage() {
    let (picoseconds, second_before_1970) = ([12_u8], (-1_i64).to_le_bytes());
    for (code, value, reason) in [
        (9, &picoseconds[..], "finer than a nanosecond"),
        (14, &second_before_1970[..], "before 1970"),
    ] {
        for is_copied in [false, true] {
            let (_folder, mut reader) = reader_with_option(code, value);
            if is_copied {
                reader.begin_copy().unwrap();
            }
            let error = reader.next_packet().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("not supported"), "{error}");
            assert!(!error.contains("damaged"), "{error}");
        }
    }
    let (_folder, mut reader) = reader_with_option(9, &[6]);
    assert_eq!(reader.next_packet().unwrap().unwrap().time.as_nanos(), 7000);
}

#[test]
fn number_selects_an_interface_of_each_section() {
    let second = section(&[packet_block(0, 0, 8), packet_block(1, 0, 9)]);
    let (folder, mut reader) = reader(&[packet_block(1, 0, 7), second], "#1");
    let times = |reader: &mut Reader| {
        let mut times = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            times.push(packet.time.as_nanos());
        }
        times
    };
    assert_eq!(times(&mut reader), [7000, 9000]);
    let path = folder.path().join("packets.pcapng#1");
    let mut pipe = Reader::follow(&path, &Stop::new().unwrap()).unwrap();
    assert_eq!(times(&mut pipe), [7000, 9000]);
}
