//! Costs of one way to read a time source.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use wirestamp_clock::{CounterSource, Survey};

use super::contender::Way;
use super::paper::Timer;
use super::tally::Cost;

/// Cost of one way to read a source, or the reason why the source is not available.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// The source by its name in the clock library; `os` for all clocks of the kernel.
    pub(super) source: Cow<'static, str>,
    /// Function that a program calls.
    pub(super) call: Cow<'static, str>,
    /// The paper's timer that this is compared with, if it is.
    pub(super) timer: Option<Timer>,
    /// Why the source may or may not be used.
    pub(super) reason: String,
    /// Emulator of the source, if known; the cost is then not that of hardware.
    pub(super) emulated_by: Option<String>,
    /// The smallest usual step of the clock in nanoseconds; none if the source cannot be used.
    pub(super) step_ns: Option<f64>,
    /// Threshold of a peak: a read that costs more, in nanoseconds.
    pub(super) peak_above_ns: Option<f64>,
    /// How many reads are peaks.
    pub(super) peaks: u64,
    /// The cost without the peaks.
    pub(super) filtered: Option<Cost>,
    /// The cost with them.
    pub(super) unfiltered: Option<Cost>,
    /// The mean plus three standard deviations of all reads, in nanoseconds.
    #[serde(default)]
    pub(super) three_sigma_ns: Option<f64>,
    /// The cost of the reads up to that.
    #[serde(default)]
    pub(super) within_three_sigma: Option<Cost>,
    /// The cost in the course of the experiment.
    #[serde(skip)]
    pub(super) course: Vec<Moment>,
}

/// A run of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    /// Begin: the sum of the costs of all earlier reads, in seconds.
    pub(super) at: f64,
    /// The mean cost in nanoseconds, without the peaks of this run.
    pub(super) usual: f64,
    /// The longest read in nanoseconds.
    pub(super) longest: f64,
}

impl Measured {
    /// All sources of a survey, without costs yet: each of these ways to read one, and each source that has none.
    pub(super) fn all(survey: &Survey, ways: &[Way]) -> Vec<Self> {
        let of_source = |source: &CounterSource| {
            let ways = ways.iter().filter(|way| way.source == source.name);
            let ways: Vec<_> = ways.map(|way| Self::of(way, source)).collect();
            if ways.is_empty() { vec![Self::unavailable(source)] } else { ways }
        };
        survey.sources.iter().flat_map(of_source).collect()
    }

    fn of(way: &Way, source: &CounterSource) -> Self {
        Self {
            call: way.call.into(),
            timer: way.timer,
            step_ns: Some(way.step_ns),
            ..Self::unavailable(source)
        }
    }

    /// A source that cannot be used.
    fn unavailable(source: &CounterSource) -> Self {
        Self {
            source: source.name.into(),
            call: "".into(),
            timer: Timer::of_source(source.name),
            reason: source.reason.clone(),
            emulated_by: source.emulated_by.clone(),
            step_ns: None,
            peak_above_ns: None,
            peaks: 0,
            filtered: None,
            unfiltered: None,
            three_sigma_ns: None,
            within_three_sigma: None,
            course: Vec::new(),
        }
    }

    /// Whether the source can be read on this machine. If it can, but has no costs, the experiment was stopped
    /// before.
    pub(super) fn is_available(&self) -> bool {
        self.step_ns.is_some()
    }
}
