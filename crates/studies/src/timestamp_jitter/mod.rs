//! What a probe's stamps are off by from a constant rhythm: the experiment of the 6QM report, section
//! 3.2 (Figures 3-5 to 3-13), made again on this machine.
//!
//! Frames of one size are sent at a constant rate, and the least, mean and longest time between the
//! stamps of two packets and its standard deviation are held against the sender's. The report knows of
//! its sender what it was set to; here each time between packets is known by the sender's own record,
//! so that what is left is the stamps' alone. [`DEVIATIONS`] tells where this departs from the report.

mod account;
mod claims;
mod figures;
mod findings;
mod flows;
mod paper;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::studies::Options;
use findings::Findings;
use flows::{Flows, Size};

pub(crate) use paper::PAPER;

/// Where this experiment departs from the report's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 6] = [
    (
        "Truth",
        "The report's sender is a SmartBits 600 on a wire of 100 Mbit/s, and its times are those that it \
         was set to. Here a program sends over a veth cable, paced by the counter, and writes down when: \
         errors are against its record. Where it cannot keep the pace, the times are longer than the \
         report's, and known all the same. The report's jitter is the deviation of the times; here it is \
         that of their differences from the sender's.",
    ),
    (
        "Interrupted sendings",
        "A packet whose sending took longer than 250 µs was sent by a thread that was interrupted, and \
         nobody knows when. The times before and after it are left out; as the sender then makes up for \
         what it lost, the others may be shorter than the rhythm.",
    ),
    (
        "Loss",
        "The report's mean and longest times contain gaps of packets that its probe lost. Here a time \
         is one between two packets that follow each other, and loss has a column of its own. It is \
         never the network's: a cable loses nothing.",
    ),
    (
        "Frames",
        "The report sends UDP over IPv6. Here it is IPv4, because a frame of 84 bytes has no room for \
         both IPv6 and the packet's number and times. Sizes are the report's, with check sequence.",
    ),
    (
        "Duration",
        "60 s in the report; 20 s here, three times, and 0.3 s in a quick run, of three sizes.",
    ),
    (
        "CPU load",
        "The report gives it beside each row. Here the sender shares the machine and computes all the \
         time; what load the probe takes is a question of its limit rate.",
    ),
];

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
    let mut flows = Flows::new(if *quick { Size::QUICK } else { Size::FULL })?;
    let runs = experiment::run(&mut flows, folder.as_deref(), *seed, stop, progress)?;
    account::account(&runs, &Findings::of(&runs, flows.refusals()))
}

#[cfg(test)]
mod tests;
