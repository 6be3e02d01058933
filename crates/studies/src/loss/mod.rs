//! Packet loss by timestamping and capture method: the experiment of Orosz and
//! Skopkó, section V.B (Figure 6), reproduced on this machine.
//!
//! Rounds of 20,000 packets of one size and with one gap wait in a bounded queue for the softIRQ of another core, which
//! stamps or captures each (`in_softirq`). In a second experiment the reader is overloaded, not the softIRQ
//! (`rounds`). Departures from the paper: `deviations.md`.

mod capture;
mod claims;
mod findings;
mod in_softirq;
mod paper;
mod round;
mod rounds;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign};
use crate::experiment::{self, Claim, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use findings::LossStudyResult;
use in_softirq::{RoundsInSoftirq, SoftirqResult, SoftirqScale};
use round::Round;
use rounds::{LossStudyScale, Rounds};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested. Without the bed of the softIRQ, the account has the reason, and the
/// overload of the reader only.
///
/// # Errors
/// When privileges or a second core are missing, when a capture fails, or when the folder cannot be used
/// or holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let size = if options.quick { LossStudyScale::QUICK } else { LossStudyScale::FULL };
    let softirq_size = if options.quick { SoftirqScale::QUICK } else { SoftirqScale::FULL };
    let folder = options.folder.as_deref();
    let in_softirq = match RoundsInSoftirq::new(softirq_size) {
        Ok(mut rounds) => {
            let runs = experiment::run(&mut rounds, folder, options.seed, stop, progress)?;
            Ok(InSoftirq {
                result: SoftirqResult::of(&runs, softirq_size, rounds.cores),
                claims: in_softirq::claims(&runs, softirq_size),
                interrupted: runs.interrupted,
                design: MeasuredDesign::of(&runs),
            })
        }
        Err(reason) => Err(reason),
    };
    let mut rounds = Rounds::new(size)?;
    let runs = experiment::run(&mut rounds, folder, options.seed, stop, progress)?;
    account(&runs, size, in_softirq)
}

/// Results and claims of the softIRQ.
struct InSoftirq {
    result: SoftirqResult,
    claims: Vec<Claim>,
    /// Whether it was stopped before all runs were done.
    interrupted: bool,
    /// When the runs were made.
    design: MeasuredDesign,
}

/// Account of the runs and their results. An error of `in_softirq` is the reason why that was not measured.
fn account(
    runs: &Runs<Round>,
    size: LossStudyScale,
    in_softirq: anyhow::Result<InSoftirq>,
) -> anyhow::Result<Account> {
    let mut making = Making::of(runs);
    let (in_softirq, claims) = match in_softirq {
        Ok(InSoftirq { result, claims, interrupted, design }) => {
            making = making.with(Some(design));
            making.interrupted |= interrupted;
            (Ok(result), claims)
        }
        Err(reason) => (Err(reason), Vec::new()),
    };
    let findings = LossStudyResult::of(runs, in_softirq, size);
    let claims = [claims, claims::claims(runs, size)].concat();
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);
    texts.account(making, claims, &findings, &|_, _| None)
}

#[cfg(test)]
mod tests;
