//! The times between the stamps of one source, of a pattern.

use serde::{Deserialize, Serialize};

use crate::experiment::{Estimate, deviation};
use crate::overhead::packets::Stamped;
use crate::overhead::paper::Traffic;
use crate::overhead::series;
use crate::probe::{Gap, Passage};
use crate::timers::Cost;

/// Clock of stamps taken in user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The stamp itself.
    Stamp,
    /// The counter, right before the stamp.
    Counter,
    /// The sender's own record: the reference, without errors.
    Sender,
}

/// The packets of a run in user space.
pub(super) fn passages(run: &[Stamped], clock: Clock) -> impl Iterator<Item = Passage> {
    run.iter().map(move |stamped| Passage {
        packet: stamped.packet,
        sent_ns: (clock != Clock::Sender).then_some(stamped.sent_ns),
        stamped_ns: match clock {
            Clock::Stamp => stamped.stamp_ns,
            Clock::Counter => stamped.at_ns,
            Clock::Sender => stamped.sent_ns,
        },
    })
}

/// Results of one source with a pattern. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stamps {
    /// Source of the stamps, or the sender itself.
    pub(super) source: String,
    /// The traffic.
    pub(super) pattern: Traffic,
    /// Packets that were sent and not stamped: the socket or the ring was full.
    pub(super) missed: u64,
    /// The times between stamps.
    pub(super) gap_ns: Option<Cost>,
    /// Their standard deviation in a run.
    pub(super) gap_deviation_ns: Option<Estimate>,
    /// Differences from the times between sendings.
    pub(super) error_ns: Option<Cost>,
    /// The standard deviation of that in a run.
    pub(super) error_deviation_ns: Option<Estimate>,
    /// The times between stamps themselves.
    #[serde(skip)]
    pub(super) gaps: Vec<f64>,
    /// Their errors.
    #[serde(skip)]
    pub(super) errors: Vec<f64>,
}

impl Stamps {
    /// Those of a source with a pattern, run by run.
    pub(super) fn of(source: &str, pattern: Traffic, missed: u64, runs: &[Vec<Gap>]) -> Self {
        let estimate = |of: &dyn Fn(&[Gap]) -> Vec<f64>| {
            let deviations = runs.iter().filter_map(|run| deviation(&of(run)));
            Estimate::of(&deviations.collect::<Vec<_>>())
        };
        let (gaps, errors) = (between(&runs.concat()), errors(&runs.concat()));
        Self {
            source: source.to_owned(),
            pattern,
            missed,
            gap_ns: series::cost(&gaps),
            gap_deviation_ns: estimate(&between),
            error_ns: series::cost(&errors),
            error_deviation_ns: estimate(&self::errors),
            gaps,
            errors,
        }
    }

    /// Packets missing of `sent` in each run.
    pub(super) fn missing(sent: u64, runs: &[usize]) -> u64 {
        let stamped: usize = runs.iter().sum();
        sent.saturating_sub(u64::try_from(stamped).unwrap_or(u64::MAX))
    }
}

/// The times between the stamps of a run.
pub(super) fn between(run: &[Gap]) -> Vec<f64> {
    run.iter().map(|gap| gap.stamped_ns).collect()
}

/// Times between stamps minus times between send times.
pub(super) fn errors(run: &[Gap]) -> Vec<f64> {
    run.iter().filter_map(Gap::error_ns).collect()
}
