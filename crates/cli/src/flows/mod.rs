//! `wirestamp flows`.

mod arguments;
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
    output.result(&document, |document| text::of(document, arguments.top))?;
    Ok(if document.is_balanced() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
