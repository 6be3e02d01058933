//! Written files, read by another parser.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{
    Block, InterfaceStatisticsBlock, LegacyPcapReader, OptionCode, PcapBlockOwned, PcapError,
    PcapNGReader,
};
use proptest::prelude::*;
use wirestamp_capture::file::Format;

use crate::captured::{FIRST_NS, Read, read};
use crate::{FORMATS, destination, write};

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
}
