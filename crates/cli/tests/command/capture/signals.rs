//! Signals to a running capture.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::capture::{Traffic, folder, read, summary};
use crate::common::is_root;

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether this process ignores SIGHUP, which is number 1.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn counts_are_printed_and_hangup_ends_the_capture() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let file = path("x.pcapng");
    let mut traffic = Traffic::new();
    let mut capture = traffic.capture(&["-w", &file, "--json"]);
    traffic.send(5);
    let messages = BufReader::new(capture.stderr.take().unwrap());
    let mut lines = messages.lines().map(Result::unwrap);
    // Packets reach the ledger some milliseconds later: ask until they have.
    let all = loop {
        signal(&capture, Signal::USR1);
        let line = lines.next().unwrap();
        assert!(line.contains("so far; dropped: 0 by the interface"), "{line}");
        if line.starts_with("5 packets") {
            break line;
        }
    };
    assert!(all.ends_with("0 by the consumer"), "{all}");
    // Under nohup(1) the capture ignores SIGHUP, as this test does.
    let end = if ignores_hangup() { Signal::TERM } else { Signal::HUP };
    signal(&capture, end);
    assert_eq!(summary(capture)["packets"], 5);
    assert_eq!(read(Path::new(&file)).numbers, [0, 1, 2, 3, 4]);
}
