//! How well packets are received and stamped by one technique and another: the experiment of
//! Grigorjew et al., sections III.B and IV (Table I, Figures 2, 4, 5 and 6), made again on this
//! machine.
//!
//! Two taps see each packet, before and after a device, and measure the delay between; here the device
//! is emulated, so that the true delay of every packet is known ([`crate::replicas`]). [`DEVIATIONS`]
//! tells where this departs from the paper.

mod account;
mod cells;
mod claims;
mod figures;
mod findings;
mod paper;
mod tables;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::replicas::Technique;
use crate::studies::Options;
use cells::{Cells, Size};
use findings::Findings;

pub(crate) use paper::PAPER;

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 9] = [
    (
        "Links",
        "The paper has copper and network cards; here the links are veth pairs, without cards, wires \
         or interrupts. A veth hands its packets over on the core that sends them. What cards add to \
         the error of stamps is therefore not in these numbers.",
    ),
    (
        "Device under test",
        "The paper's is a cable. Here the sender sends both replicas itself, the second as soon as the \
         kernel has taken the first, and reads the counter right before each: the true delay of every \
         packet is known, and is not the same for all. So what the paper reads off a delay that does \
         not change is read off the error here, which is the measured delay less the true one; both \
         are given.",
    ),
    (
        "Hardware stamps",
        "A veth has none, so the paper's comparison with them, and that of three cards, cannot be made \
         here. Its numbers stand in the table. Stamps of the counter (raw) take their place.",
    ),
    (
        "Line rate",
        "The sender never sends faster than the link's speed, and may not reach it: the kernel takes \
         some microseconds for a replica. The packets that were really sent a second stand in the \
         table of all cells. 10 Gbit/s is left out: with most frames the sender does not fill 1 Gbit/s, \
         and the paper calls its results inconclusive.",
    ),
    (
        "Sender and captures",
        "They share a machine. The captures are kept off the sender's core; on two cores both captures \
         share the other one. What the softIRQ does for a packet is done on the sender's core.",
    ),
    (
        "Stress",
        "The paper stresses the measuring machine. Here a loop without end runs on the cores of the \
         captures, at ordinary priority, and not on the sender's, which would not send then.",
    ),
    (
        "Length of a run",
        "The paper sends a million packets for Figure 2 and does not say how many for the others. Here \
         a run has a length in time, and the slowest links send fewer packets in it.",
    ),
    (
        "libpcap",
        "The paper presumes that libpcap uses XDP where it can. It uses the shared ring of packet \
         sockets.",
    ),
    (
        "Raw results",
        "Packets are kept in blocks of some in a row, each with the means and deviations of its \
         packets, from which those of a run are computed exactly.",
    ),
];

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// For want of privileges, when a capture fails, or when the folder cannot be used or holds the results
/// of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    let Options { quick, folder, seed } = options;
    let mut cells = Cells::new(if *quick { Size::quick() } else { Size::full() });
    let runs = experiment::run(&mut cells, folder.as_deref(), *seed, stop, progress)?;
    account::account(&runs, &Findings::of(&runs, Technique::missing()))
}

#[cfg(test)]
mod tests;
