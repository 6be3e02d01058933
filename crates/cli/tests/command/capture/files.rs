//! Capture files made by the binary from real packets, read by common tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::capture::{FORMATS, Traffic, by_tshark, folder, read, summary, times};
use crate::common::{Leftovers, is_root, json, stderr, tool, wirestamp};
use serde_json::Value;
use wirestamp_capture::file::Interface;

/// The first bytes of a pcapng file (its specification, section 4.1).
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

#[test]
fn all_tools_read_the_same_times() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    for format in FORMATS {
        for zstd in [&[][..], &["--zstd"]] {
            let file = path(&format!("{format}{}", zstd.len()));
            let arguments = ["-w", &file, "--format", format, "-c", "40", "--json"];
            let capture = traffic.capture(&[&arguments[..], zstd].concat());
            traffic.send(40);
            let summary = summary(capture);
            assert_eq!(summary["files"], Value::from(vec![file.clone()]));

            let ours = read(Path::new(&file));
            ours.end.unwrap();
            assert!(ours.numbers.into_iter().eq(traffic.sent - 40..traffic.sent), "{format}");
            assert!(ours.times.iter().any(|time| time % 1000 != 0) == (format != "pcap-us"));
            assert_eq!(by_tshark(&file), ours.times, "{format}");
            let known = tool("capinfos", &["-M", "-c", "-k", "-d", &file]);
            assert!(known.contains("Number of packets:   40"), "{known}");
            let edited = path("edited.pcapng");
            tool("editcap", &[&file, &edited]);
            assert_eq!(read(Path::new(&edited)).times, ours.times, "{format}");
            if zstd.is_empty() {
                let dump = ["-n", "-tt", "--nano", "-r", &file];
                assert_eq!(times(&tool("tcpdump", &dump)), ours.times, "{format}");
            }
            if format == "pcapng" {
                carries_all_that_is_known(&ours.interfaces, &summary);
                // editcap removes the statistics; the remaining error value is still an upper bound.
                let [left] = &read(Path::new(&edited)).interfaces[..] else { panic!("{format}") };
                let bound = left.provenance.as_ref().unwrap().error_ns;
                assert!(left.ledger.is_none() && summary["error_ns"].as_i64() <= Some(bound));
            }
        }
    }
    assert_eq!(Leftovers::now(), before);
}

/// The interface block and the statistics agree with the summary.
fn carries_all_that_is_known(interfaces: &[Interface], summary: &Value) {
    let [interface] = interfaces else { panic!("{interfaces:?}") };
    let provenance = interface.provenance.as_ref().unwrap();
    for (ours, key) in
        [(&provenance.method, "method"), (&provenance.stamp, "stamp"), (&provenance.clock, "clock")]
    {
        assert_eq!(summary[key], **ours, "{key}");
    }
    assert_eq!(summary["error_ns"], provenance.error_ns);
    assert_eq!(summary["granularity_ns"], provenance.granularity_ns.unwrap());
    assert_eq!(summary["ledger"], serde_json::to_value(interface.ledger.unwrap()).unwrap());
}

#[test]
fn tshark_shows_filter_and_counters() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let file = path("out.pcapng");
    let capture = traffic.capture(&["-w", &file, "-c", "5", "--stamp", "raw", "--json"]);
    traffic.send(5);
    summary(capture);
    let known = tool("capinfos", &["-I", "-F", "-l", "-D", &file]);
    for expected in ["Name = lo", "Time precision = nanoseconds (9)", "Number of packets = 5"] {
        assert!(known.contains(expected), "no {expected} in {known}");
    }
    assert!(known.contains(&format!("Filter string = {}", traffic.filter)), "{known}");
    let blocks = tool("tshark", &["-r", &file, "-X", "read_format:MIME Files Format", "-V"]);
    for counter in [
        "Number of Received Packets: 5",
        "Number of Dropped Packets: 0",
        "Number of Accepted by Filter Packets: 5",
        "Number of Dropped Packets by OS: 0",
        "Number of Delivered to the User Packets: 5",
    ] {
        assert!(blocks.contains(counter), "no {counter} in {blocks}");
    }
}

