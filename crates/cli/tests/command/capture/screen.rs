//! The screen of `flows`.

use std::fs;
use std::process::Stdio;

use crate::capture::conversation::Conversation;
use crate::capture::terminal::OnTerminal;
use crate::common::{is_root, run, stderr, tool, wirestamp};

#[test]
fn screen_shows_flows_then_the_summary() {
    if !is_root() {
        return;
    }
    let conversation = Conversation::new();
    let mut screen = OnTerminal::start(&format!("flows -i lo -Q in {}", conversation.filter));
    screen.wait_for("Waiting for packets on lo");
    conversation.call(50, 5);
    screen.wait_for("PCMU");
    screen.strike("\r");
    screen.wait_for("burst ratio");
    screen.strike("?");
    screen.wait_for("any key closes this");
    screen.strike("xq");
    let (status, after) = screen.end();
    assert_eq!(status, Some(0), "{after}");
    assert!(after.contains("50 packets") && after.contains("5 (9.09 %)"), "no summary: {after}");
}

#[test]
fn signals_restore_the_terminal() {
    if !is_root() {
        return;
    }
    let conversation = Conversation::new();
    let arguments = format!("flows -i lo -Q in {}", conversation.filter);
    let mut screen = OnTerminal::start(&arguments);
    screen.wait_for("Waiting for packets on lo");
    screen.strike("\x03");
    assert_eq!(screen.end().0, Some(0));
    let mut screen = OnTerminal::start(&arguments);
    screen.wait_for("Waiting for packets on lo");
    let outside = screen.id();
    let inside = fs::read_to_string(format!("/proc/{outside}/task/{outside}/children")).unwrap();
    tool("kill", &["-TERM", inside.trim()]);
    assert_eq!(screen.end().0, Some(0));
}

#[test]
fn file_is_browsed_with_screen_option() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("call.pcapng").to_str().unwrap().to_owned();
    let conversation = Conversation::new();
    let capture =
        ["capture", "-i", "lo", "-Q", "in", "-c", "50", "-w", &path, &conversation.filter];
    let mut capture =
        wirestamp(&capture).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut message = std::io::BufReader::new(capture.stderr.as_mut().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C") {
        std::io::BufRead::read_line(&mut message, &mut line).unwrap();
    }
    conversation.call(50, 5);
    assert!(capture.wait().unwrap().success());
    let mut screen = OnTerminal::start(&format!("flows {path} --screen"));
    screen.wait_for("PCMU");
    screen.strike("/port 9\r");
    screen.wait_for("No flow matches");
    screen.strike("\x1b");
    screen.wait_for("PCMU");
    screen.strike("q");
    let (status, after) = screen.end();
    assert!(status == Some(0) && after.contains("50 packets"), "{after}");
    let nowhere = run(&["flows", &path, "--screen"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("--screen needs a terminal"));
}
