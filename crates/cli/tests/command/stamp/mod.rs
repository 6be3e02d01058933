//! STAMP in a namespace of its own: reflectors of this binary and of others, and senders of this one.

mod answer_rows;
mod lossy_path;
mod own_reflector;
mod scapy;
mod suite;
mod tshark;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use wirestamp_lab::Netns;

use crate::common::{stderr, tool};
use crate::schema;

/// The shared key of both ends. It is not hexadecimal, because some programs also accept hexadecimal keys, and has
/// no line break, which some programs would include in the key.
pub(crate) const SECRET: &str = "both ends have this, no hex";

/// A namespace with nothing but a loopback interface that is up.
pub(crate) fn loopback() -> Netns {
    let namespace = Netns::new().unwrap();
    let up = namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(up.success());
    namespace
}

/// A reflector that runs until it is ended or dropped.
pub(crate) struct Reflector(Child);

impl Reflector {
    /// Runs `wirestamp reflect` at port 862 of any address.
    pub(crate) fn start(namespace: &Netns, arguments: &[&str]) -> Self {
        let mut command = wirestamp(namespace, &["reflect", "--json"]);
        command.args(["--listen", "0.0.0.0", "--listen", "::"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        await_line(child.stderr.as_mut().unwrap(), "reflecting at ");
        Self(child)
    }

    /// Runs another program, which prints a line with `begun` in it when it listens.
    pub(crate) fn foreign(mut command: Command, begun: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        await_line(child.stdout.as_mut().unwrap(), begun);
        Self(child)
    }

    /// Interrupts `wirestamp reflect`, and returns its result.
    pub(crate) fn end(mut self) -> Value {
        tool("kill", &["-INT", &self.0.id().to_string()]);
        let document = self.result();
        schema::check("reflect", &document);
        document
    }

    /// Closes the program's standard input, which ends it, and returns its result.
    pub(crate) fn hang_up(mut self) -> Value {
        drop(self.0.stdin.take());
        self.result()
    }

    fn result(&mut self) -> Value {
        let value = serde_json::from_reader(self.0.stdout.take().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success());
        value
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads until a line contains `begun`. Byte by byte, so that later output stays unread.
fn await_line(message: impl std::io::Read, begun: &str) {
    let mut lines = BufReader::with_capacity(1, message).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(begun)), "it does not begin");
}

fn wirestamp(namespace: &Netns, arguments: &[&str]) -> Command {
    let mut command = namespace.command(env!("CARGO_BIN_EXE_wirestamp"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs `wirestamp stamp` to its end.
pub(crate) fn stamp(namespace: &Netns, arguments: &[&str]) -> Output {
    wirestamp(namespace, &["stamp", "--json"]).args(arguments).output().unwrap()
}

/// Runs `wirestamp stamp`, which must succeed, and parses its JSON.
pub(crate) fn stamped(namespace: &Netns, arguments: &[&str]) -> Value {
    let output = stamp(namespace, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    schema::document("stamp", &output.stdout)
}

/// Writes a file that others may not read; returns its name.
pub(crate) fn key_file(folder: &Path, name: &str, secret: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let file = folder.join(name);
    std::fs::write(&file, secret).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Some counts of a document.
pub(crate) fn counts<const N: usize>(document: &Value, keys: [&str; N]) -> [u64; N] {
    keys.map(|key| document[key].as_u64().unwrap_or_else(|| panic!("{key}: {document}")))
}
