//! The times between arrivals as stamps tell them: the experiment of Orosz and Skopkó, section V.A
//! (Figures 3 and 5), made again on this machine.
//!
//! The paper's two patterns are stamped in user space by ktime and by the counter, packet for packet as
//! in the study of the overhead; and by captures of several methods and clocks at the end of a cable,
//! all of them on the same packets. The paper holds the times between stamps against a rhythm that it
//! takes for constant. Here each is held against the time between the two sendings too, by the sender's
//! own record. [`DEVIATIONS`] tells where this departs from the paper.

mod account;
mod cable;
mod claims;
mod correlation;
mod figures;
mod findings;
mod stamps;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::overhead::packets::{Packets, Size};
use crate::studies::Options;
use cable::Cable;
use findings::Findings;

/// Where the figures come from.
pub(crate) const PAPER: &str = crate::overhead::PAPER;

/// As many packets as 30 minutes have room for; the paper does not say how many it took.
const FULL: Size = Size { repetitions: 10, packets: [1_500, 20_000] };
/// As many as 30 seconds have room for.
const QUICK: Size = Size { repetitions: 4, packets: [50, 500] };

/// What the results of the stamps in user space are called.
const IN_USER_SPACE: &str = "interarrival-user-space";

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 6] = [
    (
        "Truth",
        "The paper's generator is an FPGA, and its rhythm is taken for constant. Here a program sends, \
         paced by the counter, and writes down when: each time between two stamps is held against the \
         time between the two sendings, so that the sender's own unrest is not taken for the stamps'. \
         A packet whose sending took longer than 250 µs was sent by a thread that was interrupted; on \
         the cable it has no error.",
    ),
    (
        "Place of the stamp",
        "The paper stamps in the softIRQ of a changed kernel, one method at a time. Here ktime and the \
         counter are read one after the other for the same packet by the thread that receives it over \
         the loopback interface; and captures stamp at the end of a veth cable: ring/kernel, \
         recvmsg/kernel and xdp-pass/xdp in the softIRQ, ring/raw in a thread.",
    ),
    (
        "Same packets",
        "All captures run at once, so that they are compared on the same packets. Where there are only \
         two cores they share one, and a thread that stamps by itself has real-time priority there. The kernel \
         takes one stamp for ring and recvmsg alike. The confidence of effects takes captures of one \
         run for independent, which they are not quite.",
    ),
    (
        "Missed packets",
        "A time between packets of which one between was missed is left out: it is none of the \
         pattern's.",
    ),
    (
        "Correlation",
        "The paper observes that large times between arrivals go with large overheads, and shows no \
         number. Here it is Spearman's rank correlation of the overhead of a stamp with the time since \
         the stamp before, for each run.",
    ),
    (
        "Figures",
        "Shares are drawn on a logarithmic scale, so that rare values are seen. One value in 200 lies \
         beyond each end of the axis.",
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
    let (size, folder) = (if *quick { QUICK } else { FULL }, folder.as_deref());
    let mut cable = Cable::new(size)?;
    let mut packets = Packets::new(IN_USER_SPACE, size)?;
    let captured = experiment::run(&mut cable, folder, *seed, stop, progress)?;
    let stamped = experiment::run(&mut packets, folder, *seed, stop, progress)?;
    let findings = Findings::of(&captured, &stamped, size, packets.step_ns, cable.refusals());
    account::account(&captured, &stamped, &findings)
}

#[cfg(test)]
mod tests;
