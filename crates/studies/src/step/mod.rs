//! How small a change of the delay can be told: the experiment of Grigorjew et al., section IV
//! (Figure 3), made again on this machine.
//!
//! The paper puts 18 m of copper between its taps for the second third of the packets, which raises the
//! delay by 88 ns. Here the emulated device raises its delay ([`crate::replicas`]), by that and by other
//! steps, and a test says whether the step is in what the taps measured. [`DEVIATIONS`] tells where this
//! departs from the paper.

mod account;
mod cells;
mod claims;
mod detection;
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
const DEVIATIONS: [(&str, &str); 5] = [
    (
        "The step",
        "The paper changes cables by hand. Here the sender sends the second replica later by the \
         counter. It may be held up by the machine, as a cable is not: that is in all that is said here of \
         what the taps measure.",
    ),
    (
        "Links",
        "The paper has copper and network cards; here the links are veth pairs, and what cards and their \
         interrupts add to the error of stamps is not in these numbers.",
    ),
    ("Hardware stamps", "A veth has none, so that the right half of Figure 3 cannot be made here."),
    (
        "What counts as found",
        "The paper looks at its figure. Here the packets within the step are compared with those around \
         it, by the medians of packets in a row: a step moves them as it moves every packet, and an \
         interruption of the machine, which may be a thousand times as long, does not. Found is what is \
         larger than 99 in 100 of the differences that there are without a step, in the same data at every \
         other place; the smallest step is what is found 99 times in 100. Whether that is so is tried: \
         steps of known sizes are put into each run, and looked for by what the other runs tell of chance. \
         Places overlap, so that few runs tell little of how rare the rare differences are.",
    ),
    (
        "Raw results",
        "Packets are kept in blocks of some in a row, fifty before, in and after the step, each with the \
         means and deviations of its packets.",
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
    let size = if *quick { Size::quick() } else { Size::full() };
    let packets = size.packets;
    let mut cells = Cells::new(size);
    let runs = experiment::run(&mut cells, folder.as_deref(), *seed, stop, progress)?;
    account::account(&runs, &Findings::of(&runs, packets, Technique::missing()))
}

#[cfg(test)]
mod tests;
