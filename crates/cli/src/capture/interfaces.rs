//! The list of interfaces (`-D`).

use std::process::ExitCode;

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::interface_states;

use crate::output::Output;

/// An interface of the current network namespace.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Interface")]
pub(crate) struct Row {
    /// Its name.
    interface: String,
    /// Whether packets can be captured on it now.
    usable: bool,
    /// Why they cannot. Null if they can.
    reason: Option<String>,
}

pub(super) fn list(output: Output) -> anyhow::Result<ExitCode> {
    let states = interface_states().context("cannot list the interfaces")?;
    let rows: Vec<_> = states
        .into_iter()
        .map(|(interface, state)| {
            let reason = state.err().map(|error| error.to_string());
            Row { interface, usable: reason.is_none(), reason }
        })
        .collect();
    output.result(&rows, |rows| {
        let line = |row: &Row| {
            let state = row.reason.as_deref().unwrap_or("can be captured");
            format!("{:<16} {state}\n", row.interface)
        };
        rows.iter().map(line).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}
