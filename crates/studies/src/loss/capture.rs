//! The ways to capture a round, each to a file, with the buffer size that the paper's kernel would have used.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{Config, Cores, Method as Reception, StampSource, Stop};
use wirestamp_clock::ClockService;

use super::paper::Method;
use super::round::Round;
use crate::tester::{
    Bed, CAPTURE_CORE, INTERFACE, Load, SENDING_CORE, Tool, Trial, capture_during, packets_in,
};

/// Buffer between the kernel and the capture: libpcap's default (`-B` of tcpdump(1) and dumpcap(1)), unchanged
/// since the paper.
pub(super) const BUFFER_MIB: u16 = 2;

/// Max time for which the kernel holds back a block that is not full: dumpcap's `CAP_READ_TIMEOUT`.
const RETIRES_WITHIN: Duration = Duration::from_millis(250);

/// Captures rounds.
pub(super) struct Capturing {
    has_dumpcap: bool,
    /// Folder of the files; removed on drop.
    folder: TempDir,
}

impl Capturing {
    pub(super) fn new() -> anyhow::Result<Self> {
        // capinfos(1) counts what dumpcap has written, and comes with it.
        let is_there = |program| {
            let mut command = Command::new(program);
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let folder = tempfile::tempdir().context("cannot make a folder for captures")?;
        Ok(Self { has_dumpcap: is_there("dumpcap") && is_there("capinfos"), folder })
    }

    /// Name of a way to capture.
    pub(super) fn name(&self, method: Method) -> &'static str {
        match method {
            Method::Raw => "ring-raw",
            Method::Kernel => "ring-kernel",
            Method::Generic if self.has_dumpcap => "dumpcap",
            Method::Generic => "libpcap-kernel",
        }
    }

    /// How long a way to capture takes to begin and to end, about.
    pub(super) fn around(&self, method: Method) -> Duration {
        let is_dumpcap = method == Method::Generic && self.has_dumpcap;
        Duration::from_millis(if is_dumpcap { 800 } else { 200 })
    }

    /// Captures a round.
    pub(super) fn round(
        &self,
        method: Method,
        on: (&Bed, &ClockService),
        load: &Load,
        stop: &Stop,
    ) -> anyhow::Result<Round> {
        match method {
            Method::Raw => self.ours(Reception::Ring, StampSource::Raw, on, load, stop),
            Method::Kernel => self.ours(Reception::Ring, StampSource::Kernel, on, load, stop),
            Method::Generic if self.has_dumpcap => self.dumpcap(on, load, stop),
            Method::Generic => self.ours(Reception::LibPcap, StampSource::Kernel, on, load, stop),
        }
    }

    fn ours(
        &self,
        method: Reception,
        stamp: StampSource,
        on: (&Bed, &ClockService),
        load: &Load,
        stop: &Stop,
    ) -> anyhow::Result<Round> {
        let mut config = Config::new(INTERFACE, method, stamp);
        config.ring_bytes = usize::from(BUFFER_MIB) << 20;
        let (here, other) = (Some(CAPTURE_CORE), Some(SENDING_CORE));
        config.lanes = vec![Cores { acquire: here, convert: other, consume: here }];
        let file = self.folder.path().join("ours.pcapng");
        let writer = |facts: &_| Ok(Writer::create(&file, facts, Provenance::of(facts, 0))?);
        let Trial { sent, ledger, sink, .. } = capture_during(on, config, writer, load, stop)?;
        sink.finish(&ledger)?;
        Ok(Round {
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            interface_dropped: sent.dropped,
            kernel_dropped: Some(ledger.lost()),
            captured: ledger.delivered,
        })
    }

    fn dumpcap(
        &self,
        (bed, clock): (&Bed, &ClockService),
        load: &Load,
        stop: &Stop,
    ) -> anyhow::Result<Round> {
        let file = self.folder.path().join("dumpcap.pcapng");
        // taskset(1) executes dumpcap, on the same core as our captures.
        let mut command = bed.receiver().command("taskset");
        let core = CAPTURE_CORE.to_string();
        let buffer = BUFFER_MIB.to_string();
        command.args(["-c", &core, "dumpcap", "-q", "-i", INTERFACE, "-B", &buffer, "-w"]);
        // Ctrl-C in a terminal must not reach dumpcap: this process ends the round.
        command.process_group(0);
        let tool = Tool::start("dumpcap", command.arg(&file), "File:", RETIRES_WITHIN)?;
        let sent = load.send(bed, clock, stop.flag())?;
        tool.rest()?;
        tool.stop()?;
        Ok(Round {
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            interface_dropped: sent.dropped,
            kernel_dropped: None,
            captured: packets_in(&file)?,
        })
    }
}
