//! Cost of timestamping a packet: the experiment of Orosz and Skopkó, section V.A (Tables I and II,
//! Figures 2 and 4), reproduced on this machine.
//!
//! A checkpoint is taken before the stamp and another after it, for each packet of the paper's two
//! patterns. The overhead of the stamp is the time between them, minus the cost of a checkpoint. In the
//! softIRQ, a tracing program takes stamps and checkpoints; in user space, the thread that receives the packet.
//! Around the kernel's own stamp, two events of the kernel are the checkpoints. The kernel also reports the run time of
//! a program with a stamp and without. Departures from the paper: `deviations.md`.

mod causes;
mod claims;
mod figures;
mod findings;
mod in_softirq;
mod kernel_stamp;
mod measured;
pub(crate) mod packets;
pub(crate) mod paper;
pub(crate) mod series;
mod softirq;
mod targets;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign, Part};
use crate::experiment::{self, Claim, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use claims::Leads;
use findings::{InSoftirq, OverheadResult};
use in_softirq::PacketsInSoftirq;
use kernel_stamp::KernelStamp;
use measured::Measured;
use packets::{OverheadScale, Packets, Stamped};
use paper::Traffic;
use softirq::Programs;
use targets::targets;

pub(crate) use paper::PAPER;

/// Repetitions in the softIRQ: each takes a few hundredths of a second.
const SOFTIRQ_REPETITIONS: u32 = 31;

/// Repetitions around the kernel's own stamp, for each one of the other parts: they are short, and what a clock adds is a
/// twentieth of the interval that contains it.
const KERNEL_STAMP_FACTOR: u32 = 3;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When the loopback interface or the folder cannot be used, or the folder holds the results of a run
/// of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let (size, folder) =
        (if *quick { OverheadScale::QUICK } else { OverheadScale::FULL }, folder.as_deref());
    let mut packets = Packets::new("overhead", size)?;
    let mut programs = Programs { repetitions: SOFTIRQ_REPETITIONS };
    let softirq = experiment::run(&mut programs, folder, *seed, stop, progress);
    let in_softirq = PacketsInSoftirq::new(size);
    let in_softirq =
        in_softirq.and_then(|mut study| experiment::run(&mut study, folder, *seed, stop, progress));
    let repetitions = size.repetitions * if *quick { 1 } else { KERNEL_STAMP_FACTOR };
    let kernel_stamp = KernelStamp::new(OverheadScale { repetitions, ..size });
    let kernel_stamp = kernel_stamp
        .and_then(|mut study| experiment::run(&mut study, folder, *seed, stop, progress));
    let runs = experiment::run(&mut packets, folder, *seed, stop, progress)?;
    let others = [
        softirq.as_ref().ok().map(MeasuredDesign::of),
        in_softirq.as_ref().ok().map(MeasuredDesign::of),
        kernel_stamp.as_ref().ok().map(MeasuredDesign::of),
    ];
    let in_softirq = InSoftirq { programs: softirq, packets: in_softirq, kernel_stamp };
    let step_ns = runs.counter_step_ns().unwrap_or(packets.step_ns);
    let result = OverheadResult::of(&runs, in_softirq, size, step_ns);
    let account = account(&runs, &result)?;
    Ok(Account { making: account.making.with(others.into_iter().flatten()), ..account })
}

/// The texts of the report.
pub(crate) const TEXTS: Texts =
    Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);

/// The claims, from the values of a document and from the leads of its claims.
///
/// # Errors
/// When the document lacks a value.
pub(crate) fn claims_again(documented: &[Claim], document: &Value) -> anyhow::Result<Vec<Claim>> {
    let measured = Measured::deserialize(document).context("cannot read the values of overhead")?;
    let leads = claims::documented_leads(documented, measured.repetitions);
    Ok(of_paper_and_project(leads, &measured))
}

fn of_paper_and_project(leads: Leads, measured: &Measured) -> Vec<Claim> {
    let mut claims = claims::claims(leads, measured);
    claims.extend(targets(measured));
    claims
}

/// Account of the runs and their results. The claims are about the counter's own instruction: a program can execute it in
/// user space only, and the kernel executes it to stamp events.
fn account(runs: &Runs<Stamped>, findings: &OverheadResult) -> anyhow::Result<Account> {
    let making = Making::of(runs);
    let measured = Measured::of(findings, making.repetitions);
    let claims = of_paper_and_project(claims::leads(runs), &measured);
    TEXTS.account(making, claims, findings, &|id, heading| {
        let (figure, pattern) = id.split_once('-')?;
        let pattern = Traffic::ALL.into_iter().find(|it| it.name() == pattern)?;
        Some(Part::figure(heading, id, figures::names(), |size, id| match figure {
            "density" => figures::density(findings, pattern, size, id),
            _ => figures::autocorrelation(findings, pattern, size, id),
        }))
    })
}

#[cfg(test)]
mod tests;
