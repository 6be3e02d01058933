//! The experiment's account: its numbers, tables and figures in the order that they are read.

use super::claims;
use super::figures::{MEASURES, by_size, compared, probes, sizes};
use super::findings::JitterResult;
use super::flows::{SOURCES, SourceJitter};
use super::paper::{MACHINES, PAPER};
use crate::account::{Account, Making, Part, Section, members};
use crate::experiment::Runs;

/// Account of the runs and their results.
pub(super) fn account(
    runs: &Runs<SourceJitter>,
    findings: &JitterResult,
) -> anyhow::Result<Account> {
    let sources = SOURCES.iter().map(ToString::to_string);
    let tables = sources.flat_map(|source| {
        [findings.against_the_sender(&source), findings.beside_the_report(&source)].map(Part::Table)
    });
    let refusals = findings.refusals().into_iter().map(Part::Remark);
    let effects = vec![Part::Table(findings.effects())];
    let mut sections = vec![
        Section::new(
            "probes",
            "Figures 3-12 and 3-13, measured here: frames of 300 bytes",
            beside_the_probes(findings),
        ),
        Section::new("sizes", "Figure 3-10, measured here: sizes of frames", of_sizes(findings)),
        Section::new(
            "tables",
            "Figures 3-8 and 3-9, here and in the report",
            tables.chain(refusals).collect(),
        ),
    ];
    if !findings.effects_on_log_jitter.is_empty() {
        sections.push(Section::new("effects", "What makes the difference", effects));
    }
    Ok(Account {
        title: "Timestamp error at a constant packet rate",
        making: Making::of(runs),
        claims: claims::claims(runs, findings),
        paper: PAPER,
        data: members(findings)?,
        sections,
        deviations: include_str!("deviations.md"),
        machine: vec![("The report's machines".to_owned(), MACHINES.to_owned())],
        report: None,
    })
}

/// Both sources beside both probes of the report.
fn beside_the_probes(findings: &JitterResult) -> Vec<Part> {
    let names = probes();
    let figure = |measure| {
        let draw = |size, id: &str| compared(findings, measure, size, id);
        let names = names.iter().map(String::as_str);
        Part::figure(&capital(measure.what), &format!("probes-{}", measure.id), names, draw)
    };
    MEASURES.iter().map(figure).collect()
}

/// The error of the longest time and the jitter, for several sizes of frames.
fn of_sizes(findings: &JitterResult) -> Vec<Part> {
    let names: Vec<_> = sizes(findings).into_iter().map(|bytes| format!("{bytes} bytes")).collect();
    let [longest, _, _, jitter] = &MEASURES;
    let of_source = |source: String| {
        [longest, jitter].map(|measure| {
            let draw = |size, id: &str| by_size(findings, &source, measure, size, id);
            let heading = format!("{}, {source}", capital(measure.what));
            let id = format!("sizes-{}-{}", measure.id, source.replace('/', "-"));
            Part::figure(&heading, &id, names.iter().map(String::as_str), draw)
        })
    };
    SOURCES.iter().map(ToString::to_string).flat_map(of_source).collect()
}

/// With a capital letter.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
