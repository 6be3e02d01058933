//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::findings::{Data, StepResult};
use super::paper::{MACHINE, PAPER};
use super::{claims, figures};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use crate::replicas::Block;

/// Account of the runs and their results.
pub(super) fn account(runs: &Runs<Block>, findings: &StepResult) -> anyhow::Result<Account> {
    let data = Data { runs, packets: findings.packets };
    let draw = |size: (u32, u32), id: &str| figures::step(data, size, id);
    let figure = Part::figure("Delay over the packets", "step", figures::SERIES_OF, draw);
    let smallest = [Part::Table(findings.smallest()), Part::Table(findings.power())];
    let missing = findings.missing.clone().map(Part::Remark);
    let sections = vec![
        Section::new("step", "Figure 3: a step of the delay", vec![figure]),
        Section::new(
            "smallest",
            "The smallest step",
            smallest.into_iter().chain(missing).collect(),
        ),
        Section::new(
            "made",
            "Steps that were made",
            vec![Part::Table(findings.made()), Part::Table(findings.losses())],
        ),
    ];
    Ok(Account {
        title: "Smallest delay change that is detected",
        making: Making::of(runs),
        claims: claims::claims(findings),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: vec![("The paper's machine".to_owned(), MACHINE.to_owned())],
        report: None,
    })
}
