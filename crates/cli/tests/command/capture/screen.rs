//! The screen of `flows`, on a terminal that script(1) makes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::capture::conversation::Conversation;
use crate::common::{is_root, run, stderr, tool, wirestamp};
use tempfile::TempDir;
use vt100::Screen;

/// Far above the time of any step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A command on a terminal of its own.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    terminal: vt100::Parser,
    _folder: TempDir,
}

impl OnTerminal {
    fn start(arguments: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = env!("CARGO_BIN_EXE_wirestamp");
        let command = format!("stty rows 30 cols 110; exec {binary} {arguments}");
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command])
            .arg(folder.path().join("typescript"))
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, output) = mpsc::channel();
        let mut stdout = child.stdout.take().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                let _ = sender.send(bytes[..count].to_vec());
            }
        });
        let keys = child.stdin.take().unwrap();
        let [rows, columns] = [30, 110].map(|size| NonZeroU16::new(size).unwrap());
        let terminal = vt100::Parser::new(rows, columns, 0);
        Self { child, keys, output, terminal, _folder: folder }
    }

    fn strike(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the alternate screen contains this text.
    fn wait_for(&mut self, text: &str) {
        let there = |screen: &Screen| screen.alternate_screen() && screen.contents().contains(text);
        while !there(self.terminal.screen()) {
            let Ok(bytes) = self.output.recv_timeout(TIMEOUT) else {
                panic!("no {text:?} in:\n{}", self.terminal.screen().contents());
            };
            self.terminal.process(&bytes);
        }
    }

    /// Its exit status, and what is on the terminal after it.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(bytes) = self.output.recv_timeout(TIMEOUT) {
            self.terminal.process(&bytes);
        }
        let status = self.child.wait().unwrap();
        let screen = self.terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "not as it was");
        (status.code(), screen.contents())
    }
}

impl Drop for OnTerminal {
    /// Kills the command if the test fails before the end.
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

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
    let outside = screen.child.id();
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
