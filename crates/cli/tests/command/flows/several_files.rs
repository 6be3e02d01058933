//! Several files and folders as one capture.

use std::fs;
use std::ops::Range;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use super::interfaces::{block, interface, packet, section};
use crate::common::{stderr, wirestamp};
use crate::delay::{Classic, sent};

/// Files with these contents.
fn folder(files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// Runs `flows` in the folder.
fn flows(folder: &TempDir, arguments: &str) -> Output {
    let all: Vec<_> = ["flows", "--json"].into_iter().chain(arguments.split(' ')).collect();
    wirestamp(&all).current_dir(folder.path()).output().unwrap()
}

#[track_caller]
fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One flow whose packets have these numbers.
fn classic(numbers: Range<u32>) -> Vec<u8> {
    Classic::packets(numbers.map(|number| (sent(number), number))).0
}

/// A capture of an interface that lost packets, with packets at these times in microseconds. The files of a ring have the
/// start in common.
fn with_losses(name: &str, times: &[u32], dropped: u64, start: Option<u32>) -> Vec<u8> {
    let option = |code: u16, value: [u8; 8]| {
        [[code, 8].map(u16::to_ne_bytes).as_flattened(), &value].concat()
    };
    // Of the time, the high word comes first.
    let start =
        start.map(|low| option(2, [[0; 4], low.to_ne_bytes()].concat().try_into().unwrap()));
    let head = [0u32, 0, 100].map(u32::to_ne_bytes).concat();
    let dropped = option(7, dropped.to_ne_bytes());
    let statistics = [head, start.unwrap_or_default(), dropped, vec![0; 4]].concat();
    let packets = times.iter().map(|time| packet(0, *time, 1000));
    let blocks = [section(), interface(name)].into_iter().chain(packets);
    blocks.chain([block(5, &statistics)]).collect::<Vec<_>>().concat()
}

#[test]
fn files_and_folders_are_read_in_the_order_of_their_packets() {
    let raw = with_losses("eth0", &[10, 20], 0, None);
    let folder = folder(&[
        ("b.pcap", classic(20..40)),
        ("a.pcap", classic(0..20)),
        ("ring/one", classic(50..60)),
        ("ring/two", classic(40..50)),
        ("ring/readme", b"no capture".to_vec()),
        ("early.pcapng", raw),
    ]);
    let output = flows(&folder, "b.pcap ring/ early.pcapng a.pcap");
    let found = document(&output);
    assert_eq!((&found["packets"], &found["out_of_order"]), (&62.into(), &0.into()), "{found:#}");
    let files = ["b.pcap", "ring/", "early.pcapng", "a.pcap"];
    assert_eq!((&found["files"], found.get("file")), (&files[..].into(), None));
    assert_eq!(found["flows"].as_array().unwrap().len(), 2);
    assert_eq!(stderr(&output), "");
}

#[test]
fn files_that_overlap_are_merged_and_named() {
    let every_other = |first| {
        let numbers = (first..60).step_by(2);
        Classic::packets(numbers.map(|number| (sent(number), number))).0
    };
    let folder = folder(&[("even.pcap", every_other(0)), ("odd.pcap", every_other(1))]);
    for arguments in ["odd.pcap even.pcap", "odd.pcap even.pcap -c 60"] {
        let output = flows(&folder, arguments);
        let found = document(&output);
        assert_eq!((&found["packets"], &found["out_of_order"]), (&60.into(), &0.into()));
        let message = stderr(&output);
        assert!(message.contains("even.pcap and odd.pcap overlap in time"), "{message}");
    }
}

#[test]
fn only_packets_after_the_begin_of_another_file_are_an_overlap() {
    let folder = folder(&[
        ("a.pcap", classic(0..10)),
        ("copy.pcap", classic(0..10)),
        ("next.pcap", classic(9..20)),
        ("inside.pcap", classic(5..6)),
    ]);
    for (arguments, names) in [
        ("a.pcap copy.pcap", Some("a.pcap and copy.pcap")),
        ("next.pcap a.pcap", None),
        ("a.pcap inside.pcap next.pcap", Some("a.pcap and inside.pcap")),
    ] {
        let output = flows(&folder, arguments);
        let message = stderr(&output);
        assert_eq!(document(&output)["out_of_order"], 0);
        match names {
            Some(names) => assert!(message.contains(&format!("{names} overlap")), "{message}"),
            None => assert_eq!(message, "", "{arguments}"),
        }
    }
}

#[test]
fn losses_of_all_files_are_added() {
    let folder = folder(&[
        ("a.pcapng", with_losses("eth0", &[10, 20], 3, None)),
        ("b.pcapng", with_losses("eth0", &[30], 4, None)),
        ("c.pcap", classic(0..5)),
        ("ring1.pcapng", with_losses("eth0", &[10], 3, Some(5))),
        ("ring2.pcapng", with_losses("eth0", &[20], 8, Some(5))),
    ]);
    let lost = |arguments| document(&flows(&folder, arguments))["capture_dropped"].clone();
    assert_eq!(lost("a.pcapng b.pcapng"), 7);
    assert_eq!(lost("a.pcapng b.pcapng c.pcap"), Value::Null);
    // The last file of a ring has the sum.
    assert_eq!(lost("ring2.pcapng ring1.pcapng"), 8);
}

#[test]
fn filter_follows_the_files() {
    let folder = folder(&[
        ("a.pcap", classic(0..5)),
        ("b.pcap", classic(5..9)),
        ("net/c.pcap", classic(9..12)),
    ]);
    let packets = |arguments| document(&flows(&folder, arguments))["packets"].as_u64();
    assert_eq!(packets("a.pcap b.pcap udp port 5000"), Some(9));
    assert_eq!(packets("a.pcap b.pcap --filter udp -q"), Some(9));
    assert_eq!(packets("a.pcap b.pcap tcp"), Some(0));
    // A keyword of filters is a folder with a / only.
    assert_eq!(packets("a.pcap net 198.51.100.0/24"), Some(0));
    assert_eq!(packets("a.pcap net/"), Some(8));
    let output = flows(&folder, "a.pcap b.pcap udp --filter tcp");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn unusable_files_among_several_are_errors() {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 3].to_vec();
    let folder = folder(&[
        ("a.pcap", classic(0..5)),
        ("b.pcap", cut(classic(5..9))),
        ("c.pcap", classic(9..12)),
        ("text.pcap", b"no capture".to_vec()),
        ("usb.pcap", Classic::of_link(189).0),
    ]);
    for (arguments, part) in [
        ("a.pcap ./a.pcap", "cannot read ./a.pcap together with other files: it is given twice"),
        ("a.pcap - c.pcap", "cannot read - together with other files"),
        ("a.pcap absent.pcap", "absent.pcap"),
        ("a.pcap text.pcap", "text.pcap is not a capture file"),
        ("a.pcap usb.pcap --partial", "usb.pcap has the link type USB_LINUX (189)"),
        ("a.pcap b.pcap c.pcap", "b.pcap is damaged after packet 3"),
    ] {
        let output = flows(&folder, arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {message}");
        assert!(message.contains(part), "{arguments}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments}: {message}");
    }
    let output = flows(&folder, "a.pcap b.pcap c.pcap --partial");
    assert_eq!(document(&output)["packets"], 5 + 3 + 3);
    assert!(stderr(&output).contains("b.pcap is damaged after packet 3"), "{}", stderr(&output));
}
