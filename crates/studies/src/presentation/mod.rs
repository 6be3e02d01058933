//! Presentation of a study as data: its file `report.md`, a MiniJinja template of Markdown over the study's
//! numeric results.
//!
//! The template has these lines, in this order of nesting. Values that are `none` are written as "–".
//!
//! | line | what it makes |
//! |---|---|
//! | `# Title` | headline of the report |
//! | `- Name: fact` | row of "Machine and run" |
//! | `## id: Heading` | [`Section`] |
//! | `### Caption`, then a table in Markdown | [`Table`]; its first row are the heads |
//! | `![Heading](id)` | figure, which the study draws |
//! | `{{ plot("Heading", "id", …) }}` | figure of lines, see [`plot::Plot`] |
//! | any other line | remark |

mod filters;
mod plot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use wirestamp_report::Table;
use wirestamp_report::format::NOTHING;

use crate::account::{Account, Making, Part, Section};
use crate::experiment::Claim;
use plot::Plot;

/// Macros that templates import: the table of main effects and interactions.
const EFFECTS: &str = include_str!("effects.md");

/// Texts of a study.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    /// The template of its report.
    report: &'static str,
    /// Departures from the paper's experiment, see [`Account::deviations`].
    deviations: &'static str,
    /// The paper.
    paper: &'static str,
    /// The paper's numbers in JSON, which become `published` in the document; none where the findings have them.
    published: Option<&'static str>,
}

/// Draws the figure of an identity, under a heading.
pub(crate) type Draw<'a> = &'a dyn Fn(&str, &str) -> Option<Part>;

impl Texts {
    pub(crate) const fn new(
        report: &'static str,
        deviations: &'static str,
        paper: &'static str,
    ) -> Self {
        Self { report, deviations, paper, published: None }
    }

    pub(crate) const fn with_published(self, published: &'static str) -> Self {
        Self { published: Some(published), ..self }
    }

    /// The account of a study.
    ///
    /// # Errors
    /// When the findings are no structure, or lack a value that the template names, or the template has a figure that
    /// `draw` does not know.
    pub(crate) fn account(
        self,
        making: Making,
        claims: Vec<Claim>,
        findings: &impl Serialize,
        draw: Draw<'_>,
    ) -> anyhow::Result<Account> {
        let Self { report, deviations, paper, published } = self;
        let mut data = members(findings)?;
        if let Some(published) = published {
            let published = serde_json::from_str(published);
            data.insert(
                "published".to_owned(),
                published.context("cannot read the paper's numbers")?,
            );
        }
        let document = Document { making: &making, data: &data };
        let (markdown, plots) = render(report, &document)?;
        let draw = |id: &str, heading: &str| match plots.get(id) {
            Some(plot) => Some(plot.part(heading, id)),
            None => draw(id, heading),
        };
        let Page { title, machine, sections } = Page::read(&markdown, &draw)?;
        Ok(Account {
            title,
            making,
            claims,
            paper,
            data,
            sections,
            deviations,
            machine,
            report: None,
        })
    }
}

/// Values of a template: those of the study's JSON document.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    making: &'a Making,
    #[serde(flatten)]
    data: &'a Map<String, serde_json::Value>,
}

/// A study's findings, a structure, as members of its document.
pub(crate) fn members(findings: &impl Serialize) -> anyhow::Result<Map<String, serde_json::Value>> {
    match serde_json::to_value(findings).context("cannot write the findings as JSON")? {
        serde_json::Value::Object(members) => Ok(members),
        other => bail!("the findings are no structure but {other}"),
    }
}

/// Figures that a template describes, by their identities.
type Plots = HashMap<String, Plot>;

/// The Markdown of a template and its values, and the figures that it describes.
fn render(template: &str, values: &impl Serialize) -> anyhow::Result<(String, Plots)> {
    let plots = Arc::new(Mutex::new(Plots::new()));
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    // Marks the text of macros as Markdown, which is not escaped again.
    environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown"));
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        let written = match value {
            _ if value.is_none() => out.write_str(NOTHING),
            _ if value.is_safe() => out.write_str(&text),
            _ => out.write_str(&escaped(&text)),
        };
        written.map_err(Into::into)
    });
    filters::add(&mut environment);
    let described = Arc::clone(&plots);
    environment.add_function("plot", move |heading: &str, id: String, arguments: Kwargs| {
        let plot = Plot::deserialize(Value::from(arguments))?;
        let line = format!("![{}]({id})\n", escaped(heading));
        described.lock().unwrap_or_else(PoisonError::into_inner).insert(id, plot);
        Ok(Value::from_safe_string(line))
    });
    environment.add_template("effects", EFFECTS).context("cannot read the template of effects")?;
    let markdown = environment.render_str(template, values).context("cannot write the report")?;
    let plots = std::mem::take(&mut *plots.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((markdown, plots))
}

