//! How many packets are lost by the way they are stamped and captured: the experiment of Orosz and
//! Skopkó, section V.B (Figure 6), made again on this machine.
//!
//! Rounds of 20,000 packets of one size and with one gap are captured with raw stamps that another core
//! converts, with the kernel's stamps, and by dumpcap, each with the memory that libpcap asks for.
//! [`DEVIATIONS`] tells where this departs from the paper.

mod account;
mod capture;
mod claims;
mod figures;
mod findings;
mod paper;
mod rounds;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::studies::Options;
use rounds::{Rounds, Size};

pub(crate) use paper::PAPER;

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 7] = [
    (
        "Place of the stamp",
        "The paper changes the kernel: raw stamps are taken in the softIRQ, and spare it the conversion. \
         Here the kernel is as it is, and does the same for all captures; raw stamps are taken by the \
         thread that finds the packet, and converted by another on the other core. So what the paper \
         gains in the softIRQ cannot be gained here.",
    ),
    (
        "Traffic",
        "The paper's generator is an FPGA on a wire. Here the kernel makes the frames on one core of the \
         same machine and hands them over a veth link, whose softIRQ runs on that core too: what a \
         capture costs there slows the sender. The converter of raw stamps shares that core.",
    ),
    (
        "Gap",
        "The paper gives it in bytes of a wire. A veth has no bit rate: here it is the time from the \
         beginning of a frame to that of the next, on average, and frames leave back to back as many as \
         come in 64 µs, 64 at the most. At 0 they follow each other as fast as this machine makes them.",
    ),
    (
        "What makes it lose",
        "The paper loses packets at the rate of its wire. Here each capture has 2 MiB, which libpcap asks \
         for by default, and the core that captures is idle in one half of the rounds and shared with a \
         thread that computes in the other.",
    ),
    (
        "Memory",
        "A ring for raw stamps has places of one size, large enough for the longest frame; one for the \
         kernel's stamps is filled to the last byte. Of the same memory the first holds fewer short \
         packets.",
    ),
    (
        "Levels",
        "The paper shows no numbers of Figure 6, and says neither which gap belongs to Figure 6 a nor \
         which size to 6 b. Here a is drawn without a gap and b with the shortest packets; the table \
         has all combinations.",
    ),
    (
        "Who captures",
        "In the paper dumpcap captures with both stamps. Here ours captures in the same process that \
         sends, and writes a file as dumpcap does.",
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
    let size = if options.quick { Size::QUICK } else { Size::FULL };
    let mut rounds = Rounds::new(size)?;
    let folder = options.folder.as_deref();
    let runs = experiment::run(&mut rounds, folder, options.seed, stop, progress)?;
    account::account(&runs, size)
}

#[cfg(test)]
mod tests;
