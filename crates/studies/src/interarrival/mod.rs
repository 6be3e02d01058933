//! Times between arrivals by their stamps: the experiment of Orosz and Skopkó, section V.A
//! (Figures 3 and 5), reproduced on this machine.
//!
//! The packets of the paper's two patterns are stamped in user space by ktime and by the counter, as in the
//! study of the overhead. At the end of a cable, captures with several methods and clocks stamp the same
//! packets. The paper compares the times between stamps with a constant interval. Here each is also compared
//! with the time between the two send times, by the sender's own record. Departures from the paper:
//! `deviations.md`.

mod cable;
mod claims;
mod correlation;
mod figures;
mod findings;
mod stamps;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign, Part};
use crate::experiment::{self, Claim, Progress, Runs};
use crate::options::Options;
use crate::overhead::packets::{OverheadScale, Packets, Stamped};
use crate::overhead::paper::Traffic;
use crate::presentation::Texts;
use cable::{Cable, Row};
use correlation::Correlation;
use figures::{Shown, density};
use findings::{InterarrivalResult, RawAfterKtime};
use stamps::Stamps;

/// Source of the figures.
pub(crate) const PAPER: &str = crate::overhead::PAPER;

/// As many packets as fit in 30 minutes; the paper does not state its number.
const FULL: OverheadScale = OverheadScale { repetitions: 10, packets: [1_500, 20_000] };
/// As many packets as fit in 30 seconds.
const QUICK: OverheadScale = OverheadScale { repetitions: 4, packets: [50, 500] };

/// Name of the results of stamps in user space.
const IN_USER_SPACE: &str = "interarrival-user-space";

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When the privileges for a cable are missing, a flow cannot be sent, or the folder cannot be used or
/// holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let (size, folder) = (if *quick { QUICK } else { FULL }, folder.as_deref());
    let mut cable = Cable::new(size)?;
    let mut packets = Packets::new(IN_USER_SPACE, size)?;
    let captured = experiment::run(&mut cable, folder, *seed, stop, progress)?;
    let stamped = experiment::run(&mut packets, folder, *seed, stop, progress)?;
    let step_ns = stamped.counter_step_ns().unwrap_or(packets.step_ns);
    let findings = InterarrivalResult::of(&captured, &stamped, size, step_ns, cable.refusals());
    account(&captured, &stamped, &findings)
}

/// The texts of the report.
pub(crate) const TEXTS: Texts =
    Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER);

/// The values of a document from which its claims are computed again.
#[derive(Deserialize)]
struct Documented {
    correlation: Vec<Correlation>,
    captures: Vec<Stamps>,
    raw_after_ktime: Vec<RawAfterKtime>,
}

/// The claims, from the values of a document.
///
/// # Errors
/// When the document lacks a value.
pub(crate) fn claims_again(_: &[Claim], document: &Value) -> anyhow::Result<Vec<Claim>> {
    let Documented { correlation, captures, raw_after_ktime } =
        Documented::deserialize(document).context("cannot read the values of interarrival")?;
    Ok(claims::claims(&correlation, &captures, &raw_after_ktime))
}

/// Account of the runs and their results.
fn account(
    captured: &Runs<Row>,
    stamped: &Runs<Stamped>,
    findings: &InterarrivalResult,
) -> anyhow::Result<Account> {
    let mut making = Making::of(captured).with([MeasuredDesign::of(stamped)]);
    making.interrupted |= stamped.interrupted;
    making.repetitions = making.repetitions.min(stamped.complete());
    let InterarrivalResult { correlation, captures, raw_after_ktime, .. } = findings;
    let claims = claims::claims(correlation, captures, raw_after_ktime);
    TEXTS.account(making, claims, findings, &|id, heading| {
        let (figure, pattern) = id.rsplit_once('-')?;
        let pattern = Traffic::ALL.into_iter().find(|it| it.name() == pattern)?;
        let (stamps, shown) = match figure {
            "gaps-user-space" => (findings.in_user_space(pattern), Shown::Gaps),
            "gaps-captures" => (findings.captures_of(pattern), Shown::Gaps),
            _ => (findings.captures_of(pattern), Shown::Errors),
        };
        let names = stamps.iter().map(|stamps| stamps.source.as_str());
        Some(Part::figure(heading, id, names, |size, id| {
            density(findings, &stamps, shown, size, id)
        }))
    })
}

#[cfg(test)]
mod tests;