/// A text as one line that a table can hold.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('|', r"\|").replace('\n', " ")
}

/// Content of a rendered template.
#[derive(Default)]
struct Page {
    title: String,
    machine: Vec<(String, String)>,
    sections: Vec<Section>,
}

impl Page {
    fn read(markdown: &str, draw: Draw<'_>) -> anyhow::Result<Self> {
        let mut page = Self::default();
        for line in markdown.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(title) = line.strip_prefix("# ") {
                title.clone_into(&mut page.title);
            } else if let Some((name, fact)) =
                line.strip_prefix("- ").and_then(|fact| fact.split_once(": "))
            {
                page.machine.push((unescaped(name), unescaped(fact)));
            } else if let Some((id, heading)) =
                line.strip_prefix("## ").and_then(|heading| heading.split_once(": "))
            {
                page.sections.push(Section::new(id, unescaped(heading), Vec::new()));
            } else {
                let section = page.sections.last_mut();
                let parts = &mut section.with_context(|| format!("no section for {line:?}"))?.parts;
                add(parts, line, draw)?;
            }
        }
        Ok(page)
    }
}

/// Adds a line of a section to its parts.
fn add(parts: &mut Vec<Part>, line: &str, draw: Draw<'_>) -> anyhow::Result<()> {
    if let Some(caption) = line.strip_prefix("### ") {
        let caption = unescaped(caption);
        parts.push(Part::Table(Table { caption, heads: Vec::new(), rows: Vec::new() }));
    } else if let Some(row) = line.strip_prefix('|') {
        let Some(Part::Table(table)) = parts.last_mut() else { bail!("no caption for {line:?}") };
        match cells(row) {
            heads if table.heads.is_empty() => table.heads = heads,
            rule if rule.iter().all(|cell| cell == "---") => (),
            row if row.len() != table.heads.len() => bail!("not as many cells as heads: {line:?}"),
            row => table.rows.push(row),
        }
    } else if let Some((heading, id)) =
        line.strip_prefix("![").and_then(|figure| figure.strip_suffix(')')?.split_once("]("))
    {
        parts.push(draw(id, &unescaped(heading)).with_context(|| format!("no figure {id:?}"))?);
    } else {
        parts.push(Part::Remark(unescaped(line)));
    }
    Ok(())
}

/// The cells of a row, without the first `|`.
fn cells(row: &str) -> Vec<String> {
    let (mut cells, mut cell, mut characters) = (Vec::new(), String::new(), row.chars());
    while let Some(character) = characters.next() {
        match character {
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            '\\' => cell.extend(characters.next()),
            other => cell.push(other),
        }
    }
    cells
}

fn unescaped(text: &str) -> String {
    cells(&format!("{text}|")).concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(template: &str, values: &serde_json::Value) -> anyhow::Result<Page> {
        let draw = |id: &str, heading: &str| {
            (id == "known").then(|| Part::Remark(format!("figure {heading}")))
        };
        Page::read(&render(template, values)?.0, &draw)
    }

    #[test]
    fn template_makes_sections_with_tables_figures_and_remarks() {
        let template = "# Title\n- CPU: {{ cpu }}\n\n## a-b: First: heading\n### Of {{ n | count }}\n| | x |\n\
            |---|---|\n{% for row in rows %}\n| {{ row.name }} | {{ row.x | duration }} |\n{% endfor %}\n\n\
            ![A figure](known)\nA remark.\n";
        let rows = json!([{ "name": "a|b\\\nc", "x": 1500.0 }, { "name": "", "x": null }]);
        let page = page(template, &json!({ "cpu": "<AMD>", "n": 20_000, "rows": rows })).unwrap();
        assert_eq!(page.title, "Title");
        assert_eq!(page.machine, [("CPU".to_owned(), "<AMD>".to_owned())]);
        let [Section { id, heading, parts }] = page.sections.as_slice() else { panic!() };
        assert_eq!((id.as_str(), heading.as_str()), ("a-b", "First: heading"));
        let [Part::Table(table), Part::Remark(figure), Part::Remark(remark)] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!(table.caption, "Of 20\u{202f}000");
        assert_eq!(table.heads, ["", "x"]);
        assert_eq!(table.rows, [["a|b\\ c", "1.50\u{202f}µs"], ["", NOTHING]]);
        assert_eq!((figure.as_str(), remark.as_str()), ("figure A figure", "A remark."));
    }

    #[test]
    fn mistakes_in_a_template_are_errors() {
        let templates = [
            "## a: b\n{{ unknown }}",
            "## a: b\n![x](unknown)",
            "a remark before a section",
            "## a: b\n| no | caption |",
            "## a: b\n### c\n| one |\n| one | two |",
        ];
        for template in templates {
            assert!(page(template, &json!({})).is_err(), "{template}");
        }
    }
}
