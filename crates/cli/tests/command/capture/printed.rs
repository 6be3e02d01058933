//! Packets as lines of text (`--print`).

use std::path::Path;

use crate::capture::{Traffic, folder, read};
use crate::common::{is_root, run, stderr};

#[test]
fn packets_are_printed_and_written() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let file = path("x.pcapng");
    let mut traffic = Traffic::new();
    let capture = traffic.capture(&["-c", "3", "--print", "-w", &file]);
    traffic.send(3);
    let output = capture.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for (line, time) in lines.iter().zip(read(Path::new(&file)).times) {
        let nanos = format!(".{:09}Z ±", time.rem_euclid(1_000_000_000));
        assert!(line.contains(&nanos), "{line}");
        assert!(line.contains(" UDP 127.0.0.1:") && line.ends_with(", payload 1000, 1042 bytes"));
    }
}

#[test]
fn printing_needs_standard_output_for_itself() {
    for arguments in [&["--print", "-w", "-"][..], &["--print", "--json"]] {
        let output = run(&[&["capture", "-i", "lo"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}
