//! Output and files of a run: tables, figures, verdicts, and the page with all of
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use maud::{DOCTYPE, PreEscaped, html};
use serde::Serialize;
use wirestamp_report::Circumstances;

use crate::busy::busy_cores;
use crate::host_memory;

/// A target, and whether it holds.
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) text: String,
}

/// A figure with its caption.
pub(crate) struct Figure {
    pub(crate) svg: String,
    pub(crate) caption: String,
}

/// All results.
pub(crate) struct Results {
    folder: PathBuf,
    pub(crate) said: String,
    pub(crate) figures: Vec<Figure>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Results {
    /// Prints the machine of the run, and the CPU load of other processes.
    pub(crate) fn begin(folder: &Path) -> anyhow::Result<Self> {
        let (folder, said) = (folder.to_owned(), String::new());
        let mut results = Self { folder, said, figures: Vec::new(), verdicts: Vec::new() };
        let here = Circumstances::here();
        let busy_cores_before = busy_cores(Duration::from_secs(1));
        let Circumstances { date, kernel, processor, clocksource, command, .. } = &here;
        results.say(&format!(
            "{date} UTC; Linux {kernel}, keeps time by {clocksource}; {processor}\n{command}\n\
             Others kept {busy_cores_before:.2} cores busy before the run.\n"
        ));
        if let Some(warning) = host_memory::warning() {
            results.say(&warning);
        }
        let document = serde_json::json!({ "run": here, "busy_cores_before": busy_cores_before });
        results.write("circumstances.json", &serde_json::to_string_pretty(&document)?)?;
        Ok(results)
    }

    /// Prints lines, and adds them to the page.
    pub(crate) fn say(&mut self, text: &str) {
        println!("{text}");
        self.said += text;
        self.said.push('\n');
    }

    /// A table below its caption, its columns as wide as they have to be.
    pub(crate) fn table(&mut self, caption: &str, heads: &[String], rows: &[Vec<String>]) {
        let lines = || std::iter::once(heads).chain(rows.iter().map(Vec::as_slice));
        let width = |column| {
            let cells = lines().filter_map(|line: &[String]| line.get(column));
            cells.map(|cell: &String| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..heads.len()).filter_map(width).collect();
        let mut text = format!("{caption}\n");
        for line in lines() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                // Names to the left, numbers to the right.
                text += &match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            text.push('\n');
        }
        self.say(&text);
    }

    /// One row for each measurement, with the names of the fields above.
    pub(crate) fn csv<T: Serialize>(&self, name: &str, rows: &[T]) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        let mut writer = csv::Writer::from_path(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        rows.iter().try_for_each(|row| writer.serialize(row))?;
        Ok(writer.flush()?)
    }

    /// Writes a figure to a file, and adds it to the page.
    pub(crate) fn figure(&mut self, name: &str, svg: String, caption: &str) -> anyhow::Result<()> {
        self.write(name, &svg)?;
        self.figures.push(Figure { svg, caption: caption.to_owned() });
        Ok(())
    }

    pub(crate) fn verdict(&mut self, holds: bool, text: String) {
        self.verdicts.push(Verdict { holds, text });
    }

    /// Prints the verdicts and writes the page.
    pub(crate) fn finish(mut self, interrupted: bool) -> anyhow::Result<()> {
        let mark = |holds| if holds { "holds" } else { "DOES NOT HOLD" };
        let lines = self.verdicts.iter().map(|v| format!("{:<13}  {}\n", mark(v.holds), v.text));
        let mut text: String = lines.collect();
        if interrupted {
            text += "Interrupted: this is the part that was measured.\n";
        }
        self.say(&text);
        self.write("index.html", &html(&self))?;
        println!("{}", self.folder.join("index.html").display());
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

const STYLE: &str = "body { font: 16px/1.5 sans-serif; max-width: 66rem; margin: 2rem auto; \
    padding: 0 1rem; color: #333d4a; } pre { font-size: 0.8rem; overflow-x: auto; } \
    figure { margin: 2rem 0; } svg { max-width: 100%; height: auto; } \
    .holds::before { content: \"holds: \"; color: #006b4f; } \
    .fails::before { content: \"does not hold: \"; color: #d53e00; font-weight: bold; }";

fn html(results: &Results) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Capture tools side by side" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Capture tools side by side" }
                ul {
                    @for Verdict { holds, text } in &results.verdicts {
                        li class=(if *holds { "holds" } else { "fails" }) { (text) }
                    }
                }
                @for Figure { svg, caption } in &results.figures {
                    figure { (PreEscaped(svg)) figcaption { (caption) } }
                }
                pre { (results.said) }
            }
        }
    };
    page.into_string()
}
