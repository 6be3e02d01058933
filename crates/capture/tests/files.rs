//! Capture files: other tools can read written files, and the reader accepts any input.

mod captured;

use std::fs::{self, File};
use std::io::{Cursor, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use captured::{FIRST_NS, Read, facts, give, read, stamp, writer};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{
    Block, InterfaceStatisticsBlock, LegacyPcapReader, OptionCode, PcapBlockOwned, PcapError,
    PcapNGReader,
};
use proptest::prelude::*;
use tempfile::TempDir;
use wirestamp_capture::file::{Destination, Format, Provenance, Reader, Writer};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Facts, Ledger, Sink as _};

const FORMATS: [Format; 3] = [Format::Pcapng, Format::Pcap, Format::PcapMicros];

const LEDGER: Ledger = Ledger {
    interface_dropped: 3,
    seen: 12,
    kernel_dropped: 4,
    left_behind: 1,
    filtered: 2,
    surplus: 0,
    consumer_dropped: 0,
    delivered: 5,
    fill_ring_empty: 9,
    out_of_order: 10,
    stamped_late: 6,
};

fn destination(folder: &TempDir, format: Format, zstd: bool) -> Destination {
    Destination { format, zstd, ..Destination::new(&folder.path().join("out")) }
}

/// Writes `packets`: time after the first, error, and bytes.
fn write(to: &Destination, packets: &[(i64, i64, Vec<u8>)]) -> PathBuf {
    let mut writer = writer(to).unwrap();
    for (after, error, bytes) in packets {
        give(&mut writer, stamp(*after, *error), bytes).unwrap();
    }
    writer.finish(&LEDGER).unwrap();
    to.path.clone()
}

/// Writes `count` packets, one nanosecond apart and each one byte longer than the previous one.
fn write_some(to: &Destination, count: i64) -> PathBuf {
    let length = |number| 60 + usize::try_from(number).unwrap();
    let packets = (0..count).map(|number| (number, 60 + number, vec![7; length(number)]));
    write(to, &packets.collect::<Vec<_>>())
}

#[test]
fn times_and_errors_survive_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let content = read(&write_some(&destination(&folder, Format::Pcapng, false), 8));
    content.end.unwrap();
    let times: Vec<_> = content.packets.iter().map(|&(time, ..)| time).collect();
    assert_eq!(times, (FIRST_NS..FIRST_NS + 8).collect::<Vec<_>>());
    // The interface has 64 ns: twice the initial 20, rounded up. Packets have an error only if it is larger.
    let errors: Vec<_> = content.packets.iter().map(|&(_, error, _)| error.unwrap()).collect();
    assert_eq!(errors, [64, 64, 64, 64, 64, 65, 66, 67]);
    let [interface] = &content.interfaces[..] else { panic!("{:?}", content.interfaces) };
    let provenance = interface.provenance.as_ref().unwrap();
    assert_eq!((provenance.error_ns, provenance.granularity_ns), (67, Some(10)));
    assert_eq!(interface.name.as_deref(), Some("tap-a"));
    assert_eq!((interface.ledger, interface.capture_lost()), (Some(LEDGER), Some(5)));
}

#[test]
fn flushed_packets_are_in_the_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let to = destination(&folder, format, false);
        let mut writer = writer(&to).unwrap().flush_packets(true);
        for number in 1..4 {
            give(&mut writer, stamp(number, 20), &[7; 60]).unwrap();
            let written = i64::try_from(read(&to.path).packets.len()).unwrap();
            assert_eq!(written, number, "{format}");
        }
    }
}

#[test]
fn flushed_packet_that_cannot_be_written_is_lost_once() {
    let (reader, pipe) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    let mut writer = writer(&Destination::new(&path)).unwrap().flush_packets(true);
    give(&mut writer, stamp(1, 20), &[7; 60]).unwrap();
    drop(reader);
    give(&mut writer, stamp(2, 20), &[7; 60]).unwrap();
    assert_eq!(writer.lost(), 1);
    assert!(give(&mut writer, stamp(3, 20), &[7; 60]).unwrap_err().is_broken_pipe());
    writer.end().unwrap();
    assert_eq!(writer.lost(), 1, "the third packet was not accepted");
}

