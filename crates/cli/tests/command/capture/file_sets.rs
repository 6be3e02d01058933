//! Sets of files, and captures that are killed: what is on the disk is readable.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::capture::{FORMATS, Traffic, by_tshark, folder, read, summary};
use crate::common::{Leftovers, is_root, json, tool};
use serde_json::Value;
use wirestamp_capture::Error;

/// Sends until `enough` returns true; fails after a minute.
fn send_until(traffic: &mut Traffic, mut enough: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !enough() {
        assert!(Instant::now() < deadline, "what was waited for has not come in a minute");
        traffic.send(10);
    }
}

/// Whether the file has more than its head and some packets.
fn is_longer(path: &str, than: u64) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.len() > than)
}

#[test]
fn killed_capture_leaves_a_readable_file() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    for format in FORMATS {
        for zstd in [&[][..], &["--zstd"]] {
            let mut traffic = Traffic::new();
            let file = path(&format!("{format}{}", zstd.len()));
            let arguments = [&["-w", &file, "--format", format][..], zstd].concat();
            let mut capture = traffic.capture(&arguments);
            let head = fs::metadata(&file).unwrap().len();
            send_until(&mut traffic, || is_longer(&file, head + 1_000));
            traffic.send(100);
            capture.kill().unwrap();
            capture.wait().unwrap();

            let found = read(Path::new(&file));
            assert!(matches!(found.end, Ok(()) | Err(Error::Damaged { .. })), "{:?}", found.end);
            assert!(!found.numbers.is_empty(), "{format}");
            let expected: Vec<_> = (0..).take(found.numbers.len()).collect();
            assert_eq!(found.numbers, expected, "{format}");
            assert_eq!(by_tshark(&file), found.times, "{format} {zstd:?}");
        }
    }
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn killed_capture_leaves_a_readable_file_set() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let files = ["x", "x1", "x2"].map(&path);
    let mut capture = traffic.capture(&["-w", &files[0], "-C", "1"]);
    send_until(&mut traffic, || is_longer(&files[2], 100_000));
    capture.kill().unwrap();
    capture.wait().unwrap();
    let mut numbers = Vec::new();
    for file in &files[..2] {
        let found = read(Path::new(file));
        found.end.unwrap();
        assert!(is_longer(file, 1_000_000) && !is_longer(file, 1_002_000));
        tool("capinfos", &["-c", file]);
        numbers.extend(found.numbers);
    }
    let last = read(Path::new(&files[2]));
    assert!(matches!(last.end, Ok(()) | Err(Error::Damaged { .. })), "{:?}", last.end);
    numbers.extend(&last.numbers);
    assert!(last.numbers.len() > 50 && numbers.is_sorted_by(|a, b| a + 1 == *b));
}

#[test]
fn file_ring_keeps_the_newest_packets() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("x");
    let capture =
        traffic.capture(&["-w", &file, "-C", "1", "-W", "3", "-c", "4000", "--zstd", "--json"]);
    traffic.send(4000);
    let summary = summary(capture);
    assert_eq!(summary["file"], file);
    // Five files, of which the last two have taken the names of the first two.
    let expected: Vec<_> = ["x2", "x0", "x1"].map(&path).into();
    assert_eq!(summary["files"], Value::from(expected.clone()));
    let all: Vec<_> = expected.iter().flat_map(|file| read(Path::new(file)).numbers).collect();
    assert_eq!(all.last(), Some(&3999));
    assert!(all.len() > 2000 && all.is_sorted_by(|a, b| a + 1 == *b), "{} packets", all.len());
    let ledger = read(Path::new(&expected[2])).interfaces[0].ledger.unwrap();
    assert_eq!(ledger.delivered, 4000);
}

#[test]
fn rotation_by_time_ends_after_the_file_count() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let arguments = ["-w", &path("x-%s"), "-G", "1", "-W", "2", "--stamp", "raw", "--json"];
    let mut capture = traffic.capture(&[&arguments[..], &["--anchors", &path("a.csv")]].concat());
    send_until(&mut traffic, || capture.try_wait().unwrap().is_some());
    let summary = summary(capture);
    let files: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    let mut packets = 0;
    for file in &files {
        let found = read(file);
        found.end.unwrap();
        let name = file.to_str().unwrap();
        let begun: i64 = name.rsplit('-').next().unwrap().parse().unwrap();
        assert!(found.times[0] / 1_000_000_000 >= begun, "{name} begins with {}", found.times[0]);
        // One anchor file serves all files of the set.
        let again = ["restamp", name, "--anchors", &path("a.csv"), "-w", &path("again"), "--json"];
        assert_eq!(json(&again)["packets"], found.times.len());
        packets += found.times.len();
    }
    assert_eq!(summary["packets"], packets);
}

#[test]
fn rotation_by_time_overwrites_nothing() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let mut capture = traffic.capture(&["-w", &path("x"), "-G", "1", "-W", "2", "--json"]);
    send_until(&mut traffic, || capture.try_wait().unwrap().is_some());
    let summary = summary(capture);
    let files: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(files, [path("x"), path("x1")].map(PathBuf::from));
    let packets: usize = files.iter().map(|file| read(file).times.len()).sum();
    assert_eq!(summary["packets"], packets);
}
