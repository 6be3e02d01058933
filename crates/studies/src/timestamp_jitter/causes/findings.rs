//! Late packets by cause, over all repetitions.

use serde::Serialize;
use strum::VariantArray;

use super::{Cause, LatePackets};
use crate::experiment::{Cell, Runs, mean};
use crate::timestamp_jitter::flows::flow;
use crate::timestamp_jitter::paper::Pause;

/// The late packets of all flows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct LateResult {
    /// Each source with each flow.
    pub(crate) flows: Vec<LateFindings>,
    /// Why nothing was recorded; none if it was.
    pub(crate) reason: Option<String>,
}

/// The late packets of a source with a flow, by cause.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LateFindings {
    /// Method and stamp.
    pub(crate) source: String,
    /// Of a frame, with check sequence.
    pub(crate) frame_bytes: u16,
    /// Between the end of a packet and the beginning of the next.
    pub(crate) pause: Pause,
    /// Nominal time from packet to packet, in nanoseconds.
    pub(crate) period_ns: u32,
    /// Packets, of all repetitions.
    pub(crate) packets: u64,
    /// Median of the transits of a run, the mean of the repetitions, in nanoseconds.
    pub(crate) median_ns: Option<f64>,
    /// Sum of the squares of the differences of their transits from the median of a run, in square nanoseconds.
    pub(crate) squares: f64,
    /// Late packets with each cause.
    pub(crate) causes: Vec<LateOfCause>,
    /// Repetitions that are left out because the recorder lost events.
    pub(crate) left_out: u64,
}

/// Late packets with one cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LateOfCause {
    /// The cause.
    pub(crate) cause: Cause,
    /// Number of packets.
    pub(crate) late: u64,
    /// Sum of the squares of how late they were, in square nanoseconds.
    pub(crate) squares: f64,
    /// The same as a share of the squares of all packets. None without packets.
    pub(crate) share: Option<f64>,
}

impl LateResult {
    /// Computes the results of the runs.
    pub(crate) fn of(runs: &Runs<LatePackets>) -> Self {
        let interrupted = || "the experiment was interrupted".to_owned();
        let reason = (runs.runs.is_empty() && runs.interrupted).then(interrupted);
        Self { flows: flows(runs), reason }
    }

    /// Without runs, because the kernel's work cannot be recorded.
    pub(crate) fn unavailable(error: &anyhow::Error) -> Self {
        Self { flows: Vec::new(), reason: Some(format!("{error:#}")) }
    }

    /// Packets of all flows of a source.
    pub(crate) fn packets(&self, source: &str) -> u64 {
        self.flows.iter().filter(|flow| flow.source == source).map(|flow| flow.packets).sum()
    }

    /// The late packets of all flows of a source, by cause.
    pub(crate) fn causes(&self, source: &str) -> Vec<LateOfCause> {
        let flows = || self.flows.iter().filter(|flow| flow.source == source);
        let all: f64 = flows().map(|flow| flow.squares).sum();
        let of_cause = |cause: &Cause| {
            let late = || flows().flat_map(|flow| &flow.causes).filter(|it| it.cause == *cause);
            let squares = late().map(|it| it.squares).sum();
            LateOfCause {
                cause: *cause,
                late: late().map(|it| it.late).sum(),
                squares,
                share: share(squares, all),
            }
        };
        Cause::VARIANTS.iter().map(of_cause).collect()
    }
}

fn share(squares: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| squares / all)
}

fn flows(runs: &Runs<LatePackets>) -> Vec<LateFindings> {
    let cells = runs.design.cells();
    let found = cells.iter().enumerate().filter_map(|(index, cell)| of_cell(runs, index, cell));
    let mut found: Vec<_> = found.collect();
    found.sort_by(|a, b| a.source.cmp(&b.source));
    found
}

