//! A command on a terminal that script(1) makes.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use vt100::Screen;

/// Far above the time of any step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A command on a terminal of its own.
pub(super) struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    terminal: vt100::Parser,
    _folder: TempDir,
}

impl OnTerminal {
    pub(super) fn start(arguments: &str) -> Self {
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

    /// The process of script(1), whose child is the command.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn strike(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the alternate screen contains this text.
    pub(super) fn wait_for(&mut self, text: &str) {
        self.wait_until(
            |screen| screen.alternate_screen() && screen.contents().contains(text),
            text,
        );
    }

    /// Waits until the normal screen contains this text.
    pub(super) fn wait_for_line(&mut self, text: &str) {
        self.wait_until(|screen| screen.contents().contains(text), text);
    }

    fn wait_until(&mut self, there: impl Fn(&Screen) -> bool, text: &str) {
        while !there(self.terminal.screen()) {
            let Ok(bytes) = self.output.recv_timeout(TIMEOUT) else {
                panic!("no {text:?} in:\n{}", self.terminal.screen().contents());
            };
            self.terminal.process(&bytes);
        }
    }

    /// Its exit status, and what is on the terminal after it.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
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
