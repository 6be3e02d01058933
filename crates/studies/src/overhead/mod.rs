//! What it costs to stamp a packet: the experiment of Orosz and Skopkó, section V.A (Tables I and II,
//! Figures 2 and 4), made again on this machine.
//!
//! A checkpoint is taken before the stamp and another after it, for each packet of the paper's two
//! patterns; what lies between them, less what a checkpoint costs, is the overhead of the stamp. In
//! the softIRQ, where no program can look at the counter on all machines, the kernel itself says what
//! a program takes with the stamp and without. [`DEVIATIONS`] tells where this departs from the paper.

mod account;
mod claims;
mod figures;
mod findings;
pub(crate) mod packets;
pub(crate) mod paper;
pub(crate) mod series;
mod softirq;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::studies::Options;
use findings::Findings;
use packets::{Packets, Size};
use softirq::Programs;

pub(crate) use paper::{MACHINE, PAPER};

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 7] = [
    (
        "Place of the stamp",
        "The paper changes the kernel, to stamp in the softIRQ with checkpoints around. Here the \
         thread that receives a packet stamps it, with ktime as clock_gettime reads it, by the \
         kernel's own formula and data. In the softIRQ the kernel is asked what a BPF program takes \
         with the stamp and without: a mean of many frames, so there is no distribution.",
    ),
    (
        "Traffic",
        "The paper's generator is an FPGA on a wire. Here the packets are sent by another thread \
         over the loopback interface, paced by the counter. The overhead is that of the receiver \
         alone; the rhythm matters because caches cool between packets.",
    ),
    (
        "Checkpoints",
        "The paper takes them by rdtscll. Here they are ordered by fences, so that nothing of the \
         stamp is left outside. One more is taken ahead of the first: it finds the caches cold, and \
         what is subtracted is the cost of a checkpoint that does not.",
    ),
    (
        "Interrupts",
        "The paper disables them while it stamps. A program cannot: an interrupt between the \
         checkpoints is in the overhead, of both methods alike.",
    ),
    (
        "Variance",
        "The paper gives it in ns, as one would a standard deviation. Both are given here.",
    ),
    (
        "Memory",
        "The paper says of its auto-correlation that it is high with raw stamps, and shows no number. \
         Here the auto-correlation of one packet and the next is compared between the methods.",
    ),
    (
        "Figures",
        "Shares are drawn on a logarithmic scale: on a linear one the long overheads of ktime, each of \
         them rare, would lie on the axis. One in 200 lies beyond it.",
    ),
];

/// Repetitions in the softIRQ: each takes a few hundredths of a second.
const SOFTIRQ_REPETITIONS: u32 = 31;

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
    let (size, folder) = (if *quick { Size::QUICK } else { Size::FULL }, folder.as_deref());
    let mut packets = Packets::new("overhead", size)?;
    let mut programs = Programs { repetitions: SOFTIRQ_REPETITIONS };
    let softirq = experiment::run(&mut programs, folder, *seed, stop, progress);
    let runs = experiment::run(&mut packets, folder, *seed, stop, progress)?;
    account::account(&runs, &Findings::of(&runs, softirq, size, packets.step_ns))
}

#[cfg(test)]
mod tests;
