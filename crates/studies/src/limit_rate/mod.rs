//! The limit rate of a probe: section 2 of 6QM's final system test report (Figures 2-3 to 2-39), made
//! again for this machine's capture.
//!
//! Frames are sent at a rate for some time, and what the probe had of them is compared with what was sent:
//! series over rate, memory, filter, tasks, frame size, gap and duration, and searches for the highest
//! rate without loss. [`DEVIATIONS`] tells where this departs from the report.

mod account;
mod claims;
mod figures;
mod findings;
mod model;
mod over_mesh;
mod paper;
mod saturation;
mod setting;
mod sweeps;
mod tables;
mod tasks;
mod trials;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::studies::Options;
use findings::Measured;
use saturation::Searches;
use sweeps::Size;
use trials::{Probe, Series};

pub(crate) use over_mesh::run_over_mesh;
pub(crate) use paper::PAPER;

/// Where this experiment departs from the report's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 10] = [
    (
        "Processors",
        "The report has three machines. Here there is one, and the probe has its core alone or shares it \
         with threads that compute, so that it gets one of four or of sixteen equal parts. That makes it \
         wait as well as slow.",
    ),
    (
        "Traffic",
        "The report's generator is a device on a switch of 100 Mbit/s. Here the kernel makes the frames \
         on one core of the same machine and hands them over a veth link, whose softIRQ runs there too: \
         filter and copy into the probe's memory slow the sender, not the probe. Frames leave in bursts, \
         at the most 5,000 a second, so that the rate is a mean.",
    ),
    (
        "The sender's limit",
        "Where the sender is slower than asked for, the table says so, and its rate is what it came to. A \
         search in which the probe had everything that the sender could send has not reached the \
         saturation point, and says at least.",
    ),
    (
        "Saturation point",
        "The report reads it off its tables, as the rate up to which no more than 0.1 % is lost. Here it \
         is searched for by bisection, as RFC 2544 (section 26.1) does for no loss at all, with the \
         report's tolerance. Trials are much shorter than the 60 seconds of both.",
    ),
    (
        "Memory",
        "The report changes the machine's. Here it is what lies between the kernel and the probe: 2 MiB \
         where the CPU, the filter and the saturation point are looked at, because more would swallow \
         short trials whole, and 32 MiB elsewhere.",
    ),
    (
        "Filter",
        "The report's four-term filter wants TCP; the frames here are UDP, and the filter says so. Memory \
         and filter are varied on one of sixteen parts of the core, where there is loss to be changed.",
    ),
    (
        "Tasks",
        "Four tasks are four analyses of one capture: volume; the identity of every packet, as passive \
         one-way delay wants it; the sender's time in every packet against its stamp, as active one-way \
         delay; and the times between packets. The report's active task also sends.",
    ),
    (
        "Gap",
        "The time between packets is that of a wire of 1 Gbit/s, ten times the report's: the rate is what \
         frames with such a gap between them have (Figure 2-2), on average.",
    ),
    (
        "Duration",
        "The report's four durations are measured once each, at one rate, for want of time: one run has \
         no interval, and what the report says of durations stays open.",
    ),
    (
        "CPU load",
        "The report reads top. Here it is the CPU time of the thread that captures and measures, by the \
         time that frames were sent for; what the kernel does for it in the softIRQ is not in it.",
    ),
];

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// For want of privileges or of a second core, when a capture fails, or when the folder cannot be used
/// or holds the results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let (size, folder) = (Size { quick: *quick }, folder.as_deref());
    let probe = Probe::new()?;
    let mut searches = Searches { probe: &probe, size };
    let searches = experiment::run(&mut searches, folder, *seed, stop, progress)?;
    let mut series = Vec::new();
    for sweep in size.sweeps() {
        let mut trials = Series { probe: &probe, sweep: &sweep };
        let runs = experiment::run(&mut trials, folder, *seed, stop, progress)?;
        series.push((sweep, runs));
    }
    account::account(&Measured { size, series, searches })
}

#[cfg(test)]
mod tests;
