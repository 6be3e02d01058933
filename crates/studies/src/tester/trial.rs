//! A capture of ours that runs while a load is sent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, anyhow};
use wirestamp_capture::{Capture, Config, Facts, Ledger, LiveLedger, Sink, Stop};
use wirestamp_clock::ClockService;
use wirestamp_traffic::live::LiveReport;

use super::bed::Bed;

/// Time without consumed packets after which a capture has none left: many times the time slice of a busy
/// thread on its core, and the 10 ms for which the kernel holds back a block that is not full.
const QUIET: Duration = Duration::from_millis(200);
/// Interval of checks for consumed packets.
const LOOK: Duration = Duration::from_millis(2);

/// Result of a trial: frames sent and captured.
pub(crate) struct Trial<S> {
    pub(crate) sent: LiveReport,
    pub(crate) ledger: Ledger,
    /// CPU time of the consuming thread. With kernel stamps, this is the entire capture, which then has only one
    /// thread.
    pub(crate) cpu: Duration,
    pub(crate) sink: S,
}

/// Reads the counts of a running capture.
pub(crate) struct Meter {
    live: Arc<LiveLedger>,
    /// Where the kernel counts the CPU time of the consuming thread, once it runs.
    cpu_time: OnceLock<PathBuf>,
}

impl Meter {
    /// Counts of the capture, and CPU time of its consuming thread, when it has consumed `arrived` packets or no more are
    /// left.
    ///
    /// # Errors
    /// When the CPU time cannot be read.
    pub(crate) fn read(&self, arrived: u64) -> anyhow::Result<(Ledger, Duration)> {
        rest(&self.live, arrived);
        Ok((self.live.snapshot(), cpu_time(self.cpu_time.wait())?))
    }
}

/// Captures on the receiving interface while `send` sends, and until all packets that arrived are consumed. `sink`
/// creates the sink of the packets from the facts of the capture.
///
/// # Errors
/// When the capture cannot be opened or fails, or nothing can be sent.
pub(crate) fn capture_during<S: Sink + Send>(
    (bed, clock): (&Bed, &ClockService),
    config: Config,
    sink: impl FnOnce(&Facts) -> anyhow::Result<S>,
    send: impl FnOnce(&Meter) -> anyhow::Result<LiveReport>,
) -> anyhow::Result<Trial<S>> {
    let capture = bed.receiver().run(|| Capture::open(config, clock))??;
    let meter = Meter { live: capture.live_ledger(), cpu_time: OnceLock::new() };
    let end = Stop::new()?;
    let mut sink = sink(capture.facts())?;
    let (sent, captured) = thread::scope(|scope| -> anyhow::Result<_> {
        let capture =
            thread::Builder::new().name("ws-consume".into()).spawn_scoped(scope, || {
                let file = meter.cpu_time.get_or_init(file_of_cpu_time);
                let (ledger, outcome) = capture.run(clock, &end, &mut sink);
                outcome.map_err(anyhow::Error::from).and_then(|()| Ok((ledger, cpu_time(file)?)))
            })?;
        let sent = send(&meter);
        if let Ok(sent) = &sent {
            rest(&meter.live, sent.sent.saturating_sub(sent.dropped));
        }
        end.request();
        let captured = capture.join().map_err(|_| anyhow!("the capture panicked"))?;
        Ok((sent?, captured?))
    })?;
    let (ledger, cpu) = captured;
    Ok(Trial { sent, ledger, cpu, sink })
}

/// Waits until `arrived` packets are consumed, or no more are.
fn rest(live: &Arc<LiveLedger>, arrived: u64) {
    let consumed = || {
        let ledger = live.snapshot();
        ledger.delivered + ledger.filtered
    };
    let (mut last, mut since) = (consumed(), Instant::now());
    while last < arrived && since.elapsed() < QUIET {
        thread::sleep(LOOK);
        let now = consumed();
        if now > last {
            (last, since) = (now, Instant::now());
        }
    }
}

/// The file with the CPU time of the calling thread, also for other threads (proc(5), `/proc/thread-self`).
fn file_of_cpu_time() -> PathBuf {
    let this = fs::read_link("/proc/thread-self").unwrap_or_else(|_| "thread-self".into());
    Path::new("/proc").join(this).join("schedstat")
}

/// CPU time of a thread since it began: the first field of its schedstat
/// (`Documentation/scheduler/sched-stats.rst`).
pub(super) fn cpu_time(file: &Path) -> anyhow::Result<Duration> {
    let nanos = |text: String| text.split_whitespace().next().and_then(|it| it.parse().ok());
    let read = fs::read_to_string(file).map(nanos);
    let nanos = read.and_then(|nanos| nanos.ok_or_else(|| io::ErrorKind::InvalidData.into()));
    let nanos = nanos.map(Duration::from_nanos);
    nanos.with_context(|| format!("cannot read {}", file.display()))
}
