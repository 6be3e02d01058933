//! Results computed from the raw data.

use serde::{Deserialize, Serialize};

use super::cable::{self, Cable, Row, SOURCES};
use super::correlation::Correlation;
use super::stamps::{Clock, Stamps, errors, passages};
use crate::experiment::{Design, Effect, Factor, Runs, deviation, effects};
use crate::overhead::packets::{OverheadScale, Packets, Stamped};
use crate::overhead::paper::{Method, Traffic};
use crate::overhead::series;
use crate::probe::{Gap, gaps};
use crate::timers::Cost;
use wirestamp_report::format::length;

/// Numeric results of the study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InterarrivalResult {
    /// The smallest usual step of the counter in nanoseconds.
    pub(super) step_ns: f64,
    /// ktime and the counter, read for the same packets in user space, and their sender.
    pub(super) user_space: Vec<Stamps>,
    /// Captures at the end of a cable, of the same packets, and their sender.
    pub(super) captures: Vec<Stamps>,
    /// How much later the raw stamp of a packet is taken in the softIRQ than that of ktime.
    pub(super) raw_after_ktime: Vec<RawAfterKtime>,
    /// Correlation of a stamp's overhead with the time between arrivals.
    pub(super) correlation: Vec<Correlation>,
    /// Effects of source and pattern on the natural logarithm of the deviation of the errors of a run.
    pub(super) effects_on_log_deviation: Vec<Effect>,
    /// Sources that this machine refused, with the reason.
    pub(super) refused: Vec<(String, String)>,
}

/// Differences of the two stamps of the softIRQ, of the packets of a pattern.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RawAfterKtime {
    pub(super) pattern: Traffic,
    /// In nanoseconds; none if no packet has both.
    pub(super) after_ns: Option<Cost>,
}

/// Name of the sender's own record among the sources.
const SENDER: &str = "the sender";

impl InterarrivalResult {
    /// Computes the results of the runs.
    pub(super) fn of(
        captured: &Runs<Row>,
        stamped: &Runs<Stamped>,
        size: OverheadScale,
        step_ns: f64,
        refused: Vec<(String, String)>,
    ) -> Self {
        Self {
            step_ns,
            user_space: user_space(stamped, size),
            captures: captures(captured, size),
            raw_after_ktime: raw_after_ktime(captured),
            correlation: Correlation::of_all(stamped, step_ns),
            effects_on_log_deviation: effects_of_sources(captured),
            refused,
        }
    }

    /// Sources that stamped packets of a pattern in user space.
    pub(super) fn in_user_space(&self, pattern: Traffic) -> Vec<&Stamps> {
        self.user_space.iter().filter(|stamps| stamps.pattern == pattern).collect()
    }

    /// The captures of a pattern, without the sender.
    pub(super) fn captures_of(&self, pattern: Traffic) -> Vec<&Stamps> {
        let are_of = |stamps: &&Stamps| stamps.pattern == pattern && stamps.error_ns.is_some();
        self.captures.iter().filter(are_of).collect()
    }
}

/// The packets that ktime stamped, by ktime and by the counter at the checkpoint before.
fn user_space(runs: &Runs<Stamped>, size: OverheadScale) -> Vec<Stamps> {
    let cells = runs.design.cells();
    let cells = cells.iter().enumerate().map(|(index, cell)| (index, Packets::of(cell)));
    let of_ktime = cells.filter(|(_, (method, _))| *method == Method::Ktime);
    let of_pattern = |(index, (_, pattern)): (usize, (Method, Traffic))| {
        let runs: Vec<&[Stamped]> = runs.of_cell(index).collect();
        let packets: Vec<_> = runs.iter().map(|run| run.len()).collect();
        let missed = Stamps::missing(sent(&runs, size, pattern), &packets);
        let by = |clock| -> Vec<Vec<Gap>> {
            runs.iter().map(|run| gaps(passages(run, clock))).collect()
        };
        [
            Stamps::of("ktime", pattern, missed, &by(Clock::Stamp)),
            Stamps::of("raw", pattern, missed, &by(Clock::Counter)),
            Stamps::of(SENDER, pattern, 0, &by(Clock::Sender)),
        ]
    };
    of_ktime.flat_map(of_pattern).collect()
}

fn sent<T>(runs: &[T], size: OverheadScale, pattern: Traffic) -> u64 {
    length(runs) * u64::from(size.packets_of(pattern))
}

/// The sources that stamped anything with each pattern, and the sender.
fn captures(runs: &Runs<Row>, size: OverheadScale) -> Vec<Stamps> {
    let of_cell = |(index, cell)| {
        let pattern = Cable::of(cell);
        let runs: Vec<&[Row]> = runs.of_cell(index).collect();
        let sent = sent(&runs, size, pattern);
        let of_source = |source: usize| {
            let packets: Vec<_> =
                runs.iter().map(|run| cable::passages(run, source).count()).collect();
            let gaps: Vec<_> = runs.iter().map(|run| gaps(cable::passages(run, source))).collect();
            let missed = Stamps::missing(sent, &packets);
            let name = SOURCES[source].to_string();
            (missed < sent).then(|| Stamps::of(&name, pattern, missed, &gaps))
        };
        let by_the_sender: Vec<_> = runs.iter().map(|run| gaps(cable::departures(run))).collect();
        let sources: Vec<_> = (0..SOURCES.len()).filter_map(of_source).collect();
        sources.into_iter().chain([Stamps::of(SENDER, pattern, 0, &by_the_sender)])
    };
    let cells = runs.design.cells();
    cells.iter().enumerate().flat_map(of_cell).collect()
}

fn raw_after_ktime(runs: &Runs<Row>) -> Vec<RawAfterKtime> {
    let of_cell = |(index, cell)| {
        let rows = runs.of_cell(index).flatten();
        let after: Vec<f64> = rows.filter_map(Row::raw_after_ktime_ns).collect();
        RawAfterKtime { pattern: Cable::of(cell), after_ns: series::cost(&after) }
    };
    runs.design.cells().iter().enumerate().map(of_cell).collect()
}

/// Effects of sources and patterns on the deviation of the errors, for the available sources.
fn effects_of_sources(runs: &Runs<Row>) -> Vec<Effect> {
    let cells = runs.design.cells().len();
    let of_source = |source: usize| {
        let deviation = |run: &[Row]| {
            let deviation = deviation(&errors(&gaps(cable::passages(run, source))))?;
            Some(deviation.ln()).filter(|log| log.is_finite())
        };
        let responses = runs.responses(deviation);
        responses.iter().flatten().all(|log| log.is_finite()).then_some(responses)
    };
    let found = (0..SOURCES.len()).filter_map(|source| Some((source, of_source(source)?)));
    let (found, responses): (Vec<_>, Vec<_>) = found.unzip();
    let names: Vec<_> = found.iter().map(|source| SOURCES[*source].to_string()).collect();
    let names = Factor::new("source", names.iter().map(String::as_str));
    let factors = [vec![names], runs.design.factors.clone()].concat();
    let responses = responses.concat();
    if responses.len() != found.len() * cells {
        return Vec::new();
    }
    effects(&Design { factors, ..runs.design.clone() }, &responses)
}
