//! A capture of ours that runs while a load is sent.

use std::sync::Arc;
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

/// Captures on the receiving interface while `send` sends, and until all packets that arrived are consumed. `sink`
/// creates the sink of the packets from the facts of the capture.
///
/// # Errors
/// When the capture cannot be opened or fails, or nothing can be sent.
pub(crate) fn capture_during<S: Sink + Send>(
    (bed, clock): (&Bed, &ClockService),
    config: Config,
    sink: impl FnOnce(&Facts) -> anyhow::Result<S>,
    send: impl FnOnce() -> anyhow::Result<LiveReport>,
) -> anyhow::Result<Trial<S>> {
    let capture = bed.receiver().run(|| Capture::open(config, clock))??;
    let (live, end) = (capture.live_ledger(), Stop::new()?);
    let mut sink = sink(capture.facts())?;
    let (sent, captured) = thread::scope(|scope| -> anyhow::Result<_> {
        let capture =
            thread::Builder::new().name("ws-consume".into()).spawn_scoped(scope, || {
                let (ledger, outcome) = capture.run(clock, &end, &mut sink);
                outcome.map_err(anyhow::Error::from).and_then(|()| Ok((ledger, cpu_time()?)))
            })?;
        let sent = send();
        if let Ok(sent) = &sent {
            rest(&live, sent.sent.saturating_sub(sent.dropped));
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

/// CPU time of the calling thread since it began: the first field of its schedstat
/// (`Documentation/scheduler/sched-stats.rst`).
fn cpu_time() -> anyhow::Result<Duration> {
    let file = "/proc/thread-self/schedstat";
    let nanos = |text: String| text.split_whitespace().next().and_then(|it| it.parse().ok());
    let read = fs::read_to_string(file).map(nanos);
    let nanos = read.and_then(|nanos| nanos.ok_or_else(|| io::ErrorKind::InvalidData.into()));
    nanos.map(Duration::from_nanos).with_context(|| format!("cannot read {file}"))
}
