//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::figures::{self, AREAS, Shown};
use super::findings::{LimitRateResult, LimitRateRuns, SeriesResult};
use super::paper::{FILTERS, MACHINE, PAPER, PROCESSORS};
use super::sweeps::Sweep;
use super::{claims, tables};
use crate::account::{Account, Making, Part, Section, members};
use wirestamp_report::figures::Figure;

/// Account of the trials and their results.
pub(super) fn account(measured: &LimitRateRuns) -> anyhow::Result<Account> {
    let findings = LimitRateResult::of(measured);
    let mut sections = vec![model(&findings)];
    let series = measured.series.iter().zip(&findings.series);
    sections.extend(series.map(|((sweep, _), found)| of_series(sweep, found)));
    let accounts = vec![Part::Remark(tables::accounts(&findings))];
    sections.push(Section::new("accounts", "Where the packets went", accounts));
    let making = Making { interrupted: measured.interrupted(), ..Making::of(&measured.searches) };
    Ok(Account {
        title: "The limit rate of a probe",
        making,
        claims: claims::claims(measured),
        paper: PAPER,
        data: members(&findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: machine(measured.size.repetitions()),
        report: None,
    })
}

fn machine(repetitions: u32) -> Vec<(String, String)> {
    let filters =
        FILTERS.map(|(name, filter)| format!("{name}: {}", filter.unwrap_or("all packets")));
    [
        ("Probe", "method ring with the kernel's stamps, on one core".to_owned()),
        ("Series", format!("{repetitions} repetitions of every trial, those of durations once")),
        ("Filters", filters.join("; ")),
        ("The report's machines", MACHINE.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The saturation points, and the model.
fn model(findings: &LimitRateResult) -> Section {
    let parts = vec![
        Part::figure("CPU load and packet loss, the whole core", "model", AREAS, |size, id| {
            figures::model(findings, size, id)
        }),
        Part::Table(findings.saturation()),
        Part::Table(findings.models()),
    ];
    Section::new("model", "The saturation point, and the model of Figure 2-11", parts)
}

/// The figures and the numeric results of a series.
fn of_series(sweep: &Sweep, found: &SeriesResult) -> Section {
    let names = || sweep.lines.iter().map(|line| line.words()).collect::<Vec<_>>();
    let figure = |heading: &str, id: &str, draw: Draw<'_>| {
        let names = names();
        let names = names.iter().map(String::as_str);
        Part::figure(heading, &format!("{}-{id}", sweep.name), names, draw)
    };
    let of = |shown| move |size, id: &str| figures::series(found, sweep, shown, size, id);
    let mut parts = vec![
        figure("Packet loss", "loss", &of(Shown::Loss)),
        figure("CPU load", "load", &of(Shown::Load)),
    ];
    if sweep.name == "cpu" {
        let captured = |size, id: &str| figures::captured(found, size, id);
        parts.push(figure("Captured packets", "captured", &captured));
        parts.extend([Shown::Loss, Shown::Load].map(in_the_report));
    }
    parts.push(Part::Table(found.table(sweep.heading)));
    Section::new(sweep.name, sweep.heading, parts)
}

/// Figure 2-9 as the report's own numbers make it.
fn in_the_report(shown: Shown) -> Part {
    let names = PROCESSORS.map(|processor| processor.name);
    let (heading, id) = match shown {
        Shown::Loss => ("Packet loss, in the report", "report-loss"),
        Shown::Load => ("CPU load, in the report", "report-load"),
    };
    Part::figure(heading, id, names, |size, id| figures::in_the_report(shown, size, id))
}

/// Draws a figure of a size, with an identity.
type Draw<'a> = &'a dyn Fn((u32, u32), &str) -> Option<Figure>;
