//! Capture files: what is written can be read by others, what is read may be anything.

use std::fs;
use std::path::{Path, PathBuf};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};
use proptest::prelude::*;
use tempfile::TempDir;
use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{Captured, Error, Facts, Ledger, Sink};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};

const FIRST_NS: i64 = 1_795_269_909_123_456_789;

fn facts() -> Facts {
    Facts {
        interface: "tap-a".into(),
        method: "ring",
        stamp: "raw",
        taken: "by the acquisition thread",
        clock: "tsc",
        snaplen: 262_144,
        notes: Vec::new(),
    }
}

/// Writes `count` packets, one nanosecond apart and each one byte longer than the last.
fn write(folder: &TempDir, count: i64) -> PathBuf {
    let path = folder.path().join("out.pcapng");
    let facts = facts();
    let mut writer = Writer::create(&path, &facts, Provenance::of(&facts, 5)).unwrap();
    for number in 0..count {
        let utc = Time::from_nanos(FIRST_NS + number);
        let raw = RawStamp { domain: Domain::Counter, value: 0 };
        let stamp = Stamp { raw, utc, error: Span::from_nanos(40 + number) };
        let bytes = vec![7; 60 + usize::try_from(number).unwrap()];
        let length = 1000;
        writer.packet(&Captured { stamp, kernel: None, bytes: &bytes, length }).unwrap();
    }
    let ledger = Ledger { seen: 9, kernel_dropped: 4, delivered: 5, ..Ledger::default() };
    writer.finish(&ledger).unwrap();
    path
}

/// Packets up to the end or the first error.
fn read(path: &Path) -> (Vec<(i64, usize)>, Result<(), Error>) {
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut packets = Vec::new();
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push((packet.time.as_nanos(), packet.bytes.len())),
            Ok(None) => return (packets, Ok(())),
            Err(error) => return (packets, Err(error)),
        }
    }
}

#[test]
fn a_written_file_is_read_back_to_the_nanosecond() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, 5);
    let (packets, end) = read(&path);
    end.unwrap();
    let expected: Vec<_> = (FIRST_NS..).zip(60..).take(5).collect();
    assert_eq!(packets, expected);

    let mut reader = Reader::open(&path).unwrap();
    while reader.next_packet().unwrap().is_some() {}
    assert_eq!(reader.provenance().unwrap().error_ns, 44);
    assert_eq!(reader.capture_lost(), 4);
}

#[test]
fn another_parser_finds_nanoseconds_the_packets_and_the_drops() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::open(write(&folder, 3)).unwrap();
    let mut reader = PcapNGReader::new(1 << 16, file).unwrap();
    let (mut packets, mut resolution, mut statistics) = (0, None, 0);
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                        resolution = Some(block.if_tsresol);
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        assert_eq!(ticks, FIRST_NS.unsigned_abs() + packets);
                        assert_eq!(block.origlen, 1000);
                        packets += 1;
                    }
                    PcapBlockOwned::NG(Block::InterfaceStatistics(_)) => statistics += 1,
                    _ => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!((packets, resolution, statistics), (3, Some(9), 1));
}

#[test]
fn classic_files_keep_the_precision_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classic.pcap");
    for (magic, fraction, nanos) in
        [(0xa1b2_c3d4_u32, 123_456_u32, 123_456_000), (0xa1b2_3c4d, 123_456_789, 123_456_789)]
    {
        let header = [magic, 0x0004_0002, 0, 0, 262_144, 1];
        let packet = [1_795_269_909, fraction, 4, 60];
        let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
        fs::write(&path, words.chain([1, 2, 3, 4]).collect::<Vec<_>>()).unwrap();
        let (packets, end) = read(&path);
        end.unwrap();
        assert_eq!(packets, [(1_795_269_909_000_000_000 + nanos, 4)]);
    }
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_packets_and_says_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(write(&folder, 4)).unwrap();
    let path = folder.path().join("cut.pcapng");
    let mut most = 0;
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (packets, end) = read(&path);
        assert!(packets.len() >= most, "{} packets of {length} bytes", packets.len());
        most = packets.len();
        match end {
            Ok(()) | Err(Error::NotACapture { .. }) => {}
            Err(Error::Damaged { packets, .. }) => assert_eq!(packets, most as u64),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(most, 4);
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(&folder, 3);
        let mut bytes = fs::read(&path).unwrap();
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        magic in prop::sample::select(vec![[0x0a, 0x0d, 0x0d, 0x0a], [0xd4, 0xc3, 0xb2, 0xa1], [0x4d, 0x3c, 0xb2, 0xa1], [0, 0, 0, 0]]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any");
        fs::write(&path, [&magic[..], &rest].concat()).unwrap();
        let _ = read(&path);
    }
}
