//! Files have the capture's losses, in statistics that any tool can read.

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

/// Intervals of several lanes, which overlap.
const INTERVALS: [(i64, i64, u64); 4] =
    [(0, 100, 7), (50, 120, 2), (2_000_000_000, 2_000_000_001, 1), (-5, 2_000_000_002, 3)];

fn destination(folder: &TempDir, format: Format, zstd: bool) -> Destination {
    Destination { format, zstd, ..Destination::new(&folder.path().join("out")) }
}

/// Writes a packet after each interval.
fn write(to: &Destination) -> Writer {
    let mut writer = writer(to).unwrap();
    for (from, until, packets) in INTERVALS {
        writer.missed(&missed(from, until, packets)).unwrap();
        give(&mut writer, stamp(until + 1, 0), &[7; 60]).unwrap();
    }
    writer
}

fn ledger(kernel_dropped: u64) -> Ledger {
    Ledger { seen: 4 + kernel_dropped, kernel_dropped, delivered: 4, ..Ledger::default() }
}

/// The loss intervals of a file, each with the number of packets before it, and the total loss.
fn intervals(path: &Path) -> (Vec<(usize, CaptureLoss)>, Option<u64>) {
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
fn intervals_survive_and_precede_later_packets() {
    let folder = tempfile::tempdir().unwrap();
    for (format, zstd) in FORMATS.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let to = destination(&folder, format, zstd);
        write(&to).finish(&ledger(13)).unwrap();
        let (found, lost) = intervals(&to.path);
        if format.is_classic() {
            assert_eq!((found.len(), lost), (0, None), "{format}");
        } else {
            let expected = INTERVALS.iter().map(|&(from, until, n)| missed(from, until, n));
            assert!(found.into_iter().eq(expected.enumerate()), "{zstd}");
            assert_eq!(lost, Some(13), "{zstd}");
        }
    }
}

#[test]
fn remaining_loss_is_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    write(&to).finish(&ledger(20)).unwrap();
    let (found, lost) = intervals(&to.path);
    let &(after, rest) = found.last().unwrap();
    assert_eq!((found.len(), after, rest.packets, lost), (5, 4, 7, Some(20)));
    assert_eq!(rest.from, missed(0, 2_000_000_002, 0).until);
    assert!(rest.until >= rest.from);
}

#[test]
fn statistics_at_the_end_have_no_interval() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let mut writer = writer(&to).unwrap();
    give(&mut writer, stamp(0, 0), &[7; 60]).unwrap();
    writer.finish(&ledger(20)).unwrap();
    assert_eq!(intervals(&to.path), (Vec::new(), Some(20)));
}

#[test]
fn each_file_of_a_set_has_its_own_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { bytes: None, seconds: Some(1), files: None };
    let path = folder.path().join("%s");
    let to = Destination { rotation, ..Destination::new(&path) };
    let mut writer = writer(&to).unwrap();
    // The first file begins now, and the packets have later stamps.
    let begun = Time::try_from(std::time::SystemTime::now()).unwrap();
    let at = |seconds: i64| (begun + Span::from_secs(seconds)).as_nanos() - FIRST_NS;
    for second in [0, 3, 6] {
        writer.missed(&missed(at(second) - 9, at(second), 5)).unwrap();
        give(&mut writer, stamp(at(second) + 1, 0), &[7; 60]).unwrap();
        give(&mut writer, stamp(at(second + 1), 0), &[7; 60]).unwrap();
    }
    let paths: Vec<PathBuf> = writer.paths().to_vec();
    writer.finish(&ledger(15)).unwrap();
    let output: Vec<u64> = paths
        .iter()
        .map(|path| intervals(path).0.iter().map(|(_, missed)| missed.packets).sum())
        .collect();
    assert!(paths.len() > 1 && output.iter().all(|&packets| packets <= 5), "{output:?}");
    assert_eq!(output.iter().sum::<u64>(), 15);
}

#[test]
fn other_tools_read_intermediate_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    write(&to).finish(&ledger(13)).unwrap();
    let ours = read(&to.path);
    ours.end.unwrap();
    assert_eq!((ours.packets.len(), ours.interfaces[0].ledger), (4, Some(ledger(13))));
    let output = tool("capinfos", &["-c", "-M"], &to.path);
    assert!(output.trim_end().ends_with(" 4"), "{output}");
    let numbers = tool("tshark", &["-T", "fields", "-e", "frame.number", "-r"], &to.path);
    assert_eq!(numbers, "1\n2\n3\n4\n");
    let dumped = Command::new("tcpdump").args(["-n", "-r"]).arg(&to.path).output().unwrap();
    assert!(dumped.status.success());
    assert_eq!(String::from_utf8(dumped.stdout).unwrap().lines().count(), 4);
}
