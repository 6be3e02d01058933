//! What else the kernel did on the sender's core during a flow, and for how long.

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use wirestamp_capture::events::{
    Error, EventLedger, Recorder, RecorderConfig, TraceClock, TraceEvent,
};
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{Domain, Time, Utc};
use wirestamp_traffic::Pattern;

use super::departures::SendTimes;
use super::{Observed, Probe, Source};
use wirestamp_report::format::approximate;

/// Interrupts of the CPU and of devices, softIRQs, and changes of the running task. Not recorded: interrupts that cannot be
/// masked, and page faults.
const EVENTS: [&str; 6] = [
    "irq_vectors:*",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "sched:sched_switch",
];

/// Bytes of the ring of each CPU: some seconds of these events.
const RING_BYTES: usize = 32 << 20;

/// The longest time that misses of caches and of the address translation are taken to explain: some tens of accesses to
/// memory, in nanoseconds.
pub(crate) const CACHES_NS: f64 = 2_000.0;

/// Number of the softIRQ that receives packets (`NET_RX_SOFTIRQ` of linux/interrupt.h).
const NET_RX: u64 = 3;

/// Work of the kernel that is not the reception of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KernelWork {
    /// A softIRQ other than that which receives packets.
    Softirq,
    /// An interrupt of the CPU or of a device.
    Interrupt,
    /// Another task.
    Task,
}

/// Begin or end of something on the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// An interrupt or softIRQ begins, inside of what ran before. None: the reception of packets.
    Begin(Option<KernelWork>),
    /// The innermost interrupt or softIRQ ends.
    End,
    /// A task follows another one.
    Switch { previous: u64, next: u64 },
}

impl Change {
    /// That of an event; none for events of the setup of interrupts.
    fn of(event: &TraceEvent<'_>) -> Option<Self> {
        match event.name() {
            "sched:sched_switch" => {
                let (previous, next) = (event.number("prev_pid")?, event.number("next_pid")?);
                Some(Self::Switch { previous, next })
            }
            "irq:softirq_entry" => {
                let is_other = event.number("vec") != Some(NET_RX);
                Some(Self::Begin(is_other.then_some(KernelWork::Softirq)))
            }
            name if name.ends_with("_entry") => Some(Self::Begin(Some(KernelWork::Interrupt))),
            name if name.ends_with("_exit") => Some(Self::End),
            _ => None,
        }
    }
}

/// The work of the kernel on one core.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreWork {
    /// Ascending by time.
    changes: Vec<(Time<Utc>, Change)>,
    /// Events of the core that were lost: with any, the work is not known completely.
    pub(crate) lost: u64,
}

impl CoreWork {
    fn new(mut changes: Vec<(Time<Utc>, Change)>, lost: u64) -> Self {
        changes.sort_by_key(|(time, _)| *time);
        Self { changes, lost }
    }

    /// How long the core did each work from `from`, when it ran the sender, to `to`.
    pub(crate) fn between(&self, from: Time<Utc>, to: Time<Utc>) -> WorkTimes {
        let first = self.changes.partition_point(|(time, _)| *time < from);
        let changes = self.changes.iter().skip(first).take_while(|(time, _)| *time <= to);
        let (mut times, mut since) = (WorkTimes::default(), from);
        // What runs now, the innermost last; nothing while the sender runs.
        let (mut running, mut sender) = (Vec::new(), None);
        for (time, change) in changes {
            times.add(running.last(), approximate((*time - since).as_nanos()));
            since = *time;
            match *change {
                Change::Begin(work) => running.push(work),
                Change::End => {
                    running.pop();
                }
                Change::Switch { previous, next } => {
                    // A task is changed by no interrupt and no softIRQ, so these have ended.
                    running.clear();
                    if next != *sender.get_or_insert(previous) {
                        running.push(Some(KernelWork::Task));
                    }
                }
            }
        }
        times.add(running.last(), approximate((to - since).as_nanos()));
        times
    }
}

/// How long a core did each work, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkTimes {
    pub(crate) softirq: f64,
    pub(crate) interrupt: f64,
    pub(crate) task: f64,
}

impl WorkTimes {
    fn add(&mut self, work: Option<&Option<KernelWork>>, nanos: f64) {
        match work.copied().flatten() {
            Some(KernelWork::Softirq) => self.softirq += nanos,
            Some(KernelWork::Interrupt) => self.interrupt += nanos,
            Some(KernelWork::Task) => self.task += nanos,
            None => {}
        }
    }

    /// All of it.
    pub(crate) fn total(self) -> f64 {
        self.softirq + self.interrupt + self.task
    }

