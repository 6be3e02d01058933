//! Cost of reading each time source: the experiment of Fedotova and Siemens, "HighPerTimer",
//! section 5 (Tables 1 and 2, Figures 2 and 3), reproduced on this machine.
//!
//! As in the paper, a source is read repeatedly. The cost of a read is the difference of two consecutive
//! reads, in the source's own ticks. Mean and standard deviation are given without the peaks, and also with
//! them. Departures from the paper: `deviations.md`.

mod again;
mod claims;
mod contender;
mod elsewhere;
mod figures;
mod findings;
mod measured;
mod paper;
mod reads;
mod tally;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, Part};
use crate::experiment::{self, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use findings::TimersResult;
use paper::Timer;
use reads::{CostCount, Reads};

pub(crate) use again::again;
pub use elsewhere::Elsewhere;
pub(crate) use paper::PAPER;
pub(crate) use tally::Cost;

/// Turns of each way to read a source, for the same number of reads as in the paper.
const FULL: u32 = 10_000;
/// Some seconds, and half a minute where there is an HPET.
const QUICK: u32 = 1_000;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When the folder cannot be used, or holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    run_beside(None, None, options, stop, progress)
}

/// The same, optionally with a number of turns and with the results of another machine.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_beside(
    rounds: Option<u32>,
    beside: Option<&Elsewhere>,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let mut reads = Reads::new(rounds.unwrap_or(if *quick { QUICK } else { FULL }))?;
    let runs = experiment::run(&mut reads, folder.as_deref(), *seed, stop, progress)?;
    let (ways, selected) = (reads.sources(), reads.survey.selected.into());
    account(&runs, &TimersResult::of(&runs, ways, reads.rounds_of_run(), selected, beside))
}

/// Account of the runs and their results.
fn account(runs: &Runs<CostCount>, findings: &TimersResult) -> anyhow::Result<Account> {
    let making = Making::of(runs);
    let claims = claims::claims(runs, findings, &making.circumstances.clocksource);
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);
    texts.account(making, claims, findings, &|id, heading| {
        let timers = figures::shown(findings).filter_map(|way| way.timer).map(Timer::name);
        let names = match id {
            "course" => timers.collect(),
            _ => vec!["here", "Table 1: VIA Nano", "Table 2: AMD Athlon"],
        };
        Some(Part::figure(heading, id, names, |size, name| match id {
            "course" => figures::course(findings, size, name),
            _ => Some(figures::beside_the_paper(findings, size, name)),
        }))
    })
}

#[cfg(test)]
mod tests;
