//! All capture and send methods, on kernels older and newer than that of the build machine.

use std::fs;

use wirestamp_lab::{Impairments, TAP_A};

use crate::tools::{attempt, finished, json, listening, wirestamp};

const PREFIX: &str = "methods";
/// The source's interface.
const OUT: &str = "out@methods-source";
const PACKETS: u64 = 50;

/// A named bed, taken down also when the test fails.
struct Bed;

impl Bed {
    fn up() -> Self {
        // Held by its names from here on.
        drop(wirestamp_lab::up(PREFIX, &Impairments::bottleneck(100_000_000, 100_000)).unwrap());
        Self
    }

    /// Sends with one method while it captures with another; returns the result of the capture.
    fn pass(&self, capture: &str, send: &str) -> serde_json::Value {
        let (tap, count) = (format!("{TAP_A}@{PREFIX}-router"), PACKETS.to_string());
        let capture = ["capture", "-i", &tap, "--method", capture, "-c", &count, "--json"];
        let capture = listening(&[&capture[..], &["udp port 5004"]].concat());
        let sent = wirestamp(&Self::send(send));
        assert_eq!(sent["sent"], PACKETS, "{sent:#}");
        json(&finished("wirestamp capture", capture.wait_with_output().unwrap()))
    }

    /// Arguments of `send` for a method.
    fn send(method: &str) -> Vec<&str> {
        let mut send = vec!["send", "-i", OUT, "--to", "10.77.2.2", "-c", "50", "--json"];
        send.extend(["--method", method]);
        send.extend(match method {
            "live" => ["--rate", "1000"].as_slice(),
            _ => &["--pattern", "free", "--size", "200", "--interval", "1ms"],
        });
        send
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        wirestamp_lab::down(PREFIX).unwrap();
    }
}

fn assert_whole(found: &serde_json::Value, how: &str) {
    assert_eq!(found["packets"], PACKETS, "{how}: {found:#}");
    assert_eq!(found["balanced"], true, "{how}: {found:#}");
}

#[test]
fn every_method_captures_all_packets() {
    let bed = Bed::up();
    for method in ["recvmsg", "recvmmsg", "ring", "libpcap", "xdp", "xdp-pass"] {
        assert_whole(&bed.pass(method, "udp"), method);
    }
    if kernel() >= (6, 6) {
        assert_whole(&bed.pass("tc-pass", "udp"), "tc-pass");
        return;
    }
    let tap = format!("{TAP_A}@{PREFIX}-router");
    let output = attempt("wirestamp", &["capture", "-i", &tap, "--method", "tc-pass"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("too old; it needs 6.6 or newer; it supports ring ("), "{said}");
}

#[test]
fn every_method_sends_all_packets() {
    let bed = Bed::up();
    for method in ["udp", "packet", "ring", "xdp"] {
        assert_whole(&bed.pass("ring", method), method);
    }
}

#[test]
fn live_frames_are_sent_if_the_kernel_reports_support() {
    let bed = Bed::up();
    // Since this version the kernel reports the XDP features of a driver.
    if kernel() >= (6, 3) {
        // A veth takes them if its other end has an XDP program.
        assert_whole(&bed.pass("xdp-pass", "live"), "live");
        return;
    }
    let output = attempt("wirestamp", &Bed::send("live"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("reported by Linux 6.3 or newer") && said.lines().count() == 1, "{said}");
}

/// Major and minor version of the kernel.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
