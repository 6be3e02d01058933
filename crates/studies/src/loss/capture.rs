//! The ways to capture a round, each to a file, with the buffer size that the paper's kernel would have used.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{Config, Cores, Method, StampSource};
use wirestamp_clock::ClockService;
use wirestamp_traffic::live::LiveReport;

use crate::tester::{Bed, INTERFACE, Tool, Trial, capture_during, packets_in};

/// Buffer between the kernel and dumpcap: libpcap's default (`-B` of tcpdump(1) and dumpcap(1)), unchanged since the
/// paper.
pub(super) const BUFFER_MIB: u16 = 2;
/// Ours by default.
pub(super) const OUR_BUFFER_MIB: u16 = 32;

/// Max time for which the kernel holds back a block that is not full: dumpcap's `CAP_READ_TIMEOUT`.
const RETIRES_WITHIN: Duration = Duration::from_millis(250);

/// Generic ktime capture without dumpcap.
const LIBPCAP: Program = Program::Ours(Method::LibPcap, StampSource::Kernel);

/// A program that captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// Ours, in this process.
    Ours(Method, StampSource),
    /// dumpcap, in a process of its own.
    Dumpcap,
    /// The same with the buffer that ours has by default.
    DumpcapWithOurBuffer,
}

impl Program {
    /// Its name in tables and raw results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dumpcap => "dumpcap",
            Self::DumpcapWithOurBuffer => "dumpcap-32MiB",
            Self::Ours(Method::Ring, StampSource::Raw) => "ring-raw",
            Self::Ours(Method::Ring, _) => "ring-kernel",
            Self::Ours(Method::TracePass, _) => "trace-pass-raw",
            Self::Ours(Method::XdpPass, _) => "xdp-pass-xdp",
            Self::Ours(Method::Xdp, _) => "xdp-xdp",
            Self::Ours(..) => "libpcap-kernel",
        }
    }

    /// How long it takes to begin and to end, about.
    pub(super) const fn around(self) -> Duration {
        Duration::from_millis(match self {
            Self::Dumpcap | Self::DumpcapWithOurBuffer => 800,
            Self::Ours(..) => 200,
        })
    }
}

/// What was sent, and what a capture got of it.
pub(super) struct Captured {
    pub(super) sent: LiveReport,
    /// Dropped because the capture's buffer was full, or still there at the end; none if the capture does not report it.
    pub(super) dropped: Option<u64>,
    /// In the file.
    pub(super) captured: u64,
}

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

    /// Generic ktime capture: dumpcap, as the paper has it, or libpcap where that is not installed.
    pub(super) const fn generic(&self) -> Program {
        if self.has_dumpcap { Program::Dumpcap } else { LIBPCAP }
    }

    /// The same with the buffer that ours has by default.
    pub(super) const fn generic_with_our_buffer(&self) -> Program {
        if self.has_dumpcap { Program::DumpcapWithOurBuffer } else { LIBPCAP }
    }

    /// Captures while `send` sends. The readers run on `cores`. `buffer_mib` is the buffer of ours.
    pub(super) fn capture(
        &self,
        program: Program,
        (cores, buffer_mib): (Cores, u16),
        (bed, clock): (&Bed, &ClockService),
        send: impl FnOnce() -> anyhow::Result<LiveReport>,
    ) -> anyhow::Result<Captured> {
        match program {
            Program::Dumpcap => self.dumpcap(cores.consume, BUFFER_MIB, bed, send),
            Program::DumpcapWithOurBuffer => self.dumpcap(cores.consume, OUR_BUFFER_MIB, bed, send),
            Program::Ours(method, stamp) => {
                let mut config = Config::new(INTERFACE, method, stamp);
                config.ring_bytes = usize::from(buffer_mib) << 20;
                config.lanes = vec![cores];
                let file = self.folder.path().join("ours.pcapng");
                let writer =
                    |facts: &_| Ok(Writer::create(&file, facts, Provenance::of(facts, 0))?);
                let Trial { sent, ledger, sink, .. } =
                    capture_during((bed, clock), config, writer, |_| send())?;
                sink.finish(&ledger)?;
                Ok(Captured { sent, dropped: Some(ledger.lost()), captured: ledger.delivered })
            }
        }
    }

    fn dumpcap(
        &self,
        core: Option<usize>,
        buffer_mib: u16,
        bed: &Bed,
        send: impl FnOnce() -> anyhow::Result<LiveReport>,
    ) -> anyhow::Result<Captured> {
        let file = self.folder.path().join("dumpcap.pcapng");
        // taskset(1) executes dumpcap, on the same core as our captures.
        let mut command = bed.receiver().command("taskset");
        let core = core.context("dumpcap has no core")?.to_string();
        let buffer = buffer_mib.to_string();
        command.args(["-c", &core, "dumpcap", "-q", "-i", INTERFACE, "-B", &buffer, "-w"]);
        // Ctrl-C in a terminal must not reach dumpcap: this process ends the round.
        command.process_group(0);
        let tool = Tool::start("dumpcap", command.arg(&file), "File:", RETIRES_WITHIN)?;
        let sent = send()?;
        tool.rest()?;
        tool.stop()?;
        Ok(Captured { sent, dropped: None, captured: packets_in(&file)? })
    }
}
