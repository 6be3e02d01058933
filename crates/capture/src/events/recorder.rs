//! The recorder: sets up a trace instance, reads its rings, counts what is lost.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::Error;
use super::clock::TraceClock;
use super::counts::{CpuLedger, EventLedger, RingStatistics};
use super::page::PageLayout;
use super::ring::{Reading, Ring};
use super::selection::{Formats, InterfaceFilter, enable};
use super::sink::EventSink;
use super::tracefs::Instance;
use crate::Stop;

/// Fill level of a ring, in percent, at which the kernel wakes the reader.
const WAKE_UP_PERCENT: &str = "25";
/// Max age of events before they are read.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Attempts to read the last events, of which one may still be incomplete when recording ends.
const LAST_READS: usize = 1000;

/// Settings of a recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// The clock that stamps the events.
    pub clock: TraceClock,
    /// Events as `SYSTEM:EVENT`, or `SYSTEM:*` for all of a system; none for [`super::DEFAULT_EVENTS`].
    pub events: Option<Vec<String>>,
    /// The only interface whose events are recorded, where an event contains its interface.
    pub interface: Option<InterfaceFilter>,
    /// Bytes of the ring of each CPU.
    pub ring_bytes: usize,
    /// How the rings are read. If they cannot be mapped, they are read by copying, and a note reports it.
    pub reading: Reading,
}

impl RecorderConfig {
    /// Records the default events of all interfaces.
    #[must_use]
    pub const fn new(clock: TraceClock) -> Self {
        let (events, interface, reading) = (None, None, Reading::Mapped);
        Self { clock, events, interface, ring_bytes: 2 << 20, reading }
    }
}

/// Properties of a running recorder. Serialises with these names.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecorderFacts {
    /// The clock that stamps the events.
    pub clock: &'static str,
    /// How the rings are read, `mmap` or `read`.
    pub reading: &'static str,
    /// The recorded events.
    pub events: Vec<String>,
    /// Fallbacks and limits, as sentences.
    pub notes: Vec<String>,
}

/// Records events of the kernel, on all CPUs and in all namespaces, until [`Self::finish`] or drop.
///
/// The rings belong to a trace instance of this process. It is removed at the end; after SIGKILL or a crash, a guard
/// process removes it.
#[derive(Debug)]
pub struct Recorder {
    facts: RecorderFacts,
    formats: Formats,
    // Before the instance: it cannot be removed while its rings are open.
    rings: Vec<Ring>,
    instance: Instance,
}

impl Recorder {
    /// Starts recording. It includes the events from the return of this call on.
    ///
    /// # Errors
    /// The process may not use tracefs, or an event or the clock does not exist.
    pub fn start(config: &RecorderConfig) -> Result<Self, Error> {
        let instance = Instance::create()?;
        set_clock(&instance, config.clock)?;
        instance.write("buffer_size_kb", &(config.ring_bytes / 1024).max(1).to_string())?;
        instance.write("buffer_percent", WAKE_UP_PERCENT)?;
        let (formats, missing) =
            enable(&instance, config.events.as_deref(), config.interface.as_ref())?;
        let layout = PageLayout::parse(&instance.read("events/header_page")?);
        let layout = layout.ok_or_else(|| Error::Layout("events/header_page".into()))?;
        let cpus = online_cpus()?;
        let rings = cpus.into_iter().map(|cpu| Ring::open(&instance, cpu, layout));
        let mut rings: Vec<_> = rings.collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        let mut reading = config.reading;
        if reading == Reading::Mapped
            && let Err(cause) = rings.iter_mut().try_for_each(Ring::map)
        {
            notes
                .push(format!("the trace rings are copied page by page: cannot map them: {cause}"));
            let again = rings.iter().map(|ring| Ring::open(&instance, ring.cpu(), layout));
            rings = again.collect::<Result<_, _>>()?;
            reading = Reading::Copied;
        }
        if !missing.is_empty() {
            notes.push(format!("this kernel has no events {}", missing.join(", ")));
        }
        if let Some(interface) = &config.interface {
            notes.push(format!(
                "tracepoints report all network namespaces: events of other interfaces that have \
                 the name {} or the index {} are included, and events of all interrupts",
                interface.name, interface.index
            ));
        }
        let (clock, events) = (config.clock.name(), formats.names());
        let facts = RecorderFacts { clock, reading: reading.into(), events, notes };
        instance.write("tracing_on", "1")?;
        Ok(Self { facts, formats, rings, instance })
    }

    /// Properties of this recorder.
    #[must_use]
    pub const fn facts(&self) -> &RecorderFacts {
        &self.facts
    }

