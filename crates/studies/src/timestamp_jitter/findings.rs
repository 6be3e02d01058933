//! Results computed from the raw data.

use serde::Serialize;

use super::causes::LateResult;
use super::flows::{SourceJitter, flow};
use super::paper::{self, Pause};
use super::source::names;
use crate::experiment::{Cell, Effect, Estimate, Runs, effects, mean};
use crate::tester::load_percent;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JitterResult {
    /// Each source with each flow.
    pub(super) cells: Vec<CellFindings>,
    /// Effects of frame size, pause and source on the natural logarithm of the jitter of a run against the calls.
    pub(super) effects_on_log_jitter: Vec<Effect>,
    /// Sources that this machine refused, with the reason.
    pub(super) refused: Vec<(String, String)>,
    /// Why the CPU load is not known; none if it is.
    pub(super) load_reason: Option<&'static str>,
    /// Captures whose CPU time was recorded, and all captures.
    pub(super) load_recorded: [usize; 2],
    /// Late packets and their causes, from flows of their own.
    pub(super) late: LateResult,
}

/// Why the CPU load of a run is not known.
const NO_CPU_TIME: &str = "the runs did not record the CPU time of the captures";

/// A source with a flow. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellFindings {
    /// Name of the source (`source`).
    pub(super) source: String,
    /// Of a frame, with check sequence.
    pub(super) frame_bytes: u16,
    /// Between the end of a packet and the beginning of the next.
    pub(super) pause: Pause,
    /// Nominal time from packet to packet.
    pub(super) period_ns: u32,
    /// Packets that were sent, of all runs.
    pub(super) sent: u64,
    /// Of those, packets that were stamped.
    pub(super) captured: u64,
    /// Packets that the capture lost, by its ledger.
    pub(super) lost: u64,
    /// Times between packets, by the stamps.
    pub(super) stamped: Times,
    /// The same times, by the sender.
    pub(super) by_the_sender: Times,
    /// Longest time by the stamps, less that by the sender.
    pub(super) max_error: Option<Estimate>,
    /// Least time by the stamps, less that by the sender.
    pub(super) min_error: Option<Estimate>,
    /// Mean time by the stamps, less that by the sender.
    pub(super) mean_error: Option<Estimate>,
    /// Their deviation by the stamps, less that by the sender.
    pub(super) deviation_error: Option<Estimate>,
    /// The standard deviation of the differences, time by time.
    pub(super) jitter: Option<Estimate>,
    /// The same against the driver's transmit stamps.
    pub(super) driver_jitter: Option<Estimate>,
    /// What the sender adds between the call and the driver.
    pub(super) call_jitter: Option<Estimate>,
    /// Transit to the stamp: the median, and what 99 % and 99.9 % of the packets do not exceed.
    pub(super) transit_p50: Option<Estimate>,
    pub(super) transit_p99: Option<Estimate>,
    pub(super) transit_p999: Option<Estimate>,
    /// Share of the packets that were late, and the jitter without them.
    pub(super) interrupted: Option<Estimate>,
    pub(super) uninterrupted_jitter: Option<Estimate>,
    /// Jitter of the same memory accesses on the sender's core, without packets: what the machine adds.
    pub(super) machine_jitter: Option<Estimate>,
    /// Interruptions of that core longer than a microsecond, and interrupts that the kernel served on it, in a second.
    pub(super) machine_interruptions: Option<Estimate>,
    pub(super) machine_interrupts: Option<Estimate>,
    /// The jitter that these interruptions cause in the median transit.
    pub(super) interruption_jitter: Option<Estimate>,
    /// The standard deviation of the times by the report's Pentium 4.
    pub(super) jitter_of_pentium_4: Option<f64>,
    /// CPU time of the capture divided by the time that it ran, in percent of a core. None with the reason in `load_reason`.
    pub(super) load_percent: Option<Estimate>,
}

/// Times between packets: the least and the longest of all runs, and the mean of the means and of the
/// deviations of runs. In nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Times {
    pub(super) min: Option<f64>,
    pub(super) mean: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) deviation: Option<f64>,
}

/// A figure of a run of one source.
pub(super) type Measure = fn(&SourceJitter) -> Option<f64>;

/// Max interval by the stamps, minus the sender's max interval.
pub(super) const MAX_ERROR: Measure = |row| Some(row.max? - row.sent_max?);
/// Mean interval by the stamps, minus the sender's mean interval.
pub(super) const MEAN_ERROR: Measure = |row| Some(row.mean? - row.sent_mean?);

