//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::claims;
use super::figures::{DELAYS, differences, names};
use super::findings::ActiveDelayResult;
use super::measured::Measured;
use super::paper::{MACHINES, PAPER};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use wirestamp_report::format::plural;

/// Account of the runs and their results.
pub(super) fn account(
    runs: &Runs<Measured>,
    findings: &ActiveDelayResult,
) -> anyhow::Result<Account> {
    let names = names(findings);
    let figure = |(delay, (name, number)): (usize, &(&str, &str))| {
        let heading = format!("Difference of the {name} delay (Figure {number})");
        let names = names.iter().map(String::as_str);
        let draw = |size, id: &str| differences(findings, delay, size, id);
        Part::figure(&heading, &format!("difference-{name}"), names, draw)
    };
    let mut parts = vec![Part::Table(findings.compared())];
    parts.extend(stamped_late(findings));
    parts.extend(DELAYS.iter().enumerate().map(figure));
    let effects = vec![Part::Table(findings.effects())];
    Ok(Account {
        title: "Difference between active and passive one-way delay",
        making: Making::of(runs),
        claims: claims::claims(runs),
        paper: PAPER,
        data: members(findings)?,
        sections: vec![
            Section::new("compared", "Section 3.7, measured here", parts),
            Section::new("effects", "What makes the difference", effects),
        ],
        deviations: include_str!("deviations.md"),
        machine: vec![("The paper's machines".to_owned(), MACHINES.to_owned())],
        report: None,
    })
}

/// That some packets have worse stamps, if some have.
fn stamped_late(findings: &ActiveDelayResult) -> Option<Part> {
    let late: u64 = findings.cells.iter().map(|cell| cell.stamped_late).sum();
    let packets = plural(late, "packet or answer has", "packets or answers have");
    (late > 0).then(|| {
        Part::Remark(format!(
            "{packets} a program's time of sending, because the kernel's did not come in time."
        ))
    })
}
