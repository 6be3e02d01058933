//! Progress of long commands on a terminal: a bar, or a line of text.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// Interval of a line's updates, that of tcpdump.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// A bar of 1000 steps on standard error; hidden without a terminal.
pub(crate) fn progress_bar(output: Output) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar
}

/// The bar's position for a completed share, 0 to 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
pub(crate) fn per_mille(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * 1000.0) as u64
}

/// A line of text on standard error that is kept up to date. It disappears when this value is dropped.
pub(crate) struct LiveLine {
    /// Dropped to end the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveLine {
    /// Shows `text` now, and again each second. The cursor stays at the start of the line, where other output replaces it, also
    /// the terminal's `^C`.
    pub(crate) fn start(text: impl Fn() -> String + Send + 'static) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let show = move || {
            let mut width = 0;
            loop {
                let text = text();
                width = width.max(text.chars().count());
                write_line(&text, width);
                if ended.recv_timeout(UPDATE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return write_line("", width);
                }
            }
        };
        let thread = thread::Builder::new().name("ws-progress".into()).spawn(show)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

/// Replaces the line of the cursor, if that is no longer than `width`.
fn write_line(text: &str, width: usize) {
    let _ = io::stderr().write_all(format!("{text:width$}\r").as_bytes());
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
