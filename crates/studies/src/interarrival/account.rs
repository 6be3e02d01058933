//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::cable::Row;
use super::claims;
use super::figures::{Shown, density, place};
use super::findings::InterarrivalResult;
use super::stamps::Stamps;
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;
use crate::overhead::packets::Stamped;
use crate::overhead::paper::{MACHINE, Traffic};

/// Account of the runs and their results.
pub(super) fn account(
    captured: &Runs<Row>,
    stamped: &Runs<Stamped>,
    findings: &InterarrivalResult,
) -> anyhow::Result<Account> {
    let mut making = Making::of(captured);
    making.interrupted |= stamped.interrupted;
    making.repetitions = making.repetitions.min(stamped.complete());
    let captures = [Part::Table(findings.stamps_of_captures())].into_iter();
    let remarks = findings.nearest().into_iter().chain(findings.refusals()).map(Part::Remark);
    let user_space = vec![Part::Table(findings.stamps_in_user_space())];
    let correlation = vec![Part::Table(findings.correlations())];
    let mut sections = vec![
        Section::new("captures", "Captures of the same packets", captures.chain(remarks).collect()),
        Section::new("user-space", "Stamps in user space", user_space),
    ];
    sections.extend(Traffic::ALL.map(|pattern| of_pattern(findings, pattern)));
    let heading = "Large overheads and large times between arrivals";
    sections.push(Section::new("correlation", heading, correlation));
    if !findings.effects_on_log_deviation.is_empty() {
        let effects = vec![Part::Table(findings.effects())];
        sections.push(Section::new("effects", "What makes the difference", effects));
    }
    Ok(Account {
        title: "Error of times between arrivals, by timestamping method",
        making,
        claims: claims::claims(stamped, findings),
        paper: crate::overhead::PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: vec![("The paper's machine".to_owned(), MACHINE.to_owned())],
        report: None,
    })
}

/// The figures of a pattern.
fn of_pattern(findings: &InterarrivalResult, pattern: Traffic) -> Section {
    let ([figure, words], name) = (place(pattern), pattern.name());
    let (user_space, captures) = (findings.in_user_space(pattern), findings.captures_of(pattern));
    let draw = |heading: &str, id: &str, stamps: &[&Stamps], shown| {
        let names = stamps.iter().map(|stamps| stamps.source.as_str());
        Part::figure(heading, &format!("{id}-{name}"), names, |size, id| {
            density(findings, stamps, shown, size, id)
        })
    };
    let parts = vec![
        draw("Density points, stamped in user space", "gaps-user-space", &user_space, Shown::Gaps),
        draw("Density points, captured", "gaps-captures", &captures, Shown::Gaps),
        draw("The same, less the sender’s own times", "errors-captures", &captures, Shown::Errors),
    ];
    Section::new(name, format!("{figure}, measured here: {words}"), parts)
}