#[test]
fn packets_of_several_interfaces_keep_their_interface() {
    let folder = tempfile::tempdir().unwrap();
    let interfaces = ["tap-a", "tap-b"].map(|name| {
        let facts = Facts { interface: name.into(), ..facts() };
        let provenance = Provenance::of(&facts, 20);
        (facts, provenance)
    });
    let to = destination(&folder, Format::Pcapng, false);
    let mut writer = Writer::for_interfaces(&to, interfaces.to_vec()).unwrap();
    let packet = |number| {
        let (stamp, bytes) = (stamp(number, 20), &[7; 60][..]);
        CapturedPacket { stamp, kernel: None, bytes, length: 60 }
    };
    for (number, interface) in (1..).zip([0, 1, 1, 0, 1]) {
        writer.packet_of(interface, &packet(number)).unwrap();
    }
    let [from, until] = [2, 3].map(|number| stamp(number, 20).utc);
    writer.missed_of(1, &CaptureLoss { from, until, packets: 3 }).unwrap();
    assert!(writer.packet_of(2, &packet(6)).is_err(), "there is no such interface");
    let [a, b] = [2, 3].map(|delivered| Ledger { delivered, kernel_dropped: 3, ..LEDGER });
    writer.finish_all(&[a, b]).unwrap();
    let mut reader = Reader::open(&to.path).unwrap();
    let mut numbers = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        numbers.push(packet.interface);
    }
    assert_eq!(numbers, [0, 1, 1, 0, 1]);
    assert_eq!(reader.take_missed(), [CaptureLoss { from, until, packets: 3 }]);
    let found = reader.interfaces().iter().map(|it| (it.name.as_deref(), it.packets, it.ledger));
    assert!(found.eq([(Some("tap-a"), 2, Some(a)), (Some("tap-b"), 3, Some(b))]));

    let classic = destination(&folder, Format::Pcap, false);
    let refused = Writer::for_interfaces(&classic, interfaces.to_vec()).err().unwrap();
    assert!(refused.to_string().contains("pcap files have one interface"), "{refused}");
}

#[test]
fn file_without_end_has_a_valid_max_error() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let bound = |count| {
        let whole = fs::read(write_some(&to, count)).unwrap();
        fs::write(&to.path, &whole[..whole.len() - 4]).unwrap();
        let content = read(&to.path);
        assert!(content.end.is_err() && content.packets.len() == usize::try_from(count).unwrap());
        assert_eq!(content.interfaces[0].ledger, None);
        content.interfaces[0].provenance.as_ref().unwrap().error_ns
    };
    assert_eq!((bound(2), bound(8)), (64, 67));
}

#[test]
fn interfaces_of_two_sections_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let sections = [2, 8].map(|count| fs::read(write_some(&to, count)).unwrap());
    fs::write(&to.path, sections.concat()).unwrap();
    let content = read(&to.path);
    content.end.unwrap();
    let found: Vec<_> = content
        .interfaces
        .iter()
        .map(|of| (of.packets, of.provenance.as_ref().unwrap().error_ns, of.capture_lost()))
        .collect();
    assert_eq!(found, [(2, 61, Some(5)), (8, 67, Some(5))]);
}

/// Results of another parser.
#[derive(Default)]
struct OtherParser {
    /// Units of a second's fraction in classic pcap.
    unit: u64,
    /// Time in the file's unit, and bytes.
    packets: Vec<(u64, Vec<u8>)>,
    counters: Option<[u64; 5]>,
}

impl OtherParser {
    fn read(path: &Path, zstd: bool) -> Self {
        let mut bytes = fs::read(path).unwrap();
        if zstd {
            bytes = zstd::decode_all(&*bytes).unwrap();
        }
        let is_pcapng = bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        let in_micros = bytes.starts_with(&0xa1b2_c3d4_u32.to_ne_bytes());
        let bytes = Cursor::new(bytes);
        let mut reader: Box<dyn PcapReaderIterator> = if is_pcapng {
            Box::new(PcapNGReader::new(1 << 20, bytes).unwrap())
        } else {
            Box::new(LegacyPcapReader::new(1 << 20, bytes).unwrap())
        };
        let unit = if in_micros { 1_000_000 } else { 1_000_000_000 };
        let mut theirs = Self { unit, ..Self::default() };
        loop {
            match reader.next() {
                Ok((offset, block)) => {
                    theirs.note(block);
                    reader.consume(offset);
                }
                Err(PcapError::Eof) => return theirs,
                Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    fn note(&mut self, block: PcapBlockOwned<'_>) {
        match block {
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                assert_eq!(block.if_tsresol, 9);
                let filter = block.options.iter().find(|option| option.code == OptionCode(11));
                assert_eq!(filter.unwrap().value(), b"\0udp or vlan");
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                assert_eq!(block.origlen, 300_000);
                let time = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                self.packets.push((time, block.data[..block.caplen as usize].to_vec()));
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(block)) => {
                self.counters = Some(counters(&block));
            }
            PcapBlockOwned::Legacy(block) => {
                assert_eq!(block.origlen, 300_000);
                let time = u64::from(block.ts_sec) * self.unit + u64::from(block.ts_usec);
                self.packets.push((time, block.data.to_vec()));
            }
            _ => {}
        }
    }
}

/// isb_ifrecv, isb_ifdrop, isb_filteraccept, isb_osdrop and isb_usrdeliv, in the order of their numbers.
fn counters(block: &InterfaceStatisticsBlock<'_>) -> [u64; 5] {
    [4, 5, 6, 7, 8].map(|code| {
        let option = block.options.iter().find(|option| option.code == OptionCode(code)).unwrap();
        u64::from_ne_bytes(option.value().try_into().unwrap())
    })
}

#[test]
fn classic_files_keep_their_precision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classic.pcap");
    for (magic, fraction, nanos) in
        [(0xa1b2_c3d4_u32, 123_456_u32, 123_456_000), (0xa1b2_3c4d, 123_456_789, 123_456_789)]
    {
        let header = [magic, 0x0004_0002, 0, 0, 262_144, 1];
        let packet = [1_795_269_909, fraction, 4, 60];
        let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
        fs::write(&path, words.chain([1, 2, 3, 4]).collect::<Vec<_>>()).unwrap();
        let content = read(&path);
        content.end.unwrap();
        let expected = (1_795_269_909_000_000_000 + nanos, None, vec![1, 2, 3, 4]);
        assert_eq!(content.packets, [expected]);
    }
}

/// As tcpdump and tshark read it.
#[test]
fn classic_file_may_have_whole_seconds_in_the_fraction_and_short_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.pcap");
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1];
    let packet = [1_795_269_909, 2_500_000, 4, 2];
    let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
    fs::write(&path, words.chain([1, 2, 3, 4]).collect::<Vec<_>>()).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let nanos = packet.time.as_nanos();
    assert_eq!((nanos, packet.length, packet.bytes.len()), (1_795_269_911_500_000_000, 4, 4));
    // The largest values of all fields.
    let packet = [u32::MAX, u32::MAX, 0, u32::MAX];
    let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
    fs::write(&path, words.collect::<Vec<_>>()).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    assert_eq!((packet.time.as_nanos(), packet.length), (4_294_971_589_967_295_000, u32::MAX));
}

