//! `wirestamp flows`.

mod arguments;
mod columns;
mod document;
mod file;
mod live;
mod text;

use std::process::ExitCode;

pub(crate) use arguments::Arguments;

use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let document = match arguments.source()? {
        arguments::Source::File(path) => file::run(path, arguments)?,
        arguments::Source::Interface(target) => live::run(target, arguments, output)?,
    };
    document.remarks.iter().for_each(|remark| output.remark(remark));
    if arguments.csv.is_some() || arguments.parquet.is_some() {
        let table = columns::table(&document.flows);
        arguments.csv.as_deref().map_or(Ok(()), |path| table.write_csv(path))?;
        arguments.parquet.as_deref().map_or(Ok(()), |path| table.write_parquet(path))?;
    }
    output.result(&document, |document| text::of(document, arguments.top))?;
    Ok(if document.is_balanced() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
