//! `wirestamp flows`.

mod arguments;
mod calls;
mod delivery;
mod document;
mod encapsulations;
mod file;
mod live;
mod parties;
mod rtcp;
mod screen;
mod text;
mod transport_streams;
mod video;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

pub(crate) use arguments::Arguments;
pub(crate) use document::Document;
use ratatui::crossterm::terminal;
use wirestamp_results::Table;

use crate::files::check_outputs;
use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let source = arguments.source()?;
    let outputs =
        [("--csv", arguments.csv.as_deref()), ("--parquet", arguments.parquet.as_deref())];
    check_outputs(&outputs, source.files())?;
    let mut document = match source {
        arguments::Source::Files(paths) => file::run(&paths, arguments)?,
        arguments::Source::Interface(target) => live::run(target, arguments, output)?,
    };
    arguments.parties.select(&mut document);
    document.remarks.iter().for_each(|remark| output.remark(remark));
    let written = write(&document, arguments);
    // Print the result even if the tables could not be written.
    output.result(&document, |document| {
        text::of(document, arguments.top, output.verbose, terminal_width())
    })?;
    written?;
    Ok(if document.is_balanced() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Width of standard output in characters, if it is a terminal.
fn terminal_width() -> Option<usize> {
    let (columns, _) = io::stdout().is_terminal().then(terminal::size)?.ok()?;
    Some(columns.into())
}

fn write(document: &Document, arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { csv, parquet, .. } = arguments;
    if csv.is_some() || parquet.is_some() {
        let table = Table::of_flows(&document.flows);
        csv.as_deref().map_or(Ok(()), |path| table.write_csv(path))?;
        parquet.as_deref().map_or(Ok(()), |path| table.write_parquet(path))?;
    }
    Ok(())
}