#[test]
fn truncated_file_returns_its_complete_packets() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for zstd in [false, true] {
            let to = destination(&folder, format, zstd);
            let whole = fs::read(write_some(&to, 4)).unwrap();
            let mut most = 0;
            for length in 0..=whole.len() {
                fs::write(&to.path, &whole[..length]).unwrap();
                let content = read(&to.path);
                assert!(content.packets.len() >= most, "{format} {length}");
                most = content.packets.len();
                match content.end {
                    Ok(()) | Err(Error::NotACapture { .. }) => {}
                    Err(Error::Damaged { packets, .. }) => assert_eq!(packets, most as u64),
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(most, 4);
        }
    }
}

#[test]
fn too_large_zstd_window_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    // A frame with a window of 128 MiB (RFC 8878, section 3.1.1.1), of one block of zeroes.
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0, (27 - 10) << 3];
    fs::write(&path, [&head[..], &[0x03, 0xff, 0x07, 0]].concat()).unwrap();
    let error = read(&path).end.unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn false_lengths_allocate_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, true);
    let head = {
        write_some(&to, 0);
        let mut bytes = Vec::new();
        zstd::Decoder::new(File::open(&to.path).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    // A packet block of nearly 4 GiB, with as many zeroes as 1 KiB of zstd expands to.
    let block = [6_u32, u32::MAX - 3].map(u32::to_ne_bytes).concat();
    let zeroes = vec![0; 16 << 20];
    let bytes = [head, block, zeroes].concat();
    fs::write(&to.path, zstd::encode_all(&*bytes, 1).unwrap()).unwrap();
    let content = read(&to.path);
    assert!(matches!(content.end, Err(Error::Damaged { packets: 0, .. })), "{:?}", content.end);
}

fn packets() -> impl Strategy<Value = Vec<(i64, i64, Vec<u8>)>> {
    let packet = (0..2_000_000_000_i64, 0..200_i64, prop::collection::vec(any::<u8>(), 0..200));
    prop::collection::vec(packet, 0..20)
}

proptest! {
    #[test]
    fn every_packet_is_read_back_by_two_parsers(
        packets in packets(),
        format in prop::sample::select(FORMATS.to_vec()),
        zstd in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(&destination(&folder, format, zstd), &packets);
        let unit = if format == Format::PcapMicros { 1_000 } else { 1 };
        let expected: Vec<Read> = packets
            .iter()
            .map(|(after, error, bytes)| {
                let time = (FIRST_NS + after) / unit * unit;
                let error = (!format.is_classic()).then_some((*error).max(64));
                (time, error, bytes.clone())
            })
            .collect();
        let content = read(&path);
        content.end.unwrap();
        prop_assert_eq!(&content.packets, &expected);

        let theirs = OtherParser::read(&path, zstd);
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(time, _, bytes)| ((time / unit).unsigned_abs(), bytes))
            .collect();
        prop_assert_eq!(theirs.packets, expected);
        prop_assert_eq!(theirs.counters, (!format.is_classic()).then_some([12, 3, 10, 4, 5]));
    }

    #[test]
    fn no_damage_makes_the_reader_panic(
        format in prop::sample::select(FORMATS.to_vec()),
        zstd in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write_some(&destination(&folder, format, zstd), 3);
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
        magic in prop::sample::select(vec![
            [0x0a, 0x0d, 0x0d, 0x0a],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0x28, 0xb5, 0x2f, 0xfd],
            [0, 0, 0, 0],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        compressed in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any");
        let mut bytes = [&magic[..], &rest].concat();
        if compressed {
            bytes = zstd::encode_all(&*bytes, 1).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }
}
