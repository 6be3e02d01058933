//! Packet loss and timestamp error of each capture technique: the experiment of
//! Grigorjew et al., sections III.B and IV (Table I, Figures 2, 4, 5 and 6), reproduced on this
//! machine.
//!
//! Two taps see each packet, before and after a device, and measure the delay between; here the device
//! is emulated, so that the true delay of every packet is known ([`crate::replicas`]). Departures from the paper:
//! `deviations.md`.

mod cells;
mod claims;
mod dpdk;
mod figures;
mod findings;
mod line_rate;
mod paper;
mod trains;

use wirestamp_capture::Stop;

use crate::account::{Account, Making, MeasuredDesign, Part};
use crate::experiment::{self, Progress, Runs};
use crate::options::Options;
use crate::presentation::Texts;
use crate::replicas::{Block, Technique};
use cells::{Cells, ReceptionScale};
use dpdk::{Dpdk, DpdkScale};
use findings::{OtherParts, ReceptionResult};
use line_rate::{LineRate, LineRateScale};
use trains::{TrainScale, Trains};

pub(crate) use paper::PAPER;

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// When privileges are missing, when a capture fails, or when the folder cannot be used or holds the results
/// of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let mut cells =
        Cells::new(if *quick { ReceptionScale::quick() } else { ReceptionScale::full() });
    let folder = folder.as_deref();
    // The link of a part is removed before the next begins.
    let line_rate = {
        let size = if *quick { LineRateScale::QUICK } else { LineRateScale::FULL };
        experiment::run(&mut LineRate::new(size), folder, *seed, stop, progress)
    };
    let dpdk = {
        let size = if *quick { DpdkScale::QUICK } else { DpdkScale::FULL };
        experiment::run(&mut Dpdk::new(size), folder, *seed, stop, progress)
    };
    let trains = {
        let size = if *quick { TrainScale::QUICK } else { TrainScale::FULL };
        experiment::run(&mut Trains::new(size), folder, *seed, stop, progress)
    };
    let mut of_figure_2 = Cells::new(ReceptionScale::of_figure_2(*quick));
    let of_figure_2 = experiment::run(&mut of_figure_2, folder, *seed, stop, progress);
    let runs = experiment::run(&mut cells, folder, *seed, stop, progress)?;
    let parts = OtherParts { line_rate, dpdk, trains, of_figure_2 };
    let findings = ReceptionResult::of(&runs, &parts, Technique::missing());
    account(&runs, &parts, &findings)
}

/// Account of the runs and their results.
fn account(
    runs: &Runs<Block>,
    parts: &OtherParts,
    findings: &ReceptionResult,
) -> anyhow::Result<Account> {
    let texts = Texts::new(include_str!("report.md"), include_str!("deviations.md"), PAPER)
        .with_published(include_str!("published.json"));
    let (line_rate, trains) = (parts.line_rate.as_ref().ok(), parts.trains.as_ref().ok());
    let of_figure_2 = parts.of_figure_2.as_ref().ok();
    let others = [
        of_figure_2.map(MeasuredDesign::of),
        line_rate.map(MeasuredDesign::of),
        parts.dpdk.as_ref().ok().map(MeasuredDesign::of),
        trains.map(MeasuredDesign::of),
    ];
    let mut making = Making::of(runs).with(others.into_iter().flatten());
    let mut of_frames = [&parts.line_rate, &parts.dpdk].into_iter().flatten();
    making.interrupted |= of_frames.any(|runs| runs.interrupted);
    making.interrupted |= trains.is_some_and(|runs| runs.interrupted);
    making.interrupted |= of_figure_2.is_some_and(|runs| runs.interrupted);
    let mut claims = claims::claims(runs, line_rate, of_figure_2);
    claims.push(trains::claim(trains));
    texts.account(making, claims, findings, &|id, heading| {
        let names: &[&str] = match id {
            "time" => &figures::SERIES_OF,
            "levels" => &figures::RING,
            "throughput" => &figures::BARS[..2],
            _ => &figures::BARS,
        };
        Some(Part::figure(heading, id, names.iter().copied(), |size, name| match id {
            "time" => figures::over_time(of_figure_2.unwrap_or(runs), size, name),
            "levels" => figures::main_effects(findings, size, name),
            "deviations" => figures::deviations(findings, size, name),
            _ => figures::throughput(findings, size, name),
        }))
    })
}

#[cfg(test)]
mod tests;
