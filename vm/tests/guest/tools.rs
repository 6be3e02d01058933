//! Programs that the guest has.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

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

/// Starts `wirestamp` and waits until it says that it listens.
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

/// What a program printed that has come to a good end.
pub(crate) fn finished(program: &str, output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
