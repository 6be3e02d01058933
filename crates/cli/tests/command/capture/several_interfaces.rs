//! Captures of several interfaces into one file (`-i A -i B`).

use std::fs;
use std::path::Path;

use serde_json::Value;
use wirestamp_capture::file::Reader;

use crate::capture::folder;
use crate::common::{Leftovers, is_root, json, run, stderr, tool};

const INTERFACES: [&str; 2] = ["tap-a@wirestamp-router", "tap-b@wirestamp-sink"];

/// Sends 20 datagrams through the test bed, while both interfaces are captured. `$0` is the binary, `$1` the folder, the
/// others are the interfaces.
const SCRIPT: &str = r#"
    cd "$1"
    both="-i $2 -i $3 -Q in"
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    "$0" capture $both -w all.pcapng --json udp port 5004 -c 40 > all.json 2> all.log & running=$!
    "$0" capture $both -w raw.pcapng --stamp raw -U -c 40 --json udp port 5004 > raw.json 2> raw.log & running="$running $!"
    "$0" capture $both --print udp port 5004 -c 11 > printed 2> printed.log & running="$running $!"
    for log in all raw printed; do await Ctrl-C $log.log; done
    ip netns exec wirestamp-source python3 -c '
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(20):
    sender.sendto(bytes([number]) * 40, ("10.77.2.2", 5004))
'
    for capture in $running; do wait $capture; done
"#;

#[test]
fn file_and_summary_have_every_interface() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    let shell = ["lab", "run", "timeout", "90", "sh", "-euc", SCRIPT];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), &path("")];
    let output = run(&[&shell[..], &files, &INTERFACES].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["all", "raw"] {
        let file = path(&format!("{name}.pcapng"));
        let summary = fs::read_to_string(path(&format!("{name}.json"))).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!((&summary["packets"], &summary["balanced"]), (&40.into(), &true.into()));
        assert_eq!(summary["files"][0], format!("{name}.pcapng"));
        let mut reader = Reader::open(Path::new(&file)).unwrap();
        while reader.next_packet().unwrap().is_some() {}
        for (number, interface) in INTERFACES.iter().enumerate() {
            let ours = &summary["interfaces"][number];
            assert_eq!(ours["interface"], **interface, "{name}");
            assert_eq!(ours["ledger"]["delivered"], 20, "{name}: {ours}");
            let in_file = &reader.interfaces()[number];
            assert_eq!(in_file.name.as_deref(), Some(*interface), "{name}");
            assert_eq!(in_file.packets, 20, "{name}");
            assert_eq!(serde_json::to_value(in_file.ledger).unwrap(), ours["ledger"], "{name}");
        }
        let names = tool("tshark", &["-r", &file, "-T", "fields", "-e", "frame.interface_name"]);
        for interface in INTERFACES {
            assert_eq!(names.lines().filter(|line| *line == interface).count(), 20, "{names}");
        }
        // The file has the same packets at both interfaces.
        let [a, b] = INTERFACES.map(|interface| format!("{file}#{interface}"));
        assert_eq!(json(&["delay", &a, &b, "--json"])["matched"], 20, "{name}");
    }
    let printed = fs::read_to_string(path("printed")).unwrap();
    assert_eq!(printed.lines().count(), 11, "{printed}");
    let is_named = |line: &str| {
        INTERFACES.iter().any(|interface| line.contains(&format!(" {interface} UDP ")))
    };
    assert!(printed.lines().all(is_named), "{printed}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn options_of_one_interface_are_refused_for_several() {
    let (_folder, path) = folder();
    let file = path("x.pcapng");
    let cases: [(&[&str], &str); 8] = [
        (&["-i", "lo"], "-i lo is given twice"),
        (&["-i", "any"], "-i any captures at all interfaces already"),
        (&["-i", "eth9", "-w", "x.pcap"], "use --format pcapng"),
        (&["-i", "eth9", "--list"], "--list can have one interface only"),
        (&["-i", "eth9", "--tune"], "--tune can have one interface only"),
        (&["-i", "eth9", "--metrics", "127.0.0.1:0"], "--metrics can have one interface only"),
        (&["-i", "eth9", "-w", &file, "--anchors", "a", "--stamp", "raw"], "--anchors can have"),
        (&["-i", "eth9", "--stamp", "hardware"], "--stamp hardware can have one interface only"),
    ];
    for (arguments, hint) in cases {
        let output = run(&[&["capture", "-i", "lo"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
    }
    if is_root() {
        let output = run(&["capture", "-i", "lo", "-i", "no-such-if", "-w", &file]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("there is no interface no-such-if"), "{message}");
        assert!(!Path::new(&file).exists());
    }
}
