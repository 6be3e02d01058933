//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::findings::ReceptionResult;
use super::paper::{MACHINE, PAPER};
use super::{claims, figures};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use crate::replicas::Block;
use wirestamp_report::figures::Figure;

/// Account of the runs and their results.
pub(super) fn account(runs: &Runs<Block>, findings: &ReceptionResult) -> anyhow::Result<Account> {
    let sections = vec![
        Section::new(
            "fluctuation",
            "Figure 2: how far stamps fluctuate",
            fluctuation(runs, findings),
        ),
        Section::new("effects", "Figure 4: what makes the difference", effects(findings)),
        Section::new("techniques", "Figures 5 and 6: the techniques", techniques(findings)),
        Section::new("cells", "All cells", cells(findings)),
    ];
    Ok(Account {
        title: "Packet loss and timestamp error of capture techniques",
        making: Making::of(runs),
        claims: claims::claims(runs),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: vec![("The paper's machine".to_owned(), MACHINE.to_owned())],
        report: None,
    })
}

fn fluctuation(runs: &Runs<Block>, findings: &ReceptionResult) -> Vec<Part> {
    let draw = |size: (u32, u32), id: &str| figures::over_time(runs, size, id);
    vec![
        Part::Table(findings.beside_the_paper()),
        Part::figure("Error of the measured delay", "time", figures::SERIES_OF, draw),
    ]
}

fn effects(findings: &ReceptionResult) -> Vec<Part> {
    let draw = |size: (u32, u32), id: &str| figures::main_effects(findings, size, id);
    vec![
        Part::figure("Deviation by level, with the ring", "levels", figures::RING, draw),
        Part::Table(findings.main_effects()),
        Part::Table(findings.interactions()),
    ]
}

fn techniques(findings: &ReceptionResult) -> Vec<Part> {
    let figure = |heading: &str, id: &str, draw: Draw| {
        Part::figure(heading, id, figures::BARS, |size, id| draw(findings, size, id))
    };
    let parts = [
        Part::Remark(claims::conditions()),
        Part::Table(findings.techniques()),
        figure("Standard deviation of the error", "deviations", figures::deviations),
        figure("Packets measured", "throughput", figures::throughput),
    ];
    parts.into_iter().chain(findings.missing.clone().map(Part::Remark)).collect()
}

/// Draws a figure of a size, with an identity.
type Draw = fn(&ReceptionResult, (u32, u32), &str) -> Option<Figure>;

fn cells(findings: &ReceptionResult) -> Vec<Part> {
    vec![Part::Table(findings.cells()), Part::Table(findings.losses())]
}
