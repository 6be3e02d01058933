//! Sets of files: each file is complete, together they have every packet, and packets without disk space are
//! counted once.

mod captured;

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use captured::{FIRST_NS, give, read, stamp, writer};
use tempfile::TempDir;
use wirestamp_capture::file::{Destination, Format, Rotation};
use wirestamp_capture::{Ledger, Sink};

const SECOND: i64 = 1_000_000_000;

/// Writes `count` packets of 1000 bytes, a tenth of a second apart, the first `after` after `FIRST_NS`; returns the
/// files, oldest first.
fn write(to: &Destination, count: u32, first: i64) -> Vec<PathBuf> {
    let mut writer = writer(to).unwrap();
    for number in 0..count {
        let bytes = [&number.to_be_bytes()[..], &[0; 996]].concat();
        give(&mut writer, stamp(first + i64::from(number) * SECOND / 10, 20), &bytes).unwrap();
    }
    let paths = writer.paths().to_vec();
    writer.finish(&Ledger { delivered: count.into(), ..Ledger::default() }).unwrap();
    paths
}

fn destination(folder: &TempDir, name: &str, rotation: Rotation) -> Destination {
    Destination { rotation, ..Destination::new(&folder.path().join(name)) }
}

/// The packet numbers in a file that has to be complete.
fn numbers(path: &Path) -> Vec<u32> {
    let content = read(path);
    content.end.unwrap_or_else(|error| panic!("{error}"));
    let number = |bytes: &[u8]| u32::from_be_bytes(*bytes.first_chunk().unwrap());
    content.packets.iter().map(|(_, _, bytes)| number(bytes)).collect()
}

const BY_SIZE: Rotation = Rotation { bytes: Some(10_000), seconds: None, files: None };

#[test]
fn files_by_size_have_every_packet() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Pcapng, Format::Pcap] {
        for zstd in [false, true] {
            let to = Destination { format, zstd, ..destination(&folder, "x", BY_SIZE) };
            let files = write(&to, 35, 0);
            assert_eq!(files, ["x", "x1", "x2", "x3"].map(|name| folder.path().join(name)));
            let all: Vec<_> = files.iter().flat_map(|path| numbers(path)).collect();
            assert_eq!(all, (0..35).collect::<Vec<_>>(), "{format}");
            for path in &files[..3] {
                // One packet more than the size: the next file begins with the packet after it.
                let length = fs::metadata(path).unwrap().len();
                assert!(zstd || (10_000..12_000).contains(&length), "{format}: {length}");
            }
            if format == Format::Pcapng {
                let ends: Vec<_> =
                    files.iter().map(|path| read(path).interfaces[0].clone()).collect();
                assert!(ends.iter().all(|of| of.provenance.as_ref().unwrap().error_ns == 20));
                let ledgers: Vec<_> = ends.iter().map(|of| of.ledger.is_some()).collect();
                assert_eq!(ledgers, [false, false, false, true]);
            }
        }
    }
}

#[test]
fn ring_of_files_has_the_newest_packets() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Rotation { files: Some(2), ..BY_SIZE };
    let files = write(&destination(&folder, "x", ring), 45, 0);
    assert_eq!(files, ["x1", "x0"].map(|name| folder.path().join(name)));
    let kept: Vec<_> = files.iter().flat_map(|path| numbers(path)).collect();
    assert_eq!(kept.last(), Some(&44));
    assert!(kept.len() > 10 && kept.is_sorted_by(|a, b| a + 1 == *b), "{kept:?}");
}

#[test]
fn files_by_time_rotate_by_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let by_time = Rotation { bytes: None, seconds: Some(2), files: None };
    // Later than this machine's clock, which sets the start of the first file.
    let now = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
    let first = now + 10 * SECOND;
    let files = write(&destination(&folder, "x-%s", by_time), 50, first - FIRST_NS);
    let expected =
        [0, 2, 4].map(|after| folder.path().join(format!("x-{}", first / SECOND + after)));
    assert_eq!(files[1..], expected);
    let lengths: Vec<_> = files.iter().map(|path| numbers(path).len()).collect();
    assert_eq!(lengths, [0, 20, 20, 10]);
}

#[test]
fn packet_without_room_is_lost_once() {
    let (reader, pipe) = io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    let mut writer = writer(&Destination::new(&path)).unwrap();
    drop((reader, pipe));
    let mut taken = 0;
    while give(&mut writer, stamp(0, 0), &[0; 1000]).is_ok() {
        taken += 1;
    }
    assert!(taken > 20, "{taken}");
    // The caller counts the refused one.
    assert_eq!(writer.lost(), taken);
    assert!(writer.finish(&Ledger::default()).unwrap_err().is_broken_pipe());
}

#[test]
fn pending_packets_are_written_or_counted_at_the_end() {
    let (reader, pipe) = io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    let mut writer = writer(&Destination { zstd: true, ..Destination::new(&path) }).unwrap();
    drop((reader, pipe));
    for _ in 0..3 {
        give(&mut writer, stamp(0, 0), &[0; 1000]).unwrap();
    }
    assert!(writer.end().unwrap_err().is_broken_pipe());
    assert_eq!(writer.lost(), 3);
}

#[test]
fn failed_rotation_leaves_earlier_files_complete() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, "x", BY_SIZE);
    fs::create_dir(folder.path().join("x1")).unwrap();
    let mut writer = writer(&to).unwrap();
    let mut taken = 0;
    let error = loop {
        match give(&mut writer, stamp(0, 0), &[0; 1000]) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("x1"), "{error}");
    assert_eq!(writer.lost(), 0);
    writer.finish(&Ledger::default()).unwrap();
    assert_eq!(numbers(&to.path).len(), taken);
}