impl JitterResult {
    /// Computes the results of the runs.
    pub(super) fn of(
        runs: &Runs<SourceJitter>,
        refused: Vec<(String, String)>,
        late: LateResult,
    ) -> Self {
        let cells = runs.design.cells();
        let of_source = |source: String| {
            let of_cell = |(index, cell): (usize, &Cell)| of_cell(runs, index, cell, &source);
            cells.iter().enumerate().filter_map(of_cell).collect::<Vec<_>>()
        };
        let cells: Vec<_> = names(false).into_iter().flat_map(of_source).collect();
        Self {
            load_reason: cells.iter().any(|it| it.load_percent.is_none()).then_some(NO_CPU_TIME),
            load_recorded: load_recorded(runs),
            cells,
            effects_on_log_jitter: effects_on_jitter(runs),
            refused,
            late,
        }
    }

    /// The flows of a source.
    pub(super) fn of_source(&self, source: &str) -> impl Iterator<Item = &CellFindings> {
        self.cells.iter().filter(move |cell| cell.source == source)
    }
}

/// Captures whose CPU time was recorded, and all captures.
fn load_recorded(runs: &Runs<SourceJitter>) -> [usize; 2] {
    let captures = || runs.runs.iter().flat_map(|(_, run)| run);
    [captures().filter(|row| row.cpu_ns.is_some()).count(), captures().count()]
}

/// The row of a source in a run.
pub(super) fn of_source<'a>(run: &'a [SourceJitter], source: &str) -> Option<&'a SourceJitter> {
    run.iter().find(|row| row.source == source)
}

/// None if the source stamped nothing in this cell.
fn of_cell(
    runs: &Runs<SourceJitter>,
    index: usize,
    cell: &Cell,
    source: &str,
) -> Option<CellFindings> {
    let (frame_bytes, pause) = flow(&runs.design, cell)?;
    let rows: Vec<&SourceJitter> =
        runs.of_cell(index).filter_map(|run| of_source(run, source)).collect();
    rows.first()?;
    let values = |of: Measure| rows.iter().filter_map(|row| of(row)).collect::<Vec<_>>();
    let estimate = |of: Measure| Estimate::of(&values(of));
    let least = |of: Measure| values(of).into_iter().reduce(f64::min);
    let most = |of: Measure| values(of).into_iter().reduce(f64::max);
    let sum = |of: fn(&SourceJitter) -> u64| rows.iter().map(|row| of(row)).sum();
    Some(CellFindings {
        source: source.to_owned(),
        frame_bytes,
        pause,
        period_ns: pause.period_ns(frame_bytes),
        sent: sum(|row| row.sent),
        captured: sum(|row| row.captured),
        lost: sum(|row| row.lost),
        stamped: Times {
            min: least(|row| row.min),
            mean: mean(&values(|row| row.mean)),
            max: most(|row| row.max),
            deviation: mean(&values(|row| row.deviation)),
        },
        by_the_sender: Times {
            min: least(|row| row.sent_min),
            mean: mean(&values(|row| row.sent_mean)),
            max: most(|row| row.sent_max),
            deviation: mean(&values(|row| row.sent_deviation)),
        },
        max_error: estimate(MAX_ERROR),
        min_error: estimate(|row| Some(row.min? - row.sent_min?)),
        mean_error: estimate(MEAN_ERROR),
        deviation_error: estimate(|row| Some(row.deviation? - row.sent_deviation?)),
        jitter: estimate(|row| row.jitter),
        driver_jitter: estimate(|row| row.driver_jitter),
        call_jitter: estimate(|row| row.call_jitter),
        transit_p50: estimate(|row| row.transit_p50),
        transit_p99: estimate(|row| row.transit_p99),
        transit_p999: estimate(|row| row.transit_p999),
        interrupted: estimate(|row| row.interrupted),
        uninterrupted_jitter: estimate(|row| row.uninterrupted_jitter),
        machine_jitter: estimate(|row| row.machine_jitter),
        machine_interruptions: estimate(|row| row.machine_interruptions),
        machine_interrupts: estimate(|row| row.machine_interrupts),
        interruption_jitter: estimate(|row| row.interruption_jitter),
        jitter_of_pentium_4: paper::deviation_of_pentium_4(frame_bytes, pause),
        load_percent: estimate(|row| load_percent(row.cpu_ns?, row.capture_ns?)),
    })
}

/// Effects of frames, pause and source on the jitter; none if a run has no jitter.
fn effects_on_jitter(runs: &Runs<SourceJitter>) -> Vec<Effect> {
    let responses = runs.responses(|run| run.first()?.jitter.map(f64::ln));
    let is_complete = responses.iter().flatten().all(|log| log.is_finite());
    if is_complete { effects(&runs.design, &responses) } else { Vec::new() }
}