/// None if the source stamped nothing in this cell.
fn of_cell(runs: &Runs<LatePackets>, index: usize, cell: &Cell) -> Option<LateFindings> {
    let (frame_bytes, pause) = flow(&runs.design, cell)?;
    let rows: Vec<_> = runs.of_cell(index).flatten().collect();
    let source = rows.first()?.source.clone();
    let is_of = |cause: Cause| move |row: &&&LatePackets| row.cause == cause;
    let has_all = |row: &&&LatePackets| row.events_lost == 0;
    // Each run has the same packets and squares in all its rows.
    let of_runs = || rows.iter().filter(is_of(Cause::UnrecordedLong));
    let squares: f64 = of_runs().filter(has_all).map(|row| row.squares).sum();
    let of_cause = |cause: &Cause| {
        let late = || rows.iter().filter(is_of(*cause)).filter(has_all);
        let of_late = late().map(|row| row.late_squares).sum();
        LateOfCause {
            cause: *cause,
            late: late().map(|row| row.late).sum(),
            squares: of_late,
            share: share(of_late, squares),
        }
    };
    Some(LateFindings {
        source,
        frame_bytes,
        pause,
        period_ns: pause.period_ns(frame_bytes),
        packets: of_runs().filter(has_all).map(|row| row.packets).sum(),
        median_ns: mean(&of_runs().filter(has_all).map(|row| row.median_ns).collect::<Vec<_>>()),
        squares,
        causes: Cause::VARIANTS.iter().map(of_cause).collect(),
        left_out: u64::try_from(of_runs().filter(|row| row.events_lost > 0).count()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::LateScale;
    use super::*;
    use crate::experiment::RunId;
    use crate::timestamp_jitter::source::SOURCES;

    /// Runs in which one packet is late for a long time; the recorder loses `events_lost` in the last ones.
    fn runs(events_lost: u64) -> Runs<LatePackets> {
        let design = LateScale { repetitions: 2, ..LateScale::QUICK }.design();
        let cells = design.cells();
        let run = |turn: RunId| {
            let source = design.levels(&cells[turn.cell])[2].to_owned();
            let row = |cause: &Cause| LatePackets {
                source: source.clone(),
                cause: *cause,
                late: u64::from(*cause == Cause::UnrecordedLong),
                late_squares: if *cause == Cause::UnrecordedLong { 75.0 } else { 0.0 },
                packets: 100,
                median_ns: 900.0,
                squares: 100.0,
                events_lost: if turn.repetition == 1 { events_lost } else { 0 },
            };
            (turn, Cause::VARIANTS.iter().map(row).collect())
        };
        let runs = design.order(1).into_iter().map(run).collect();
        Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
    }

    #[test]
    fn causes_have_their_share_of_the_variance() {
        let found = LateResult::of(&runs(0));
        assert_eq!((found.flows.len(), found.flows[0].packets), (9, 200));
        assert_eq!(found.flows[0].median_ns, Some(900.0));
        let long = found.flows[0].causes[5];
        assert_eq!((long.cause, long.late), (Cause::UnrecordedLong, 2));
        assert_eq!((long.share, found.flows[0].causes[0].share), (Some(0.75), Some(0.0)));
        let source = SOURCES[1].to_string();
        let all = found.causes(&source);
        assert_eq!((all[5].late, all[5].share), (6, Some(0.75)));
        assert_eq!((found.packets(&source), found.packets("another")), (600, 0));
        assert_eq!(found.causes("another")[5].share, None);
    }

    #[test]
    fn runs_with_lost_events_are_left_out() {
        let found = LateResult::of(&runs(7));
        assert_eq!((found.flows[0].packets, found.flows[0].left_out), (100, 1));
        assert_eq!(found.flows[0].causes[5].late, 1);
    }

    #[test]
    fn missing_results_have_their_reason() {
        let found = LateResult::unavailable(&anyhow::anyhow!("no tracefs"));
        assert_eq!((found.flows.len(), found.reason.as_deref()), (0, Some("no tracefs")));
        let nothing = Runs { runs: Vec::new(), interrupted: true, ..runs(0) };
        let reason = LateResult::of(&nothing).reason;
        assert_eq!(reason.as_deref(), Some("the experiment was interrupted"));
    }
}
