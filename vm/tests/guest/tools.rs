//! Programs that the guest has.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs a program to its end, whatever that is.
pub(crate) fn attempt(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
}

/// Runs a program to an end that has to be good, and gives back what it printed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    finished(program, attempt(program, arguments))
}

/// Runs `wirestamp` to an end that has to be good, and reads its JSON.
pub(crate) fn wirestamp(arguments: &[&str]) -> Value {
    json(&run("wirestamp", arguments))
}

/// What a program printed that has come to a good end.
pub(crate) fn finished(program: &str, output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
