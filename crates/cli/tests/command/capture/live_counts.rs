//! The counts of a running capture on a terminal.

use crate::capture::terminal::OnTerminal;
use crate::capture::{Traffic, folder};
use crate::common::{is_root, stderr, tool};

#[test]
fn counts_are_shown_until_the_end() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let mut traffic = Traffic::new();
    let arguments = format!("capture -i lo -Q in -w {} {}", path("x.pcapng"), traffic.filter);
    let mut terminal = OnTerminal::start(&arguments);
    terminal.wait_for_line("0 packets captured, 0 lost");
    traffic.send(5);
    terminal.wait_for_line("5 packets captured, 0 lost");
    terminal.strike("\x03");
    let (status, after) = terminal.end();
    assert_eq!(status, Some(0), "{after}");
    assert!(after.contains("5 packets, 5210 bytes"), "{after}");
    assert!(!after.contains(" captured, "), "{after}");
}

#[test]
fn counts_are_hidden_where_they_would_disturb() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    let [file, none] = ["x.pcapng", "typescript"].map(&path);
    let capture = format!("{binary} capture -i lo --duration 0.1 udp port 9");
    for options in [format!("-w {file} --quiet"), format!("-w {file} --print"), String::new()] {
        let command = format!("{capture} {options}");
        let shown = tool("script", &["--quiet", "--return", "--command", &command, &none]);
        assert!(!shown.contains(" captured, "), "{options}: {shown}");
        assert!(shown.contains("0 packets, 0 bytes") || options.contains("quiet"), "{shown}");
    }
    // Standard error is no terminal.
    let capture = Traffic::new().capture(&["-w", &file, "--duration", "0.1"]);
    let output = capture.wait_with_output().unwrap();
    assert!(output.status.success() && !stderr(&output).contains(" captured, "));
}
