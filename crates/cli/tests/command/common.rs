//! Running the built binary, and checks for leftovers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::schema;

/// Whether the test can run; prints a note if not.
pub(crate) fn is_root() -> bool {
    let root = fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")));
    if !root {
        eprintln!("skipped: needs root");
    }
    root
}

/// The binary under test.
pub(crate) fn wirestamp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirestamp"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    wirestamp(arguments).output().unwrap()
}

/// Runs the binary, which must succeed, and parses its JSON. Checks it against its schema, if there is one.
pub(crate) fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{arguments:?}: {}{message}", stderr(&output));
    let document = serde_json::from_str(&message).unwrap();
    if let Some(schema) = schema::of_command(arguments) {
        schema::check(&schema, &document);
    }
    document
}

/// Runs another program, which must succeed, and returns its output.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The standard error of a run.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Possible leftovers of a run: network namespaces with a process, named namespaces, pinned BPF objects,
/// processes. Compared before and after.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leftovers {
    namespaces: Vec<String>,
    names: Vec<String>,
    pinned: Vec<String>,
    processes: Vec<String>,
}

impl Leftovers {
    pub(crate) fn now() -> Self {
        let mut namespaces = Vec::new();
        let mut processes = Vec::new();
        for process in list("/proc").into_iter().filter(|name| name.parse::<u32>().is_ok()) {
            let of = |file: &str| Path::new("/proc").join(&process).join(file);
            if let Ok(namespace) = fs::read_link(of("ns/net")) {
                namespaces.push(namespace.display().to_string());
            }
            let name = fs::read_to_string(of("comm")).unwrap_or_default();
            if matches!(name.trim(), "wirestamp" | "tcpdump") {
                processes.push(format!("{process} {name}"));
            }
        }
        namespaces.sort();
        namespaces.dedup();
        Self { namespaces, names: list("/run/netns"), pinned: list("/sys/fs/bpf"), processes }
    }
}

fn list(folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}
