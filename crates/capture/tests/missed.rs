//! Files say when the capture lost packets, in statistics that anybody can read.

mod captured;

use std::path::{Path, PathBuf};
use std::process::Command;

use captured::{FIRST_NS, give, read, stamp, writer};
use tempfile::TempDir;
use wirestamp_capture::file::{Destination, Format, Reader, Rotation, Writer};
use wirestamp_capture::{CaptureLoss, Ledger, Sink};
use wirestamp_clock::{Span, Time};

const FORMATS: [Format; 3] = [Format::Pcapng, Format::Pcap, Format::PcapMicros];

fn missed(from: i64, until: i64, packets: u64) -> CaptureLoss {
    let at = |after| Time::from_nanos(FIRST_NS + after);
    CaptureLoss { from: at(from), until: at(until), packets }
}

/// Of lanes, whose stretches overlap.
const STRETCHES: [(i64, i64, u64); 4] =
    [(0, 100, 7), (50, 120, 2), (2_000_000_000, 2_000_000_001, 1), (-5, 2_000_000_002, 3)];

fn destination(folder: &TempDir, format: Format, zstd: bool) -> Destination {
    Destination { format, zstd, ..Destination::new(&folder.path().join("out")) }
}

/// Writes a packet after each stretch.
fn write(to: &Destination) -> Writer {
    let mut writer = writer(to).unwrap();
    for (from, until, packets) in STRETCHES {
        writer.missed(&missed(from, until, packets)).unwrap();
        give(&mut writer, stamp(until + 1, 0), &[7; 60]).unwrap();
    }
    writer
}

fn ledger(kernel_dropped: u64) -> Ledger {
    Ledger { seen: 4 + kernel_dropped, kernel_dropped, delivered: 4, ..Ledger::default() }
}

/// The stretches of a file, each with the number of packets before it, and what was lost in all.
fn stretches(path: &Path) -> (Vec<(usize, CaptureLoss)>, u64) {
    let mut reader = Reader::open(path).unwrap();
    let (mut found, mut packets) = (Vec::new(), 0);
    while let Some(packet) = reader.next_packet().unwrap() {
        found.extend(packet.missed.into_iter().map(|missed| (packets, missed)));
        packets += 1;
    }
    found.extend(reader.take_missed().into_iter().map(|missed| (packets, missed)));
    (found, reader.capture_lost())
}

fn tool(name: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(name).args(arguments).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {}: {said}", path.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn stretches_come_out_as_they_went_in_and_before_the_packets_behind_them() {
    let folder = tempfile::tempdir().unwrap();
    for (format, zstd) in FORMATS.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let to = destination(&folder, format, zstd);
        write(&to).finish(&ledger(13)).unwrap();
        let (found, lost) = stretches(&to.path);
        if format.is_classic() {
            assert_eq!((found.len(), lost), (0, 0), "{format}");
        } else {
            let expected = STRETCHES.iter().map(|&(from, until, n)| missed(from, until, n));
            assert!(found.into_iter().eq(expected.enumerate()), "{zstd}");
            assert_eq!(lost, 13, "{zstd}");
        }
    }
}

#[test]
fn what_was_not_told_lies_between_the_last_stretch_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    write(&to).finish(&ledger(20)).unwrap();
    let (found, lost) = stretches(&to.path);
    let &(after, rest) = found.last().unwrap();
    assert_eq!((found.len(), after, rest.packets, lost), (5, 4, 7, 20));
    assert_eq!(rest.from, missed(0, 2_000_000_002, 0).until);
    assert!(rest.until >= rest.from);
}

#[test]
fn a_file_that_has_statistics_at_its_end_only_does_not_say_when() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let mut writer = writer(&to).unwrap();
    give(&mut writer, stamp(0, 0), &[7; 60]).unwrap();
    writer.finish(&ledger(20)).unwrap();
    assert_eq!(stretches(&to.path), (Vec::new(), 20));
}

#[test]
fn each_file_of_a_set_has_its_own_stretches() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { bytes: None, seconds: Some(1), files: None };
    let path = folder.path().join("%s");
    let to = Destination { rotation, ..Destination::new(&path) };
    let mut writer = writer(&to).unwrap();
    // The first file is begun now, and the packets are stamped as if they came later.
    let begun = Time::try_from(std::time::SystemTime::now()).unwrap();
    let at = |seconds: i64| (begun + Span::from_secs(seconds)).as_nanos() - FIRST_NS;
    for second in [0, 3, 6] {
        writer.missed(&missed(at(second) - 9, at(second), 5)).unwrap();
        give(&mut writer, stamp(at(second) + 1, 0), &[7; 60]).unwrap();
        give(&mut writer, stamp(at(second + 1), 0), &[7; 60]).unwrap();
    }
    let paths: Vec<PathBuf> = writer.paths().to_vec();
    writer.finish(&ledger(15)).unwrap();
    let told: Vec<u64> = paths
        .iter()
        .map(|path| stretches(path).0.iter().map(|(_, missed)| missed.packets).sum())
        .collect();
    assert!(paths.len() > 1 && told.iter().all(|&packets| packets <= 5), "{told:?}");
    assert_eq!(told.iter().sum::<u64>(), 15);
}

#[test]
fn other_tools_read_files_with_statistics_in_passing() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    write(&to).finish(&ledger(13)).unwrap();
    let ours = read(&to.path);
    ours.end.unwrap();
    assert_eq!((ours.packets.len(), ours.interfaces[0].ledger), (4, Some(ledger(13))));
    let told = tool("capinfos", &["-c", "-M"], &to.path);
    assert!(told.trim_end().ends_with(" 4"), "{told}");
    let numbers = tool("tshark", &["-T", "fields", "-e", "frame.number", "-r"], &to.path);
    assert_eq!(numbers, "1\n2\n3\n4\n");
    let dumped = Command::new("tcpdump").args(["-n", "-r"]).arg(&to.path).output().unwrap();
    assert!(dumped.status.success());
    assert_eq!(String::from_utf8(dumped.stdout).unwrap().lines().count(), 4);
}
