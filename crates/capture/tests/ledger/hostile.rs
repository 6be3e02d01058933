//! Frames of random bytes on the wire, through every pair into a file and back.

use std::path::Path;
use std::process::Command;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{Config, Direction, Filter, Pair};

use crate::bed::{LONGEST, Wire, assert_accounted, config, pairs};

const COUNT: usize = 300;

/// Types in frames. After tags, IP, PPPoE and MPLS, a parser reads further headers.
const TYPES: [[u8; 2]; 8] = [
    [0x08, 0x00],
    [0x86, 0xdd],
    [0x81, 0x00],
    [0x88, 0xa8],
    [0x88, 0x47],
    [0x88, 0x64],
    [0x08, 0x06],
    [0x00, 0x40],
];

/// Filters that read many offsets; some run only in the consumer.
const FILTERS: [&str; 6] = [
    "ip or ip6",
    "vlan and ip6",
    "ether[20] & 1 = 1 or greater 5000",
    "udp portrange 1-30000 or tcp[13] & 2 != 0 or icmp",
    "less 1000 and not ip[0] & 0xf > 5",
    "ether[ether[0]] > 0x81",
];

/// Pseudo-random numbers, the same in every run (xorshift64, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// Random bytes. Two frames in three have a known type, in most cases followed by the first byte of an IP header.
    /// The same is repeated at the position after a tag.
    fn frame(&mut self) -> Vec<u8> {
        let length = match self.below(4) {
            0 => 60,
            1 => 60 + self.below(140),
            _ => 60 + self.below(LONGEST - 60),
        };
        let mut frame: Vec<u8> = (0..length).map(|_| self.next().to_le_bytes()[3]).collect();
        let mut at = 12;
        while self.below(3) > 0 && at < 40 {
            frame[at..at + 2].copy_from_slice(&TYPES[self.below(TYPES.len())]);
            frame[at + 2] = [0x45, 0x4f, 0x60, frame[at + 2]][self.below(4)];
            frame[at + 11] = [6, 17, 1, frame[at + 11]][self.below(4)]; // IPv4's protocol
            at += 4; // the content after a tag
        }
        frame
    }
}

fn hostile_frames() -> Vec<Vec<u8>> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    (0..COUNT).map(|_| numbers.frame()).collect()
}

/// Captures `frames` into a file; returns the snap length.
fn capture(wire: &mut Wire, config: Config, frames: &[Vec<u8>], path: &Path) -> usize {
    let name = format!("{} {} {:?}", config.method, config.stamp, config.filter);
    let filter = config.filter.as_deref().map(|filter| Filter::compile(filter).unwrap());
    let capture = wire.open(Config { direction: Direction::In, ..config });
    frames.iter().for_each(|frame| wire.sender.send(frame));
    let facts = capture.facts().clone();
    let mut writer = Writer::create(path, &facts, Provenance::of(&facts, 0)).unwrap();
    let mut ledger = wire.take_in(capture, &mut writer);
    writer.finish(&ledger).unwrap();
    // The network stack drops packets of an unknown protocol after they are captured.
    ledger.interface_dropped = 0;
    let refused = frames.len() as u64 - ledger.seen;
    assert!(refused == 0 || filter.is_some(), "{name}: {ledger:?}");
    assert_accounted(&name, frames.len() as u64 - refused, &ledger);
    assert_eq!(ledger.lost(), 0, "{name}: {ledger:?}");
    facts.snaplen as usize
}

/// The frames of a file, each with its length on the wire, sorted by their bytes: frames that the kernel handles on
/// two cores have no other order.
fn read(path: &Path) -> Vec<(Vec<u8>, usize)> {
    let mut reader = Reader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.bytes.into_owned(), packet.length as usize));
    }
    packets.sort();
    packets
}

/// The expected frames in the file.
fn cut<'a>(frames: impl Iterator<Item = &'a Vec<u8>>, snaplen: usize) -> Vec<(Vec<u8>, usize)> {
    let cut = |frame: &Vec<u8>| (frame[..frame.len().min(snaplen)].to_vec(), frame.len());
    let mut expected: Vec<_> = frames.map(cut).collect();
    expected.sort();
    expected
}

/// Output of a tool for the file at `path`.
fn by(tool: &str, before: &[&str], path: &Path, after: &[&str]) -> String {
    let output = Command::new(tool).args(before).arg(path).args(after).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {}: {said}", path.display());
    String::from_utf8(output.stdout).unwrap()
}

fn name(pair: &Pair) -> String {
    format!("{} {}", pair.method, pair.stamp)
}

#[test]
fn random_frames_survive_the_file() {
    let Some(mut wire) = Wire::new() else { return };
    let (folder, frames) = (tempfile::tempdir().unwrap(), hostile_frames());
    for pair in pairs() {
        let path = folder.path().join(name(pair));
        let snaplen = capture(&mut wire, config(pair), &frames, &path);
        let expected = cut(frames.iter(), snaplen);
        assert!(read(&path) == expected, "{}", name(pair));

        let lengths = by("tshark", &["-r"], &path, &["-T", "fields", "-e", "frame.len"]);
        let mut lengths: Vec<usize> = lengths.lines().map(|line| line.parse().unwrap()).collect();
        let mut sent: Vec<usize> = frames.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        sent.sort_unstable();
        assert_eq!(lengths, sent, "{}", name(pair));
        let output = by("capinfos", &["-c", "-M"], &path, &[]);
        assert!(output.trim_end().ends_with(&format!(" {COUNT}")), "{}: {output}", name(pair));
    }
}

#[test]
fn random_frames_are_filtered_as_by_libpcap() {
    let Some(mut wire) = Wire::new() else { return };
    let (folder, frames) = (tempfile::tempdir().unwrap(), hostile_frames());
    for (pair, expression) in pairs().flat_map(|pair| FILTERS.map(|filter| (pair, filter))) {
        let path = folder.path().join("filtered");
        let config = Config { filter: Some(expression.to_owned()), ..config(pair) };
        let snaplen = capture(&mut wire, config, &frames, &path);
        let filter = Filter::compile(expression).unwrap();
        let passing =
            frames.iter().filter(|frame| filter.passes(frame, frame.len().try_into().unwrap()));
        let expected = cut(passing, snaplen);
        assert!(!expected.is_empty(), "{expression}");
        assert!(read(&path) == expected, "{} '{expression}'", name(pair));
    }
}
