//! Programs that the guest has.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Runs a program to its end, successful or not.
pub(crate) fn attempt(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
}

/// Runs a program that must succeed; returns its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    finished(program, attempt(program, arguments))
}

/// Runs `wirestamp`, which must succeed; returns its JSON.
pub(crate) fn wirestamp(arguments: &[&str]) -> Value {
    json(&run("wirestamp", arguments))
}

/// Starts `wirestamp` and waits for its message that it listens.
pub(crate) fn listening(arguments: &[&str]) -> Child {
    let mut command = Command::new("wirestamp");
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.as_mut().unwrap());
    while !said.contains("Ctrl-C") {
        let ended = stderr.read_line(&mut said).unwrap() == 0;
        assert!(!ended, "{arguments:?} ended before it listened: {said}");
    }
    child
}

/// Output of a program that must have succeeded.
pub(crate) fn finished(program: &str, output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
