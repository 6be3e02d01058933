//! The trials of a series: frames at a rate for some time, and how many of them the probe captured.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use wirestamp_capture::{Ledger, Stop};
use wirestamp_clock::{ClockService, Counter};

use super::setting::{Level, Setting};
use super::sweeps::Sweep;
use super::tasks::Tasks;
use crate::experiment::{Cell, Design, Factor, Study};
use crate::tester::{self, Bed, CAPTURE_CORE, MemoryLimit, Meter, Spinner, capture_during};
use wirestamp_report::format::{approximate, real};
use wirestamp_traffic::live::LiveReport;

/// Duration of a trial without sending: half of the wait for more packets.
const AROUND: Duration = Duration::from_millis(150);

/// Min ratio of the sent rate to the requested rate for a valid trial.
const MIN_RATE_RATIO: f64 = 0.95;

/// Raw result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Trial {
    /// Requested rate in frames a second; none for full speed.
    pub(super) asked: Option<u64>,
    /// Frames that were sent, and how long that took.
    pub(super) sent: u64,
    pub(super) elapsed_ns: i64,
    /// Dropped by the receiving interface, before the probe.
    pub(super) interface_dropped: u64,
    /// Dropped by the kernel because the probe's memory was full.
    pub(super) kernel_dropped: u64,
    /// Captured, and measured by every task.
    pub(super) captured: u64,
    /// CPU time of the capture with its tasks.
    pub(super) cpu_ns: u64,
}

impl Trial {
    fn of(setting: Setting, sent: &LiveReport, ledger: &Ledger, cpu: Duration) -> Self {
        Self {
            asked: setting.rate,
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            interface_dropped: sent.dropped,
            kernel_dropped: ledger.lost(),
            captured: ledger.delivered,
            cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Frames a second that were sent.
    pub(super) fn rate(&self) -> f64 {
        real(self.sent) * 1e9 / approximate(self.elapsed_ns.max(1))
    }

    /// The share of frames that the probe did not capture, in percent.
    pub(super) fn loss_percent(&self) -> f64 {
        100.0 * real(self.sent.saturating_sub(self.captured)) / real(self.sent.max(1))
    }

    /// The probe's CPU time per captured packet, in nanoseconds; NaN without packets.
    pub(super) fn cpu_ns_a_packet(&self) -> f64 {
        if self.captured == 0 { f64::NAN } else { real(self.cpu_ns) / real(self.captured) }
    }

    /// The probe's CPU time divided by the duration of sending, in percent of a core. Above 100 if the probe is
    /// still busy after the last frame.
    pub(super) fn load_percent(&self) -> f64 {
        100.0 * real(self.cpu_ns) / approximate(self.elapsed_ns.max(1))
    }

    /// Whether the sender itself was too slow for the requested rate, so that the trial is inconclusive
    /// for that rate.
    pub(super) fn is_short_of_the_rate(&self) -> bool {
        self.asked.is_some_and(|asked| self.rate() < MIN_RATE_RATIO * real(asked))
    }

    /// Frames that neither the interface nor the probe accounts for.
    pub(super) fn unaccounted(&self) -> i64 {
        let accounted = self.interface_dropped + self.kernel_dropped + self.captured;
        i64::try_from(i128::from(self.sent) - i128::from(accounted)).unwrap_or(i64::MAX)
    }
}

/// A probe, and a sender to test it.
pub(super) struct Probe {
    bed: Bed,
    clock: ClockService,
}

impl Probe {
    pub(super) fn new() -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        Ok(Self { bed: Bed::build()?, clock })
    }

    /// Makes a trial.
    pub(super) fn trial(&self, setting: Setting, stop: &Stop) -> anyhow::Result<Trial> {
        let trials = self.trials(setting, &[setting.lasts], stop)?;
        trials.last().copied().context("nothing was sent")
    }

    /// Makes a trial that lasts for the longest of these durations, which are in ascending order. Its counts at the end of
    /// each of them are returned.
    pub(super) fn trials(
        &self,
        setting: Setting,
        durations: &[Duration],
        stop: &Stop,
    ) -> anyhow::Result<Vec<Trial>> {
        let _limit = setting.machine_mib.map(MemoryLimit::of_mib).transpose()?;
        let _others: Vec<_> = (1..setting.parts).map(|_| Spinner::on(CAPTURE_CORE)).collect();
        let tasks = |_: &_| Ok(Tasks::new(setting.tasks, &self.clock));
        let on = (&self.bed, &self.clock);
        let mut trials = Vec::new();
        let send = |meter: &Meter| {
            let (mut sent, mut done) = (LiveReport::default(), Duration::ZERO);
            for lasts in durations {
                let load = Setting { lasts: *lasts - done, ..setting }.load()?;
                let more = load.send(&self.bed, &self.clock, stop.flag())?;
                sent.sent += more.sent;
                sent.dropped += more.dropped;
                sent.elapsed += more.elapsed;
                let (ledger, cpu) = meter.read(sent.sent.saturating_sub(sent.dropped))?;
                trials.push(Trial::of(setting, &sent, &ledger, cpu));
                done = *lasts;
            }
            Ok(sent)
        };
        let made = capture_during(on, setting.capture(), tasks, send)?;
        let tester::Trial { sent, ledger, cpu, sink } = made;
        ensure!(
            sink.measured() == ledger.delivered,
            "a task did not know {} of {} packets",
            ledger.delivered.saturating_sub(sink.measured()),
            ledger.delivered
        );
        // At the end of the capture its ledger has the last counts of the kernel.
        if let Some(last) = trials.last_mut() {
            *last = Trial::of(setting, &sent, &ledger, cpu);
        }
        Ok(trials)
    }
}

/// A series that is measured with a probe.
pub(super) struct Series<'a> {
    pub(super) probe: &'a Probe,
    pub(super) sweep: &'a Sweep,
}

impl Sweep {
    /// The design of a series.
    pub(super) fn design(&self) -> Design {
        let factor = |name: &str, levels: &[Level]| {
            let levels: Vec<_> = levels.iter().map(|level| level.name()).collect();
            Factor::new(name, levels.iter().map(String::as_str))
        };
        let [lines, points] = self.factors;
        Design {
            name: format!("limit-rate-{}", self.name),
            factors: vec![factor(lines, &self.lines), factor(points, &self.points)],
            repetitions: self.repetitions,
            constants: vec![("seconds".to_owned(), self.base.lasts.as_secs_f64().to_string())],
        }
    }

    /// Settings of a cell's trial.
    pub(super) fn of(&self, cell: &Cell) -> Option<Setting> {
        let level = |factor: usize, levels: &[Level]| levels.get(*cell.0.get(factor)?).copied();
        Some(self.setting(level(0, &self.lines)?, level(1, &self.points)?))
    }
}

impl Study for Series<'_> {
    type Sample = Trial;

    fn design(&self) -> Design {
        self.sweep.design()
    }

    fn lasts(&self, cell: &Cell) -> Duration {
        self.sweep.of(cell).map_or(AROUND, |setting| setting.lasts + AROUND)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Trial>> {
        let setting = self.sweep.of(cell).context("a cell of another design")?;
        Ok(vec![self.probe.trial(setting, stop)?])
    }
}
