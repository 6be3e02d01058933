//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::claims;
use super::figures::{Delay, NAMES, View};
use super::findings::{AllRuns, PassiveDelayResult};
use super::measurements::{Measurements, PassiveDelayScale};
use super::paper::{MACHINES, PAPER, Question};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::{Cell, Runs};
use wirestamp_report::format::{length, plural};

/// Account of the runs and their results.
pub(super) fn account(
    runs: &AllRuns,
    size: PassiveDelayScale,
    findings: &PassiveDelayResult,
) -> anyhow::Result<Account> {
    let [precision, frames, duration] = runs;
    let cells = frames.design.cells();
    let setting = |cell: usize| {
        let cell = cells.get(cell).cloned().unwrap_or(Cell(Vec::new()));
        Measurements::setting(Question::Frames, size, &cell)
    };
    let mut sections: Vec<_> =
        Question::ALL.map(|question| of_question(findings, size, question)).into();
    let effects = vec![Part::Table(findings.effects())];
    sections.push(Section::new("effects", "What makes the difference", effects));
    let repeated = |which: &Runs<_>| Making::of(which).repetitions.to_string();
    let repetitions =
        format!("{}, {} and {}", repeated(precision), repeated(frames), repeated(duration));
    let machine = [
        ("Repetitions of the three experiments", repetitions),
        ("The paper's machines", MACHINES.to_owned()),
    ];
    let interrupted = runs.iter().any(|runs| runs.interrupted);
    Ok(Account {
        title: "Error of passive one-way delay and loss",
        making: Making { interrupted, ..Making::of(frames) },
        claims: claims::claims(runs, setting),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: machine.map(|(name, value)| (name.to_owned(), value)).into(),
        report: None,
    })
}

fn of_question(
    findings: &PassiveDelayResult,
    size: PassiveDelayScale,
    question: Question,
) -> Section {
    let [section, words] = question.place();
    let mut parts = vec![Part::Table(findings.errors(question))];
    if question == Question::Precision {
        parts.extend(unknown(findings));
    }
    let (loads, delays): (&[u32], &[Delay]) = match question {
        Question::Precision => (&[0], &[Delay::Least, Delay::Mean, Delay::Longest]),
        Question::Frames => (size.loads, &[Delay::Mean, Delay::Longest]),
        Question::Duration => (&[0], &[Delay::Mean, Delay::Longest]),
    };
    for &load in loads {
        for &delay in delays {
            parts.push(figure(findings, View { question, load, delay }));
        }
    }
    let id = question.name();
    Section::new(id, format!("Section {section}, measured here: {words}"), parts)
}

fn figure(findings: &PassiveDelayResult, view: View) -> Part {
    let View { question, load, delay } = view;
    let at = match question {
        Question::Frames => format!(" at {} % load", load / 10),
        Question::Precision | Question::Duration => String::new(),
    };
    let heading = format!("Error of the {} delay{at}", delay.name());
    let id = format!("{}-{load}-{}", question.name(), delay.name());
    Part::figure(&heading, &id, NAMES, |size, id| view.draw(findings, size, id))
}

/// That runs had no truth, if some had none, and why the first had none.
fn unknown(findings: &PassiveDelayResult) -> Option<Part> {
    let reason = findings.unknown.first()?;
    let runs = plural(length(&findings.unknown), "run is", "runs are");
    Some(Part::Remark(format!("{runs} left out, because the truth is not known: {reason}.")))
}
