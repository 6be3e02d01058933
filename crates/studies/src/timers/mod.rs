//! What it costs to read each time source: the experiment of Fedotova and Siemens, "HighPerTimer",
//! section 5 (Tables 1 and 2, Figures 2 and 3), made again on this machine.
//!
//! As in the paper, a source is read over and over, and the cost of a read is what passes between
//! two reads in a row, in the source's own ticks. Mean and standard deviation are given with the
//! peaks filtered out, and also with them. [`DEVIATIONS`] tells where the experiment departs from
//! the paper's, and why.

mod account;
mod claims;
mod contender;
mod elsewhere;
mod figures;
mod findings;
mod paper;
mod reads;
mod tables;
mod tally;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::studies::Options;
use findings::Findings;
use reads::Reads;

pub use elsewhere::Elsewhere;
pub(crate) use paper::PAPER;
pub(crate) use tally::Cost;

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 6] = [
    (
        "Number of reads",
        "The paper takes 100 million in one loop for each source, without saying how they were \
         kept. Here the sources take turns of 10 000 reads, so that whatever disturbs the machine \
         meets all of them alike: 10 000 turns, or 1000 in a quick run.",
    ),
    (
        "Peaks",
        "The paper filters them and does not say how. Here a read is a peak if it costs more than \
         the upper quartile by over three times the distance between the quartiles (Tukey's outer \
         fence), or by over three steps of the clock where that is more. The figures with the \
         peaks are given as well.",
    ),
    (
        "Which OS clock",
        "The paper says clock_gettime, not of which clock. The OS Timer here is \
         CLOCK_MONOTONIC_RAW; CLOCK_MONOTONIC and CLOCK_REALTIME are measured beside it through \
         the standard library.",
    ),
    (
        "Its path",
        "The paper takes clock_gettime for a system call. On Linux the vDSO answers it without \
         one, if the kernel keeps time by a counter that programs can read (vdso(7)).",
    ),
    (
        "Untrusted counters",
        "The paper measures a TSC that it calls unstable (Table 2). The library refuses to read \
         such a counter, so its row is empty, with the reason.",
    ),
    (
        "Figures",
        "The paper draws what was measured, peaks and all. Here each run of some turns is drawn by \
         its mean without peaks and by its longest read: a line of millions of points hides both.",
    ),
];

/// Turns of each way to read a source: with the reads of a turn, as many reads as the paper has.
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

/// The same, with a number of turns where one is given, beside what another machine measured.
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
    let ways = reads.ways();
    let findings = Findings::of(&runs, &ways, reads.rounds_of_run(), &reads.survey, beside);
    account::account(&runs, &ways, &findings)
}

#[cfg(test)]
mod tests;
