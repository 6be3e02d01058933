//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::findings::LossStudyResult;
use super::paper::{MACHINE, PAPER};
use super::round::Round;
use super::rounds::{CORES, LossStudyScale};
use super::{claims, figures};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;

/// Account of the runs and their results.
pub(super) fn account(runs: &Runs<Round>, size: LossStudyScale) -> anyhow::Result<Account> {
    let findings = LossStudyResult::of(runs, size);
    let mut sections: Vec<_> =
        [true, false].map(|busy_core| of_core(&findings, size, busy_core)).into();
    let accounts = vec![Part::Table(findings.accounts()), Part::Remark(generic(&findings))];
    sections.push(Section::new("accounts", "Where the packets went", accounts));
    let effects = vec![Part::Table(findings.effects())];
    sections.push(Section::new("effects", "What makes the difference", effects));
    Ok(Account {
        title: "Packet loss by timestamping and capture method",
        making: Making::of(runs),
        claims: claims::claims(runs, size),
        paper: PAPER,
        data: members(&findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: vec![
            ("Memory".to_owned(), format!("{} MiB for each capture", findings.buffer_mib)),
            ("The paper's machine".to_owned(), MACHINE.to_owned()),
        ],
        report: None,
    })
}

/// The figures and the table of a core that is idle or busy.
fn of_core(findings: &LossStudyResult, size: LossStudyScale, busy_core: bool) -> Section {
    let core = CORES[usize::from(busy_core)];
    let methods = || findings.methods.iter().map(String::as_str);
    let parts = vec![
        Part::figure(
            "In function of the packet size",
            &format!("size-{core}"),
            methods(),
            |at, id| figures::against_size(findings, size, busy_core, at, id),
        ),
        Part::figure("In function of the gap", &format!("gap-{core}"), methods(), |at, id| {
            figures::against_gap(findings, size, busy_core, at, id)
        }),
        Part::Table(findings.losses(size, busy_core)),
    ];
    Section::new(core, format!("Figure 6 a and b, measured here on a core that is {core}"), parts)
}

/// Who stood for generic ktime capture.
fn generic(findings: &LossStudyResult) -> String {
    match findings.methods.last().map(String::as_str) {
        Some("dumpcap") => "Generic ktime capture is dumpcap, as in the paper.".to_owned(),
        _ => "dumpcap is not installed: libpcap in this process stands for generic ktime capture."
            .to_owned(),
    }
}