#[test]
fn merged_capture_keeps_its_interfaces() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let [a, b, merged] = ["a", "b", "merged"].map(&path);
    for (file, stamp) in [(&a, "kernel"), (&b, "raw")] {
        let capture = traffic.capture(&["-w", file, "-c", "5", "--stamp", stamp, "--json"]);
        traffic.send(5);
        summary(capture);
    }
    tool("mergecap", &["-w", &merged, &a, &b]);
    let found = read(Path::new(&merged));
    found.end.unwrap();
    let message: Vec<_> = found
        .interfaces
        .iter()
        .map(|of| (of.packets, of.provenance.as_ref().unwrap().stamp.as_str()))
        .collect();
    assert_eq!(message, [(5, "kernel"), (5, "raw")]);
    // The packets of the file match those of the same interface in the merged file.
    let error_of = |file: &str| read(Path::new(file)).interfaces[0].provenance.clone().unwrap();
    let delay = |file: &str| json(&["delay", file, &merged, "--json"]);
    let [of_a, of_b] = [&a, &b].map(|file| error_of(file).error_ns);
    assert_eq!(delay(&a)["matched"], 5);
    assert!(delay(&a)["clock_error_ns"].as_i64() >= Some(of_a + of_a.max(of_b)));
}

#[test]
fn every_format_can_be_piped() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    for format in FORMATS {
        let capture = traffic.capture(&["-w", "-", "--format", format, "-c", "5"]);
        traffic.send(5);
        let output = capture.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let [piped, fifo] = ["piped", format].map(&path);
        fs::write(&piped, output.stdout).unwrap();
        assert_eq!(read(Path::new(&piped)).times.len(), 5, "{format}");

        tool("mkfifo", &[&fifo]);
        let reader = Command::new("tcpdump")
            .args(["-n", "-tt", "--nano", "-r", &fifo])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let capture = traffic.capture(&["-w", &fifo, "--format", format, "-c", "5", "--json"]);
        traffic.send(5);
        summary(capture);
        let read = reader.wait_with_output().unwrap();
        assert_eq!(times(&String::from_utf8(read.stdout).unwrap()).len(), 5, "{format}");
    }
}

#[test]
fn name_selects_the_format_unless_one_is_requested() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let nanoseconds = [0x4d, 0x3c, 0xb2, 0xa1];
    let cases = [("a.pcap", &[][..], nanoseconds), ("b.pcap", &["--format", "pcapng"], PCAPNG)];
    for (name, format, magic) in cases.into_iter().chain([("c", &[][..], PCAPNG)]) {
        let mut traffic = Traffic::new();
        let file = path(name);
        let arguments = [&["-w", &file, "-c", "3", "--json"][..], format].concat();
        let capture = traffic.capture(&arguments);
        traffic.send(3);
        summary(capture);
        assert_eq!(fs::read(file).unwrap()[..4], magic, "{name}");
    }
}

#[test]
fn invalid_destinations_fail_with_one_line() {
    let cases: [(&str, i32, &str); 14] = [
        ("-w x.pcap --stamp raw --anchors a", 2, "pcapng"),
        ("-w x --format tar", 2, "choose one of pcapng, pcap, pcap-us"),
        ("-w x -C 0", 2, "at least 1"),
        ("-w x -G 0", 2, "at least 1"),
        ("-w x -C 1 -W 0", 2, "at least 1"),
        ("-w x -W 3", 2, "-C or -G"),
        ("-C 1", 2, "--write"),
        ("--zstd", 2, "--write"),
        ("-w - -C 1", 2, "write to a file"),
        ("-w x.pcapng.zst", 2, "--zstd"),
        ("-w x --format pcap --stamp raw --anchors a", 2, "pcapng"),
        ("-w x -C 1 --stamp raw --anchors x1", 2, "use two files"),
        ("-w /proc/nowhere/x", 1, "create the folder first"),
        ("-w /dev/full", 1, "free some space"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, hint) in cases {
        if code == 1 && !is_root() {
            continue; // the capture is opened before the file
        }
        let all = ["capture", "-i", "lo"].into_iter().chain(arguments.split(' '));
        let output =
            wirestamp(&all.collect::<Vec<_>>()).current_dir(folder.path()).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!(message.contains(hint), "{arguments}: {message}");
        if code == 1 || !message.starts_with("error:") {
            assert_eq!(message.lines().count(), 1, "{arguments}: {message}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}