    /// Waits until a ring has a quarter of its events, the stop is requested, or `timeout` has passed.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait(&self, stop: &Stop, timeout: Duration) -> Result<(), Error> {
        let files = self.rings.iter().map(|ring| PollFd::new(ring.file(), PollFlags::IN));
        let mut events: Vec<_> = files.chain([PollFd::new(stop, PollFlags::IN)]).collect();
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut events, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(cause) => Err(Error::of("wait for events")(cause.into())),
        }
    }

    /// Passes the events that have occurred to `sink`. Returns whether all rings were read to their end.
    ///
    /// # Errors
    /// A ring cannot be read, or the sink failed.
    pub fn drain(&mut self, sink: &mut dyn EventSink) -> Result<bool, Error> {
        let mut complete = true;
        for ring in &mut self.rings {
            complete &= ring.drain(&self.formats, sink)?;
        }
        sink.end_of_batch()?;
        Ok(complete)
    }

    /// Passes events to `sink` until the stop is requested, then ends as [`Self::finish`]. The counts are complete in
    /// either case; an error reports what ended the recording early.
    pub fn run(
        mut self,
        stop: &Stop,
        sink: &mut dyn EventSink,
    ) -> (EventLedger, Result<(), Error>) {
        let mut outcome = Ok(());
        while outcome.is_ok() && !stop.is_requested() {
            outcome = self.wait(stop, READ_INTERVAL).and_then(|()| self.drain(sink).map(drop));
        }
        match outcome {
            Ok(()) => self.finish(sink),
            Err(_) => (self.end().0, outcome),
        }
    }

    /// Stops recording, passes the last events to `sink`, and removes the trace instance.
    pub fn finish(mut self, sink: &mut dyn EventSink) -> (EventLedger, Result<(), Error>) {
        let outcome = self.instance.write("tracing_on", "0").and_then(|()| self.drain_to_end(sink));
        let (ledger, ended) = self.end();
        (ledger, outcome.and(ended))
    }

    fn drain_to_end(&mut self, sink: &mut dyn EventSink) -> Result<(), Error> {
        for _ in 0..LAST_READS {
            while !self.drain(sink)? {}
            let unread: Result<Vec<_>, _> =
                self.rings.iter().map(|it| self.counts(it.cpu())).collect();
            if unread?.iter().all(|counts| counts.unread() == 0) {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn counts(&self, cpu: u32) -> Result<RingStatistics, Error> {
        let file = format!("per_cpu/cpu{cpu}/stats");
        let counts = RingStatistics::parse(&self.instance.read(&file)?);
        counts.ok_or(Error::Layout(file))
    }

    /// Counts all events and removes the instance.
    fn end(self) -> (EventLedger, Result<(), Error>) {
        let stopped = self.instance.write("tracing_on", "0");
        let counted = |cpu| {
            let ring = self.rings.iter().find(|ring| ring.cpu() == cpu);
            Ok(CpuLedger::of(cpu, &self.counts(cpu)?, ring.map_or(0, Ring::delivered)))
        };
        // Includes CPUs that came online after the start; their events were not read.
        let cpus = all_cpus(&self.instance);
        let cpus: Result<Vec<_>, Error> = cpus.and_then(|it| it.into_iter().map(counted).collect());
        drop(self.rings);
        let removed = self.instance.remove();
        match cpus {
            Ok(cpus) => (EventLedger::of(cpus), stopped.and(removed)),
            Err(error) => (EventLedger::default(), Err(error)),
        }
    }
}

/// Selects the clock, if the kernel has it.
fn set_clock(instance: &Instance, clock: TraceClock) -> Result<(), Error> {
    let known = instance.read("trace_clock")?;
    // The selected clock is in brackets.
    let known: Vec<_> = known.split_whitespace().map(|it| it.trim_matches(['[', ']'])).collect();
    if !known.contains(&clock.name()) {
        let (clock, known) = (clock.name().to_owned(), known.join(", "));
        return Err(Error::NoSuchClock { clock, known });
    }
    instance.write("trace_clock", clock.name())
}

/// The CPUs for which the instance can have a ring, sorted.
fn all_cpus(instance: &Instance) -> Result<Vec<u32>, Error> {
    let failed = || Error::of("list the trace rings");
    let mut cpus = Vec::new();
    for entry in std::fs::read_dir(instance.path("per_cpu")).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        cpus.push(number.ok_or_else(|| Error::Layout("per_cpu".into()))?);
    }
    cpus.sort_unstable();
    Ok(cpus)
}

/// The CPUs that are online.
fn online_cpus() -> Result<Vec<u32>, Error> {
    let path = "/sys/devices/system/cpu/online";
    let text = std::fs::read_to_string(path).map_err(Error::of("list the CPUs"))?;
    parse_cpus(&text).ok_or_else(|| Error::Layout(path.into()))
}

/// Parses `0-3,6`.
fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_list_is_parsed() {
        assert_eq!(parse_cpus("0-2,5\n").unwrap(), [0, 1, 2, 5]);
        assert_eq!(parse_cpus("0\n").unwrap(), [0]);
        assert_eq!(parse_cpus("0-x"), None);
    }
}
