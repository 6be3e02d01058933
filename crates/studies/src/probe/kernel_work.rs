//! What else the kernel did on the sender's core during a flow.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::events::{Error, Recorder, RecorderConfig, TraceClock, TraceEvent};
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{Domain, Time, Utc};
use wirestamp_traffic::Pattern;

use super::departures::SendTimes;
use super::{Observed, Probe, Source};

/// Interrupts of the CPU and of devices, softIRQs, and changes of the running task.
const EVENTS: [&str; 4] =
    ["irq_vectors:*", "irq:irq_handler_entry", "irq:softirq_entry", "sched:sched_switch"];

/// Bytes of a ring: some seconds of these events.
const RING_BYTES: usize = 32 << 20;

/// The longest time that misses of caches and of the address translation are taken to explain: some tens of accesses to
/// memory, in nanoseconds.
pub(crate) const CACHES_NS: f64 = 2_000.0;

/// Number of the softIRQ that receives packets (`NET_RX_SOFTIRQ` of linux/interrupt.h).
const NET_RX: u64 = 3;

/// Work of the kernel that is not the reception of a packet, ascending by its usual duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KernelWork {
    /// A softIRQ other than that which receives packets.
    Softirq,
    /// An interrupt of the CPU or of a device.
    Interrupt,
    /// Another task.
    Task,
}

impl KernelWork {
    /// That of an event; none if the event is of the reception or the end of work.
    fn of(event: &TraceEvent<'_>) -> Option<Self> {
        match event.name() {
            "sched:sched_switch" => Some(Self::Task),
            "irq:softirq_entry" => (event.number("vec") != Some(NET_RX)).then_some(Self::Softirq),
            // irq_vectors also has events of the assignment of vectors.
            name => name.ends_with("_entry").then_some(Self::Interrupt),
        }
    }
}

/// The work of the kernel on one core.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreWork {
    /// When each work began, ascending.
    begins: Vec<(Time<Utc>, KernelWork)>,
    /// Events that were lost on all cores: with any, the work is not known completely.
    pub(crate) lost: u64,
}

impl CoreWork {
    fn new(mut begins: Vec<(Time<Utc>, KernelWork)>, lost: u64) -> Self {
        begins.sort_by_key(|(time, _)| *time);
        Self { begins, lost }
    }

    /// Of the work that began from `from` to `to`, that which usually takes longest.
    pub(crate) fn longest_between(&self, from: Time<Utc>, to: Time<Utc>) -> Option<KernelWork> {
        let first = self.begins.partition_point(|(time, _)| *time < from);
        let begun = self.begins.iter().skip(first).take_while(|(time, _)| *time <= to);
        begun.map(|(_, work)| *work).max()
    }
}

impl Probe {
    /// Sends and captures a flow as [`Self::observe`] does, with send times of calls and driver, and records the work of
    /// the kernel on the sender's core.
    ///
    /// # Errors
    /// Those of [`Self::observe`], or the kernel does not record such events.
    pub(crate) fn observe_with_kernel_work(
        &mut self,
        sources: &[Source],
        pattern: Pattern,
        packets: u64,
        stop: &Stop,
    ) -> anyhow::Result<(Observed, CoreWork)> {
        let cores = Cores::choose(sources.len());
        let core = cores.first().and_then(|cores| cores.convert);
        let core = core.context("the sender has no core of its own")?;
        let clock = TraceClock::of_counter(self.clock.counter());
        let config = RecorderConfig {
            events: Some(EVENTS.map(str::to_owned).to_vec()),
            ring_bytes: RING_BYTES,
            ..RecorderConfig::new(clock)
        };
        let recorder = Recorder::start(&config)?;
        let observed = self.observe(sources, pattern, packets, SendTimes::CallAndDriver, stop)?;
        let mut begins = Vec::new();
        let mut keep = |event: &TraceEvent<'_>| -> Result<(), Error> {
            if usize::try_from(event.cpu) == Ok(core)
                && let Some(work) = KernelWork::of(event)
            {
                begins.push((event.raw, work));
            }
            Ok(())
        };
        let (ledger, outcome) = recorder.finish(&mut keep);
        outcome?;
        let domain = clock.domain(self.clock.counter()).unwrap_or(Domain::Counter);
        let timeline = self.clock.timeline(domain);
        let begins = begins.into_iter().map(|(raw, work)| (timeline.convert(raw).utc, work));
        Ok((observed, CoreWork::new(begins.collect(), ledger.lost)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_work_of_a_time_is_found() {
        let at = |nanos| Time::<Utc>::from_nanos(nanos);
        let begins =
            [(30, KernelWork::Task), (10, KernelWork::Interrupt), (20, KernelWork::Softirq)];
        let work = CoreWork::new(begins.map(|(nanos, work)| (at(nanos), work)).to_vec(), 0);
        let longest = |from, to| work.longest_between(at(from), at(to));
        assert_eq!(longest(10, 20), Some(KernelWork::Interrupt));
        assert_eq!(longest(11, 29), Some(KernelWork::Softirq));
        assert_eq!(longest(20, 90), Some(KernelWork::Task));
        assert_eq!(longest(31, 90), None);
    }
}
