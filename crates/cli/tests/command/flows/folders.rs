//! Folders of capture files, such as those of a ring, as one capture.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::capture::{Traffic, summary};
use crate::common::{Leftovers, is_root, json, run, stderr};
use crate::delay::{Classic, sent};

fn flows(folder: &Path) -> Value {
    json(&["flows", folder.to_str().unwrap(), "--json"])
}

/// One flow whose packets have these numbers.
fn packets(numbers: std::ops::Range<u32>) -> Classic {
    Classic::packets(numbers.map(|number| (sent(number), number)))
}

#[test]
fn captures_of_a_folder_are_read_in_the_order_of_their_packets() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    // As tcpdump's ring, whose newest file is not the last by name.
    write("ring.pcap0", &packets(40..60).0);
    write("ring.pcap1", &packets(0..25).0);
    write("ring.pcap2", &packets(25..40).0);
    write("notes.txt", b"no capture");
    write("empty.pcap", b"");
    fs::create_dir(folder.path().join("older")).unwrap();
    let found = flows(folder.path());
    assert_eq!((&found["packets"], &found["out_of_order"]), (&60.into(), &0.into()), "{found:#}");
    assert_eq!(found["flows"].as_array().unwrap().len(), 1);
    let [a, b] = [0, 1].map(|_| folder.path().to_str().unwrap());
    let found = json(&["delay", a, b, "--json"]);
    assert_eq!((&found["lost"], &found["matched"]), (&0.into(), &60.into()), "{found:#}");
}

#[test]
fn files_that_do_not_fit_together_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let refused = |reason: &str| {
        let output = run(&["flows", path]);
        let message = stderr(&output);
        assert!(!output.status.success() && message.contains(reason), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    refused("has no capture files");
    fs::write(folder.path().join("a.pcap"), &packets(0..5).0).unwrap();
    let mut cooked = Classic::of_link(276);
    cooked.frame(sent(9), &[0; 60]);
    fs::write(folder.path().join("b.pcap"), &cooked.0).unwrap();
    refused("b.pcap has another format or link type");
}

/// Sends datagrams until the capture has ended.
fn send_until_the_end(traffic: &mut Traffic, capture: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while capture.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the capture has not ended in a minute");
        traffic.send(10);
    }
}

#[test]
fn rings_of_dumpcap_and_of_our_own_are_read_with_their_losses() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let rings = ["dumpcap", "wirestamp"].map(|_| tempfile::tempdir().unwrap());
    let files = rings.each_ref().map(|ring| ring.path().join("ring.pcapng"));
    let [dumpcap, own] = files.each_ref().map(|file| file.to_str().unwrap());
    let mut traffic = Traffic::new();
    let arguments = ["-i", "lo", "-b", "packets:100", "-c", "350", "-w", dumpcap, "-f"];
    let mut capture = std::process::Command::new("dumpcap")
        .args(arguments)
        .arg(&traffic.filter)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    send_until_the_end(&mut traffic, &mut capture);
    // A datagram on lo is 1042 bytes long. All of them have room in the ring, so that none is lost.
    let capture = traffic.capture(&["-w", own, "-C", "1", "-W", "3", "-c", "4000", "--json"]);
    traffic.send(4000);
    assert_eq!(summary(capture)["dropped"]["kernel"], 0);
    // The files of dumpcap's rings do not say what it lost.
    for (ring, (max, dropped)) in rings.iter().zip([(350, Value::Null), (3_000, 0.into())]) {
        assert!(fs::read_dir(ring.path()).unwrap().count() > 2);
        let found = flows(ring.path());
        assert_eq!(found["flows"].as_array().unwrap().len(), 1, "{found:#}");
        assert_eq!((&found["out_of_order"], &found["capture_dropped"]), (&0.into(), &dropped));
        let packets = found["packets"].as_u64().unwrap();
        assert!((max * 2 / 3..=max).contains(&packets), "{packets}");
    }
    assert_eq!(Leftovers::now(), before);
}
