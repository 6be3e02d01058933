//! What active one-way delay is off by from passive, on the same packets: the test of 6QM's report on
//! OpenIMP, section 3.7, made again on this machine.
//!
//! A STAMP sender tests the way through a bottleneck to a reflector, and two captures before and behind the
//! bottleneck measure the same packets passively. [`DEVIATIONS`] tells where this departs from the report.
//!
//! | file | what it does |
//! |---|---|
//! | `tests_of_a_path.rs` | what is varied |
//! | `bed.rs`, `over_mesh.rs` | makes one run: with a sender and captures of its own, or with a mesh |
//! | `measured.rs` | what a run brings: a row of the raw results |
//! | `findings.rs`, `claims.rs` | what is computed of the runs |
//! | `paper.rs` | what the report measured |
//! | `tables.rs`, `figures.rs`, `account.rs` | how all that is shown |

mod account;
mod bed;
mod claims;
mod figures;
mod findings;
mod measured;
mod over_mesh;
mod paper;
mod tables;
mod tests_of_a_path;

use wirestamp_capture::Stop;

use crate::account::Account;
use crate::experiment::{self, Progress};
use crate::mesh::BringUp;
use crate::studies::Options;
use findings::Findings;
use tests_of_a_path::{Size, TestsOfAPath};

pub(crate) use paper::PAPER;

/// Where this experiment departs from the paper's: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 6] = [
    (
        "Active measurement",
        "OpenIMP's probe wrote the time of sending into a packet of its own kind, and its far end compared \
         that with its own time. Here the packets are those of STAMP (RFC 8762). Their time of sending is \
         the kernel's, from when the driver had the packet, and their time of arrival the kernel's, which \
         the reflector tells in its answer.",
    ),
    (
        "The points",
        "Active delay is from the sender's interface to the reflector's, passive delay from tap A, which is \
         at the other end of the sender's cable, to tap B, which is the reflector's interface. So the cable \
         is in the first only: some tenths of a microsecond.",
    ),
    (
        "Clocks",
        "The probes of the report were two machines, up to 136 us apart by NTP, which both ways to measure \
         shared. Here all is one machine with one clock.",
    ),
    (
        "Bottleneck",
        "The report does not say what lost 78 to 91 % of its packets. Here it is the 10 Mbit/s of the \
         report's sections 3.4 to 3.6, which lose none of 500 frames of 600 bytes a second, half of 4,167, \
         and four fifths of as many of 1,500 bytes. The answers come back over an empty path.",
    ),
    (
        "Design",
        "The report has seven tests of one kind: frames of 600 bytes, 4,167 a second, for 60 s. Here they \
         last 15 s each, and there are as many with frames of 1,500 bytes and with 500 a second, so that \
         one can see what makes a difference.",
    ),
    ("Machine", "Sender, router, reflector and captures share this machine's cores."),
];

/// The same where a mesh measures: what is not as without one.
const DEVIATIONS_OF_MESH: [(&str, &str); 6] = [
    (
        "The mesh",
        "Here a controller and three probes are processes of their own in namespaces of one machine, as \
         `wirestamp controller` and `wirestamp probe` start them. The task `active-delay` is from the probe \
         `street`, at the sender, to `cellar`, at the far end; `passive-delay` is of the same packets, by \
         their port, from `roof`, before the bottleneck, to `cellar`. What is not told of here is as in the \
         study without a mesh.",
    ),
    (
        "Active measurement",
        "The packets are those of STAMP (RFC 8762). Both probes tell when they had a packet, by the \
         kernel's stamps, and the collector compares, as it does for passive measurements.",
    ),
    (
        "The points",
        "Active delay is from the sender's interface to the reflector's, passive delay from tap A, which is \
         at the other end of the sender's cable, to tap B, which is the reflector's interface. So the cable \
         is in the first only: some tenths of a microsecond.",
    ),
    (
        "The same packets",
        "A test has no end that both tasks see. So whole seconds are compared, from the third of the test \
         on. A packet belongs to the second in which it was sent; where it passes tap A in the next, the \
         stretch that is compared begins or ends a second further in.",
    ),
    (
        "Figures of the mesh",
        "The collector tells least, mean and longest delay of each second, which are put together here: \
         there is no difference of a single packet. Delays below zero are counted by the second.",
    ),
    (
        "Duration",
        "Each test is compared over 5 s; the report's last 60 s, those without a mesh 15 s.",
    ),
];

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// For want of privileges, when the lab cannot be built, or when the folder cannot be used or holds the
/// results of a run of another size.
pub(crate) fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size = if *quick { Size::QUICK } else { Size::FULL };
    let mut tests = TestsOfAPath::new(size)?;
    let runs = experiment::run(&mut tests, folder.as_deref(), *seed, stop, progress)?;
    account::account(&runs, &Findings::of(&runs))
}

/// The same, measured by the probes and the controller of a mesh.
///
/// # Errors
/// As of [`run`], or when there is no mesh to be had.
pub(crate) fn run_over_mesh(
    bring_up: BringUp,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size = if *quick { Size::QUICK_OF_MESH } else { Size::FULL_OF_MESH };
    let mut tests = TestsOfAPath::over_mesh(size, bring_up);
    let runs = experiment::run(&mut tests, folder.as_deref(), *seed, stop, progress)?;
    let account = account::account(&runs, &Findings::of(&runs))?;
    let title = "What active one-way delay of a mesh is off by from passive";
    Ok(Account { title, deviations: &DEVIATIONS_OF_MESH, ..account })
}

#[cfg(test)]
mod tests;
