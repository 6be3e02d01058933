//! One interface of a file with several.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::common::{json, run, stderr};

/// A block of pcapng (draft-ietf-opsawg-pcapng section 3.1).
pub(super) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = u32::try_from(12 + body.len() + padding).unwrap().to_ne_bytes();
    [&kind.to_ne_bytes()[..], &length, body, &vec![0; padding], &length].concat()
}

/// The header of a section.
pub(super) fn section() -> Vec<u8> {
    let body = [&0x1a2b_3c4d_u32.to_ne_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &body)
}

/// The description of an interface with raw IP (link type 101).
pub(super) fn interface(name: &str) -> Vec<u8> {
    let mut body = [&101u16.to_ne_bytes()[..], &[0; 2], &65_535u32.to_ne_bytes()].concat();
    body.extend(2u16.to_ne_bytes());
    body.extend(u16::try_from(name.len()).unwrap().to_ne_bytes());
    body.extend(name.as_bytes());
    body.resize(body.len().next_multiple_of(4) + 4, 0);
    block(1, &body)
}

/// A UDP packet of an interface, at a time in microseconds.
pub(super) fn packet(interface: u32, time: u32, port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    let header = [0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let datagram = [&header[..], &[high, low, high, low, 0, 8, 0, 0]].concat();
    let words = [interface, 0, time, 28, 28].map(u32::to_ne_bytes);
    block(6, &[words.as_flattened(), &datagram].concat())
}

/// Two packets of `eth0` to port 1000, one of `eth1` to port 2000.
fn captured() -> (TempDir, PathBuf) {
    let blocks = [
        section(),
        interface("eth0"),
        interface("eth1"),
        packet(0, 10, 1000),
        packet(1, 20, 2000),
        packet(0, 30, 1000),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.pcapng");
    fs::write(&path, blocks.concat()).unwrap();
    (folder, path)
}

#[test]
fn one_interface_of_a_file_is_read() {
    let (_folder, path) = captured();
    let packets = |interface: &str| {
        let name = format!("{}{interface}", path.display());
        json(&["flows", &name, "--json"])["packets"].as_u64()
    };
    assert_eq!(["", "#eth0", "#eth1", "#0", "#1"].map(packets), [3, 2, 1, 2, 1].map(Some));
}

#[test]
fn points_of_one_file_can_be_its_interfaces() {
    let (_folder, path) = captured();
    let [a, b] = ["eth0", "eth1"].map(|name| format!("{}#{name}", path.display()));
    let found = json_of_failure(&["delay", &a, &b, "--json"]);
    assert_eq!((&found["sent"], &found["received"]), (&2.into(), &1.into()), "{found:#}");
}

/// The document of a command that fails, because no packet is at both points.
fn json_of_failure(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&run(arguments).stdout).unwrap()
}

#[test]
fn missing_interface_is_an_error_with_those_that_are_there() {
    let (_folder, path) = captured();
    let output = run(&["flows", &format!("{}#eth7", path.display())]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("no interface eth7; its interfaces: eth0, eth1"), "{message}");
}
