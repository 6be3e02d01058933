//! The saturation point: the highest rate at which the probe captures all frames, found by bisection (the
//! throughput of RFC 2544, section 26.1, with the report's tolerance).

use std::time::Duration;

use serde::Serialize;
use wirestamp_capture::Stop;

use super::paper::TOLERATED_PERCENT;
use super::setting::{Level, Setting};
use super::sweeps::LimitRateScale;
use super::trials::{Probe, Trial};
use crate::experiment::{Cell, Design, Factor, Study};
use wirestamp_report::format::real;

/// A search ends when the highest rate that passed and the lowest rate that failed differ by at most this
/// share of the latter.
const RESOLUTION: f64 = 1.0 / 32.0;
/// Trials of a search: one at full speed, and one bisection for each bit of the resolution and of the part.
const TRIALS: u32 = 10;

/// Below this share of the sender's max rate, the resolution of a search becomes no finer.
const FINEST: f64 = 1.0 / 8.0;

/// Result of a search, in frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Saturation {
    /// The highest rate that passed. 0 if none did.
    Reached(f64),
    /// The sender's max rate passed: the saturation point is at least this rate.
    NotReached(f64),
}

impl Saturation {
    /// The rate that is known to pass.
    pub(super) const fn at_least(self) -> f64 {
        match self {
            Self::Reached(rate) | Self::NotReached(rate) => rate,
        }
    }
}

/// Searches, and returns every trial: the first at full speed, then between the highest rate that passed
/// and the lowest that failed, until they differ by at most `resolution`, a share of the latter.
///
/// # Errors
/// That of a trial.
pub(super) fn search<E>(
    resolution: f64,
    mut trial: impl FnMut(Option<u64>) -> Result<Trial, E>,
) -> Result<Vec<Trial>, E> {
    let mut trials = vec![trial(None)?];
    let most = trials[0].rate();
    let (mut passed, mut failed) = (0.0, most);
    let near = |failed: f64| resolution * failed.max(most * FINEST);
    while !passes(&trials[0]) && failed - passed > near(failed) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate"
        )]
        let asked = f64::midpoint(passed, failed).max(1.0) as u64;
        let made = trial(Some(asked))?;
        *if passes(&made) { &mut passed } else { &mut failed } = real(asked);
        trials.push(made);
    }
    Ok(trials)
}

/// Saturation point from the trials of a search; `None` without trials.
pub(super) fn saturation(trials: &[Trial]) -> Option<Saturation> {
    let (first, others) = trials.split_first()?;
    if passes(first) {
        return Some(Saturation::NotReached(first.rate()));
    }
    // The sent rate counts, not the requested one: the sender may have been slower.
    let passed = others.iter().filter(|trial| passes(trial)).map(Trial::rate);
    Some(Saturation::Reached(passed.fold(0.0, f64::max)))
}

/// CPU time per frame at the highest rate of a search that passed, in nanoseconds.
pub(super) fn cpu_ns_at_limit(trials: &[Trial]) -> Option<f64> {
    let passed = trials.iter().filter(|trial| passes(trial) && trial.captured > 0);
    passed.max_by(|a, b| a.rate().total_cmp(&b.rate())).map(Trial::cpu_ns_a_packet)
}

fn passes(trial: &Trial) -> bool {
    trial.loss_percent() <= TOLERATED_PERCENT
}

/// The searches: on the whole core and on parts of it, with one task and with four.
pub(super) struct Searches<'a> {
    pub(super) probe: &'a Probe,
    pub(super) size: LimitRateScale,
}

impl LimitRateScale {
    /// Searched settings.
    pub(super) fn searched(self) -> Design {
        let parts: Vec<_> = self.parts().iter().map(|&part| Level::Part(part).name()).collect();
        Design {
            name: "limit-rate-saturation".to_owned(),
            factors: vec![
                Factor::new("part of the core", parts.iter().map(String::as_str)),
                Factor::new("tasks", TASKS.map(|tasks| if tasks == 1 { "1" } else { "4" })),
            ],
            repetitions: if self.quick { 2 } else { self.repetitions() },
            constants: vec![(
                "seconds".to_owned(),
                self.lasts_searching().as_secs_f64().to_string(),
            )],
        }
    }

    /// How long a trial of a search lasts.
    fn lasts_searching(self) -> Duration {
        self.base().lasts / 2
    }

    /// Settings of a search, without the rate.
    pub(super) fn of_search(self, cell: &Cell) -> Setting {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        Setting {
            parts: self.parts().get(level(0)).copied().unwrap_or(1),
            tasks: TASKS[level(1) % 2],
            buffer_kib: 2 << 10,
            lasts: self.lasts_searching(),
            ..self.base()
        }
    }
}

/// Numbers of tasks.
const TASKS: [u8; 2] = [1, 4];

impl Study for Searches<'_> {
    type Sample = Trial;

    fn design(&self) -> Design {
        self.size.searched()
    }

    fn lasts(&self, _: &Cell) -> Duration {
        (self.size.lasts_searching() + Duration::from_millis(150)) * TRIALS
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Trial>> {
        let setting = self.size.of_search(cell);
        search(RESOLUTION, |rate| self.probe.trial(Setting { rate, ..setting }, stop))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A probe that captures up to `limit` frames a second, and a sender of up to a million.
    fn trial(limit: f64, asked: Option<u64>) -> Result<Trial, Infallible> {
        let sent = asked.unwrap_or(1_000_000);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below a million"
        )]
        let captured = sent.min(limit as u64);
        let trial = Trial {
            asked,
            sent,
            elapsed_ns: 1_000_000_000,
            interface_dropped: 0,
            kernel_dropped: sent - captured,
            captured,
            cpu_ns: 0,
        };
        Ok(trial)
    }

    #[test]
    fn a_search_ends_within_its_resolution_below_the_limit() {
        for limit in (0..999_000).step_by(1_737).map(f64::from) {
            let Ok(trials) = search(RESOLUTION, |asked| trial(limit, asked));
            let Some(Saturation::Reached(found)) = saturation(&trials) else {
                panic!("{trials:?}")
            };
            let near = RESOLUTION * (limit * 1.04).max(125_000.0);
            let (least, most) = (limit - near - 1.0, limit * 1.002 + 1.0);
            assert!((least..=most).contains(&found), "{found} of {limit}");
            assert!(trials.len() <= TRIALS as usize);
        }
    }

    #[test]
    fn what_the_sender_cannot_reach_is_not_called_a_limit() {
        let Ok(trials) = search(RESOLUTION, |asked| trial(2e6, asked));
        assert_eq!(trials.len(), 1);
        assert_eq!(saturation(&trials), Some(Saturation::NotReached(1e6)));
        assert_eq!(saturation(&[]), None);
    }
}
