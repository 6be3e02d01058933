//! `--events`: kernel events of the receive path, recorded beside a capture.

mod row;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use clap::Args;
use wirestamp_capture::Stop;
use wirestamp_capture::events::{
    EventLedger, InterfaceFilter, Reading, Recorder, RecorderConfig, RecorderFacts, TraceClock,
};
use wirestamp_clock::ClockService;
use wirestamp_sys::process::with_signals_blocked;

use self::row::EventFile;
pub(super) use self::summary::EventSummary;
use crate::files::check_outputs;
use crate::target::Target;

#[derive(Args)]
#[command(next_help_heading = "Kernel events")]
pub(super) struct Events {
    /// Record kernel events of the receive path in this file, beside the packets: Parquet if its
    /// name ends in .parquet, otherwise CSV. Events of the interface are recorded, and all
    /// interrupts and softIRQs
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The events, as SYSTEM:EVENT, or SYSTEM:* for all of a system
    /// [default: interrupts, softIRQs, NAPI, XDP, and received packets from the driver to the stack]
    #[arg(long, value_name = "EVENT", value_delimiter = ',', requires = "events")]
    events_list: Option<Vec<String>>,
    /// The clock that stamps the events: x86-tsc (the CPU's counter), mono, boot or local; boot and
    /// local are not converted to UTC [default: x86-tsc, but mono if another counter is in use]
    #[arg(long, value_name = "CLOCK", requires = "events")]
    events_clock: Option<TraceClock>,
    /// Size of the ring for the events of each CPU, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 2_048, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(16..=1_048_576), requires = "events")]
    events_buffer_size: u32,
}

/// Events that are being recorded, on a thread of their own.
pub(super) struct RecordedEvents {
    path: PathBuf,
    facts: RecorderFacts,
    stop: Stop,
    thread: JoinHandle<(EventLedger, anyhow::Result<()>)>,
}

impl Events {
    /// Whether events are recorded.
    pub(super) fn are_requested(&self) -> bool {
        self.events.is_some()
    }

    /// Rejects a file that cannot be written, or is one of `others`, pairs of option and file.
    pub(super) fn check(&self, others: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
        let Some(path) = &self.events else { return Ok(()) };
        let others = others.iter().filter(|(_, path)| *path != Some(Path::new("-")));
        let outputs: Vec<_> = [("--events", Some(&**path))].iter().chain(others).copied().collect();
        check_outputs(&outputs, &[])
    }

    /// Starts recording, if it was requested.
    pub(super) fn start(
        &self,
        target: &Target,
        clock: &Arc<ClockService>,
    ) -> anyhow::Result<Option<RecordedEvents>> {
        let Some(path) = self.events.clone() else { return Ok(None) };
        let config = RecorderConfig {
            clock: self.events_clock.unwrap_or_else(|| TraceClock::of_counter(clock.counter())),
            events: self.events_list.clone(),
            interface: Some(target.query(|| InterfaceFilter::find(&target.interface))?),
            ring_bytes: self.events_buffer_size as usize * 1024,
            reading: Reading::Mapped,
        };
        let mut file = EventFile::create(&path, config.clock, Arc::clone(clock))?;
        let stop = Stop::new().context("cannot create the stop event")?;
        let recorder = Recorder::start(&config)?;
        let mut facts = recorder.facts().clone();
        facts.notes.extend(file.note());
        let record = {
            let stop = stop.clone();
            move || {
                let (ledger, outcome) = recorder.run(&stop, &mut file);
                (ledger, outcome.map_err(Into::into).and(file.finish().map_err(Into::into)))
            }
        };
        let builder = thread::Builder::new().name("ws-events".to_owned());
        let thread = with_signals_blocked(|| builder.spawn(record));
        let thread = thread.context("cannot start the thread that records events")?;
        Ok(Some(RecordedEvents { path, facts, stop, thread }))
    }
}

impl RecordedEvents {
    /// Properties of the recorder.
    pub(super) fn facts(&self) -> &RecorderFacts {
        &self.facts
    }

    /// Stops recording, and completes the file.
    pub(super) fn finish(self) -> (EventSummary, anyhow::Result<()>) {
        self.stop.request();
        let (ledger, outcome) = self.thread.join().expect("the thread does not panic");
        (EventSummary::new(self.path, self.facts, ledger), outcome)
    }
}