    /// The work that took longest; none if there was none.
    pub(crate) fn longest(self) -> Option<KernelWork> {
        let times = [
            (self.task, KernelWork::Task),
            (self.interrupt, KernelWork::Interrupt),
            (self.softirq, KernelWork::Softirq),
        ];
        let longest = times.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        longest.filter(|(nanos, _)| *nanos > 0.0).map(|(_, work)| work)
    }
}

impl Probe {
    /// Whether the kernel records its work.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check_kernel_work(&self) -> anyhow::Result<()> {
        sending_core(1)?;
        let (_, outcome) = self.recorder()?.finish(&mut |_: &TraceEvent<'_>| Ok(()));
        Ok(outcome?)
    }

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
        let core = sending_core(sources.len())?;
        let recorder = self.recorder()?;
        let observed = self.observe(sources, pattern, packets, SendTimes::CallAndDriver, stop)?;
        let mut changes = Vec::new();
        let mut keep = |event: &TraceEvent<'_>| -> Result<(), Error> {
            if event.cpu == core
                && let Some(change) = Change::of(event)
            {
                changes.push((event.raw, change));
            }
            Ok(())
        };
        let (ledger, outcome) = recorder.finish(&mut keep);
        outcome?;
        ensure!(ledger.balances(), "the ledger of the kernel's events does not balance");
        let domain = self.trace_clock().domain(self.clock.counter()).unwrap_or(Domain::Counter);
        let timeline = self.clock.timeline(domain);
        let changes = changes.into_iter().map(|(raw, change)| (timeline.convert(raw).utc, change));
        Ok((observed, CoreWork::new(changes.collect(), lost_of(core, &ledger))))
    }

    fn trace_clock(&self) -> TraceClock {
        TraceClock::of_counter(self.clock.counter())
    }

    fn recorder(&self) -> anyhow::Result<Recorder> {
        let config = RecorderConfig {
            events: Some(EVENTS.map(str::to_owned).to_vec()),
            ring_bytes: RING_BYTES,
            ..RecorderConfig::new(self.trace_clock())
        };
        Ok(Recorder::start(&config)?)
    }
}

/// The core on which a flow to this number of captures is sent.
fn sending_core(captures: usize) -> anyhow::Result<u32> {
    let core = Cores::choose(captures).first().and_then(|cores| cores.convert);
    Ok(u32::try_from(core.context("the sender has no core of its own")?)?)
}

/// Events of a core that were lost.
fn lost_of(core: u32, ledger: &EventLedger) -> u64 {
    let of_core = ledger.cpus.iter().filter(|it| it.cpu == core);
    of_core.map(|it| it.recorded.saturating_sub(it.delivered)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: u64 = 7;

    /// Work from 100 to 200 ns, with these changes.
    fn between(changes: &[(i64, Change)]) -> WorkTimes {
        let at = |nanos| Time::<Utc>::from_nanos(nanos);
        let changes = changes.iter().map(|(nanos, change)| (at(*nanos), *change)).collect();
        CoreWork::new(changes, 0).between(at(100), at(200))
    }

    fn times(softirq: f64, interrupt: f64, task: f64) -> WorkTimes {
        WorkTimes { softirq, interrupt, task }
    }

    #[test]
    fn nested_work_counts_once() {
        let softirq = Change::Begin(Some(KernelWork::Softirq));
        let interrupt = Change::Begin(Some(KernelWork::Interrupt));
        let found =
            between(&[(110, softirq), (120, interrupt), (125, Change::End), (140, Change::End)]);
        assert_eq!(found, times(25.0, 5.0, 0.0));
        assert_eq!((found.total(), found.longest()), (30.0, Some(KernelWork::Softirq)));
    }

    #[test]
    fn work_outside_of_the_time_does_not_count() {
        let interrupt = Change::Begin(Some(KernelWork::Interrupt));
        let found =
            between(&[(90, interrupt), (95, Change::End), (190, interrupt), (250, Change::End)]);
        assert_eq!(found, times(0.0, 10.0, 0.0));
        assert_eq!(between(&[]).longest(), None);
    }

    #[test]
    fn reception_of_the_packet_is_no_other_work() {
        let interrupt = Change::Begin(Some(KernelWork::Interrupt));
        let found = between(&[(110, Change::Begin(None)), (150, interrupt), (152, Change::End)]);
        assert_eq!(found, times(0.0, 2.0, 0.0));
    }

    #[test]
    fn other_tasks_run_until_the_sender_does() {
        let switch = |previous, next| Change::Switch { previous, next };
        let interrupt = Change::Begin(Some(KernelWork::Interrupt));
        let found = between(&[
            (110, switch(SENDER, 8)),
            (120, interrupt),
            (130, Change::End),
            (140, switch(8, 9)),
            (150, switch(9, SENDER)),
        ]);
        assert_eq!(found, times(0.0, 10.0, 30.0));
        assert_eq!(between(&[(150, switch(SENDER, 0))]), times(0.0, 0.0, 50.0));
    }
}
