//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::claims::claims;
use super::contender::Way;
use super::findings::TimersResult;
use super::measured::Measured;
use super::paper::{PAPER, Published, Timer};
use super::reads::CostCount;
use super::{Elsewhere, figures};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use wirestamp_report::format::count;

/// Account of the runs and their results.
pub(super) fn account(
    runs: &Runs<CostCount>,
    ways: &[Way],
    findings: &TimersResult,
) -> anyhow::Result<Account> {
    let making = Making::of(runs);
    let sections = vec![
        Section::new("tables", "Tables 1 and 2, here and in the paper", beside_the_paper(findings)),
        Section::new("course", "Figures 2 and 3, measured here", vec![course(findings)]),
        Section::new("ways", "Every way to read a source", every_way(findings)),
    ];
    let clocksource = &making.circumstances.clocksource;
    Ok(Account {
        title: "Cost of reading a time source",
        claims: claims(runs, ways, findings, clocksource),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: machine(findings, clocksource),
        making,
        report: None,
    })
}

/// The means and deviations beside the paper's, in figures and drawn.
fn beside_the_paper(findings: &TimersResult) -> Vec<Part> {
    let places = ["here", "Table 1: VIA Nano", "Table 2: AMD Athlon"];
    let draw = |size, id: &str| Some(figures::beside_the_paper(findings, size, id));
    let mut parts = vec![Part::Table(findings.beside_the_paper())];
    parts.extend(findings.ways.iter().filter_map(missing).map(Part::Remark));
    parts.extend(findings.beside.as_ref().map(Elsewhere::origin).map(Part::Remark));
    parts.push(Part::figure("Mean and deviation", "beside", places, draw));
    parts
}

/// Why a timer of the paper has no numbers.
fn missing(way: &Measured) -> Option<String> {
    let timer = way.timer.filter(|_| !way.is_available())?;
    Some(format!("{}: not available here, {}.", timer.name(), way.reason))
}

fn course(findings: &TimersResult) -> Part {
    let names = figures::shown(findings).filter_map(|way| way.timer).map(Timer::name);
    let draw = |size, id: &str| figures::course(findings, size, id);
    Part::figure("Cost in the course of the experiment", "course", names, draw)
}

/// Every way with and without its peaks.
fn every_way(findings: &TimersResult) -> Vec<Part> {
    let TimersResult { rounds, reads_per_round, .. } = *findings;
    let reads = format!(
        "{} reads in each way, in {} turns of {}.",
        count(u64::from(rounds) * u64::from(reads_per_round)),
        count(rounds.into()),
        count(reads_per_round.into()),
    );
    let steps = "A clock that moves in steps shows each cost as a whole number of steps: the mean is \
                 right all the same, the deviation is that of the steps where they are no smaller \
                 than the cost.";
    vec![Part::Table(findings.every_way()), Part::Remark(format!("{reads} {steps}"))]
}

/// The sources, and the machines of the paper; first of all which of them is like this one.
fn machine(findings: &TimersResult, clocksource: &str) -> Vec<(String, String)> {
    let like = findings.published.iter().find(|published| published.clocksource == clocksource);
    let like = like.map(|Published { figure, processor, .. }| {
        (
            "Like".to_owned(),
            format!("{figure} ({processor}): the kernel keeps time by {clocksource}"),
        )
    });
    let mut sources: Vec<_> = findings.ways.iter().map(|way| source(way, findings)).collect();
    sources.dedup();
    let papers = findings.published.iter().map(|Published { table, figure, machine, .. }| {
        (format!("The paper's {table} and {figure}"), (*machine).to_owned())
    });
    like.into_iter().chain(sources).chain(papers).collect()
}

fn source(way: &Measured, findings: &TimersResult) -> (String, String) {
    let mark = if way.source == findings.selected { ", which is chosen" } else { "" };
    let by = way.emulated_by.as_ref().filter(|_| way.is_available());
    let emulated = by.map_or(String::new(), |by| format!("; emulated by {by}"));
    (format!("Source {}{mark}", way.source), format!("{}{emulated}", way.reason))
}
