//! The limit rate of a mesh's probe: the same tasks as the report's, given by a controller to a probe that is a
//! process of its own on a core of its own.
//!
//! A search with each set-up looks for the highest rate without loss, and says whose it is: the probe's,
//! which loses packets above it, or the load's, which does not come higher. What a packet costs the probe answers
//! the question also where the load is the limit.

mod claims;
mod findings;
mod trials;

use wirestamp_capture::Stop;

use super::paper::{MACHINE, PAPER};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::{self, Progress, Runs};
use crate::mesh::BringUp;
use crate::studies::Options;
use findings::Findings;
use trials::{Size, Trials};

/// Rate that a probe is to have without loss: five times the 70,000 packets a second of the report's Pentium 4
/// (section 2.1.3).
const AIM: u64 = 5 * 70_000;

/// Where this departs from the report: the subject, and what is done and why.
const DEVIATIONS: [(&str, &str); 9] = [
    (
        "The probe",
        "A process that was started as `wirestamp probe`, all of whose threads share one core. It is given \
         its tasks by a controller, stamps by the kernel, keeps what it observes in its spool and delivers \
         it over TLS; all that is in its CPU time.",
    ),
    (
        "One core",
        "The report's probe has one processor, which takes frames from the network card and measures. So has \
         it here: a thread of the kernel on the probe's core makes packets of the frames, filters, stamps and \
         copies them, and shares the core with the probe (`BPF_MAP_TYPE_CPUMAP`). Four set-ups have the frames \
         taken beside, on the load's core, so that the probe's core has nothing but the probe: its limit is not \
         reached there, and its CPU time tells.",
    ),
    (
        "Traffic",
        "The kernel makes the frames on the other core, as if they had come over the link to tap A. Controller, \
         collector and the other probes share that core with it, so that the load comes less high the more \
         there is for them to do. Frames come in bursts of a thousand, of which sixteen may wait for the \
         probe's core, so that a rate is a mean.",
    ),
    (
        "The load's limit",
        "A search in which the probe had all that the sender could send has not reached the probe's limit, \
         and says at least.",
    ),
    (
        "Tasks",
        "One task is `volume`. Four are `traffic`, `passive-delay` and `active-delay` too, which sends 100 \
         packets a second to the second probe; the fifth is `flows`. As in the report passive delay is \
         measured of a sample that is chosen by a hash of the packet, here a tenth; once more it is \
         measured of every packet.",
    ),
    (
        "Passive delay",
        "Frames end behind tap A, so that the second probe sees none and the collector finds every packet of \
         the sample lost. To the probe before it that is no difference.",
    ),
    (
        "Loss",
        "A packet is measured if every task that counts has it in its results. What is missing the capture \
         has lost, by its own count, or there was no room for it before, by the kernel's.",
    ),
    (
        "Duration",
        "Trials are much shorter than the report's 60 s. The probe's ring has 32 MiB, which hold a fifth of \
         a million such frames: a limit that is reached is too high by up to as many in the time of a trial.",
    ),
    (
        "CPU time",
        "That of all threads of the probe, until it is at rest again, less what it takes when no frames \
         come. It is given where frames are taken beside, because the kernel counts some of what interrupts \
         a thread as the thread's.",
    ),
];

/// Measures until all is done or `stop` is requested.
///
/// # Errors
/// For want of privileges, of a second core or of a mesh, when a node ends, or when the folder cannot be used
/// or holds the results of a run of another size.
pub(crate) fn run_over_mesh(
    bring_up: BringUp,
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Account> {
    wirestamp_lab::check_privilege()?;
    let Options { quick, folder, seed } = options;
    let size = if *quick { Size::QUICK } else { Size::FULL };
    let mut trials = Trials::new(size, bring_up)?;
    let runs = experiment::run(&mut trials, folder.as_deref(), *seed, stop, progress)?;
    trials.end()?;
    account(&runs)
}

fn account(runs: &Runs<super::trials::Trial>) -> anyhow::Result<Account> {
    let findings = Findings::of(runs);
    let parts = vec![
        Part::Table(findings.limits()),
        Part::Table(findings.costs()),
        Part::Remark(findings.accounts()),
    ];
    let heading = "Number of tasks, measured here: section 2.5 with a mesh";
    Ok(Account {
        title: "The limit rate of a mesh's probe",
        making: Making::of(runs),
        claims: claims::claims(runs),
        paper: PAPER,
        data: members(&findings)?,
        sections: vec![Section::new("tasks", heading, parts)],
        deviations: &DEVIATIONS,
        machine: vec![("The report's machines".to_owned(), MACHINE.to_owned())],
        report: None,
    })
}

#[cfg(test)]
mod tests;
