//! Result of a study: the parts that page, terminal and JSON document show.
//!
//! A study fills in an [`Account`]; how it looks is the same for all of them.

use std::path::PathBuf;

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::experiment::{Claim, Verdict};
use wirestamp_report::Circumstances;
use wirestamp_report::Table;
use wirestamp_report::figures::{FIRST_SERIES, Figure};
use wirestamp_report::sheet::{
    Heading, absent, document, key, on_every_screen, pairs, section, terms,
};

pub use crate::making::{Making, MeasuredDesign};

/// Result of a study. Serialises as the document of `wirestamp study NAME --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Account {
    /// Headline of the report.
    #[serde(skip)]
    pub title: String,
    /// How the runs were made.
    #[serde(flatten)]
    pub making: Making,
    /// Claims of the paper and their verdicts here.
    pub claims: Vec<Claim>,
    /// The paper that this is compared with.
    pub paper: &'static str,
    /// The study's own figures, by their names in the document.
    #[serde(flatten)]
    pub data: Map<String, Value>,
    /// Tables, figures and remarks in the order that they are read.
    #[serde(skip)]
    pub sections: Vec<Section>,
    /// Departures from the paper's experiment in Markdown: a heading of level 2 for each, and a paragraph.
    #[serde(skip)]
    pub deviations: &'static str,
    /// Further facts on the machines, here and in the paper: name and value.
    #[serde(skip)]
    pub machine: Vec<(String, String)>,
    /// The report file, if a folder is set.
    pub report: Option<PathBuf>,
}

#[cfg(test)]
impl Account {
    /// The table whose caption begins so.
    pub(crate) fn table(&self, caption: &str) -> &Table {
        let parts = self.sections.iter().flat_map(|section| &section.parts);
        let mut tables = parts.filter_map(|part| match part {
            Part::Table(table) => Some(table),
            Part::Remark(_) | Part::Figure(_) => None,
        });
        tables.find(|table| table.caption.starts_with(caption)).expect("such a table")
    }
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name within the page: letters, digits and hyphens.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// Its parts.
    pub parts: Vec<Part>,
}

impl Section {
    /// A section.
    pub(crate) fn new(id: &str, heading: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { id: id.to_owned(), heading: heading.into(), parts }
    }
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Part {
    /// A table, which the terminal shows too. Left out if it has no rows.
    Table(Table),
    /// A remark in whole sentences, which the terminal shows too.
    Remark(String),
    /// A figure.
    Figure(Markup),
}

impl Part {
    fn html(&self) -> Markup {
        match self {
            Self::Table(table) if table.rows.is_empty() => Markup::default(),
            Self::Table(table) => table.html(),
            Self::Remark(text) => html! { p.pattern { (text) } },
            Self::Figure(figure) => figure.clone(),
        }
    }

    /// A figure that `draw` makes of a size and an identity, with the names of its series in the order of
    /// their colours from [`FIRST_SERIES`] on; a remark if there is nothing to draw.
    pub(crate) fn figure<'a>(
        heading: &str,
        id: &str,
        names: impl IntoIterator<Item = &'a str>,
        draw: impl Fn((u32, u32), &str) -> Option<Figure>,
    ) -> Self {
        let key = key(names.into_iter(), FIRST_SERIES);
        let drawn = on_every_screen(heading, &key, id, draw);
        let nothing = || html! { h3 { (heading) } (absent("Nothing was measured.")) };
        Self::Figure(drawn.unwrap_or_else(nothing))
    }
}

/// The page. Any text may be hostile; it is escaped.
pub(crate) fn html(account: &Account) -> String {
    let generated_at = account.making.when();
    let summary = summary(account);
    let heading = Heading { title: &account.title, generated_at: &generated_at, summary: &summary };
    let deviations: Vec<_> = deviations(account.deviations).collect();
    let deviations: Vec<_> = deviations.iter().map(|(it, text)| (*it, "", text.as_str())).collect();
    let sections = html! {
        (section("findings", "Claims of the paper, and the data here", claims(&account.claims)))
        @for Section { id, heading, parts } in &account.sections {
            (section(id, heading, html! { @for part in parts { (part.html()) } }))
        }
        (terms("deviations", "Departures from the paper", &deviations))
        (pairs("machine", "Machine and run", &machine(account)))
    };
    document(&heading, Markup::default(), sections)
}

/// The verdict on each claim of a paper, a sentence each.
pub(crate) fn claims(claims: &[Claim]) -> Markup {
    html! {
        ul.claims {
            @for Claim { verdict, sentence, .. } in claims {
                li { (mark(*verdict)) " " (sentence) }
            }
        }
    }
}

/// Sign of a verdict.
pub(crate) fn mark(verdict: Verdict) -> Markup {
    html! {
        @match verdict {
            Verdict::Confirmed => span."mark pass" { "✓" },
            Verdict::Contradicted => span."mark fail" { "✗" },
            Verdict::Open => span."mark open" { "?" },
            Verdict::NotTheSameQuestion => span."mark open" { "≠" },
        }
    }
}

/// Summary sentences.
fn summary(account: &Account) -> Vec<String> {
    let mut summary = vec![format!("Reproduced experiment: {}.", account.paper)];
    if account.making.interrupted {
        summary.push("The experiment was interrupted; this is the part that was done.".into());
    }
    summary
}

/// Headings and paragraphs of Markdown that consists of these alone.
fn deviations(markdown: &str) -> impl Iterator<Item = (&str, String)> {
    let entries = markdown.split("## ").filter_map(|entry| entry.split_once("\n\n"));
    entries.map(|(subject, text)| (subject, text.trim_end().replace('\n', " ")))
}

fn machine(account: &Account) -> Vec<(String, String)> {
    let Account { making, machine, .. } = account;
    let written_again = making.written_again(&Circumstances::here().version);
    making.rows().into_iter().chain(machine.iter().cloned()).chain(written_again).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_are_read_from_markdown() {
        let read: Vec<_> =
            deviations("## One\n\nFirst line,\nsecond.\n\n## Two\n\nText.\n").collect();
        assert_eq!(read, [("One", "First line, second.".to_owned()), ("Two", "Text.".to_owned())]);
    }
}
