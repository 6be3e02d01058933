//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::findings::OverheadResult;
use super::packets::Stamped;
use super::paper::{MACHINE, PAPER, Traffic};
use super::{claims, figures};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use wirestamp_report::figures::Figure;
use wirestamp_report::format::duration;

/// Account of the runs and their results.
pub(super) fn account(runs: &Runs<Stamped>, findings: &OverheadResult) -> anyhow::Result<Account> {
    let tables =
        vec![Part::Table(findings.beside_the_paper()), Part::Table(findings.distributions())];
    let mut sections =
        vec![Section::new("tables", "Tables I and II, here and in the paper", tables)];
    sections.extend(Traffic::ALL.map(|pattern| of_pattern(findings, pattern)));
    sections.push(Section::new("softirq", "In the softIRQ", softirq(findings)));
    let effects = vec![Part::Table(findings.effects())];
    sections.push(Section::new("effects", "What makes the difference", effects));
    let machine = [
        ("Counter", format!("moves in steps of {}", duration(findings.step_ns))),
        ("The paper's machine", MACHINE.to_owned()),
    ];
    Ok(Account {
        title: "Cost of timestamping a packet",
        making: Making::of(runs),
        claims: claims::claims(runs),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: machine.map(|(name, value)| (name.to_owned(), value)).into(),
        report: None,
    })
}

/// The figures of a pattern.
fn of_pattern(findings: &OverheadResult, pattern: Traffic) -> Section {
    let [_, figure, words] = pattern.place();
    let name = pattern.name();
    let density = |size, id: &str| figures::density(findings, pattern, size, id);
    let memory = |size, id: &str| figures::autocorrelation(findings, pattern, size, id);
    let figure_of = |heading: &str, id: &str, draw: Draw<'_>| {
        Part::figure(heading, &format!("{id}-{name}"), figures::names(), draw)
    };
    let parts = vec![
        figure_of("Density points of the overhead", "density", &density),
        figure_of("Auto-correlation of the overhead", "memory", &memory),
    ];
    Section::new(name, format!("{figure}, measured here: {words}"), parts)
}

/// Draws a figure of a size, with an identity.
type Draw<'a> = &'a dyn Fn((u32, u32), &str) -> Option<Figure>;

fn softirq(findings: &OverheadResult) -> Vec<Part> {
    let missing = findings.not_in_the_softirq().into_iter().map(Part::Remark);
    [Part::Table(findings.in_the_softirq())].into_iter().chain(missing).collect()
}
