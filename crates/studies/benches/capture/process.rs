//! A contender that captures in a process of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;
use wirestamp_studies::tester::{Bed, Tool, packets_in};

use crate::contenders::{Contender, Programs};

/// A capture that runs.
pub(crate) struct Running {
    tool: Tool,
    file: Captured,
    spins: bool,
}

/// A capture that ended without an error.
pub(crate) struct Finished {
    file: Captured,
    /// Its output, line by line.
    said: Vec<String>,
}

/// The capture file; removed on drop.
struct Captured(PathBuf);

impl Running {
    /// Starts `contender` with `more` arguments and waits until it captures.
    pub(crate) fn start(
        contender: Contender,
        more: &[&str],
        programs: &Programs,
        bed: &Bed,
    ) -> anyhow::Result<Self> {
        let file = Captured(programs.capture_file(contender));
        let mut command = contender.command(programs, bed, &file.0);
        let (announcement, retires) = (contender.announcement(), contender.retires_within());
        let tool = Tool::start(&contender.name(), command.args(more), announcement, retires)?;
        Ok(Self { tool, file, spins: contender.spins() })
    }

    /// Seconds of CPU time so far.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        self.tool.cpu_seconds()
    }

    /// Waits until the capture is idle. A spinning capture never is; it passes on what has arrived when it is stopped.
    pub(crate) fn rest(&self) -> anyhow::Result<()> {
        if self.spins { Ok(()) } else { self.tool.rest() }
    }

    /// Ends the capture, and waits for its exit.
    pub(crate) fn stop(self) -> anyhow::Result<Finished> {
        Ok(Finished { said: self.tool.stop()?, file: self.file })
    }
}

impl Finished {
    /// The packets in its file.
    pub(crate) fn written(&self) -> anyhow::Result<u64> {
        packets_in(&self.file.0)
    }

    /// JSON output of `wirestamp`.
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        let from = self.said.iter().position(|line| line == "{").unwrap_or(0);
        let to =
            self.said.iter().rposition(|line| line == "}").map_or(self.said.len(), |at| at + 1);
        let document = self.said.get(from..to).unwrap_or_default().join("\n");
        serde_json::from_str(&document).with_context(|| format!("not JSON: {document}"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.0
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
