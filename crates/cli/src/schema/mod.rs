//! `wirestamp schema`: the JSON schema of the document that a command prints with `--json`.
//!
//! A schema is generated from the types that are serialised, with their documentation as descriptions.

mod commands;
mod plain;

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::output::Output;
use commands::{COMMANDS, DocumentedCommand};

#[derive(Args)]
#[command(after_help = "Example:\n  \
    wirestamp schema flows > flows.schema.json\n  \
    wirestamp flows calls.pcapng --json > flows.json\n  \
    check-jsonschema --schemafile flows.schema.json flows.json")]
pub(crate) struct Arguments {
    /// The command; without it, list the commands that have a schema
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    command: Option<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|it| it.name)
}

/// Commands whose documents have a schema.
#[derive(Serialize, JsonSchema)]
pub(crate) struct List {
    /// The commands.
    commands: Vec<Item>,
}

/// A command whose document has a schema.
#[derive(Serialize, JsonSchema)]
struct Item {
    /// Name of the schema: the argument of `wirestamp schema`.
    name: &'static str,
    /// The command that prints the document.
    command: String,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Some(name) = &arguments.command else {
        let item = |it: &DocumentedCommand| Item { name: it.name, command: it.line() };
        output.result(&List { commands: COMMANDS.iter().map(item).collect() }, text)?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(command) = COMMANDS.iter().find(|it| it.name == name) {
        // A schema is JSON with and without --json.
        Output { json: true, ..output }.result(&schema(command), |_| String::new())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The schema of a command's document (JSON Schema, draft 2020-12).
fn schema(command: &DocumentedCommand) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = (command.schema)(settings.with_transform(plain::plain).into_generator());
    schema.insert("title".to_owned(), command.line().into());
    schema
}

fn text(list: &List) -> String {
    let width = names().map(str::len).max().unwrap_or(0);
    let line = |it: &Item| format!("{:width$}  {}\n", it.name, it.command);
    list.commands.iter().map(line).collect()
}
