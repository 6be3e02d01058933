//! `wirestamp send --method live` as people and scripts run it.

use std::process::Command;

use crate::common::{Leftovers, is_root, json, run, stderr, tool};
use serde_json::Value;

/// Sends from the source's interface to the sink's address.
const SEND: &str = "send --method live -i out@wirestamp-source --to 10.77.2.2";
const RECEIVE: &str =
    "send --method live -i tap-b@wirestamp-sink --receive --from 10.77.1.1 --to 10.77.2.2";
const LOOPBACK: [&str; 6] = ["send", "-i", "lo", "--method", "live", "--receive"];

/// Runs a shell script beside a bed, in which `$0` is the binary.
fn beside_a_bed(script: &str) -> Vec<u8> {
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    let output = run(&["lab", "run", "--rate", "1000", "sh", "-c", script, binary]);
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

#[test]
fn live_frames_leave_no_program_behind() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let both = beside_a_bed(&format!(
        r#"
        "$0" -q capture -i tap-a@wirestamp-router --method xdp-pass -s 96 -w - udp port 5004 \
            > /dev/null &
        until ip -n wirestamp-router link show tap-a | grep -q xdp; do :; done
        "$0" -q {SEND} --size 60 --rate 50000 --flows 4 -c 5000 --json
        "$0" -q {SEND} --mac 02:77:00:00:01:02 --rate 1000 --burst 5 -c 10 --json
        kill -INT $!
        wait $!
        "$0" -q {RECEIVE} --rate max -d 0.05 --json
        "#
    ));
    let documents: Vec<Value> =
        serde_json::Deserializer::from_slice(&both).into_iter().map(Result::unwrap).collect();
    let [sent, addressed, received] = &documents[..] else { panic!("{documents:?}") };
    assert_eq!((&sent["sent"], &sent["bytes"]), (&5000.into(), &300_000.into()), "{sent}");
    assert_eq!((&sent["method"], &sent["failed"]), (&"live".into(), &0.into()), "{sent}");
    assert_eq!(sent["destination"], "10.77.2.2:5004");
    assert_eq!((&addressed["sent"], &addressed["bytes"]), (&10.into(), &600.into()), "{addressed}");
    assert_eq!((&sent["burst"], &sent["dropped"]), (&10.into(), &0.into()), "{sent}");
    assert!(sent["elapsed_ns"].as_i64().unwrap() >= 99_800_000, "{sent}");
    assert!(sent["packets_per_second"].as_f64().unwrap() < 50_200.0, "{sent}");
    assert!(sent["latest_ns"].as_i64().unwrap() >= 0, "{sent}");
    assert!(received["sent"].as_u64().unwrap() > 0, "{received}");
    assert_eq!(received.get("latest_ns"), Some(&Value::Null), "{received}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn injected_frames_are_received_on_loopback() {
    if !is_root() {
        return;
    }
    for (address, bytes) in [("127.0.0.1", 300), ("::1", 400)] {
        let ends = ["--from", address, "--to", address];
        let document =
            json(&[&LOOPBACK[..], &ends, &["--rate", "1000", "-c", "5", "--json"]].concat());
        assert_eq!(
            (&document["sent"], &document["bytes"]),
            (&5.into(), &bytes.into()),
            "{document}"
        );
    }
}

#[test]
fn interrupt_prints_the_summary() {
    if !is_root() {
        return;
    }
    // The sender has started when the interface's counters are not zero.
    let message = beside_a_bed(&format!(
        r#"
        ip netns exec wirestamp-router ethtool -K tap-a gro on
        "$0" -q {SEND} --rate 1000 &
        until ip -n wirestamp-source -s link show out | tail -1 | grep -q '[1-9]'; do :; done
        kill -INT $!
        wait $!
        "#
    ));
    let message = String::from_utf8(message).unwrap();
    assert!(
        message.contains(" of live frames to ") && message.contains(" in bursts of 1\n"),
        "{message}"
    );
}

#[test]
fn missing_privileges_are_named() {
    if !is_root() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("wirestamp").tempdir_in("/tmp").unwrap();
    let binary = folder.path().join("wirestamp");
    std::fs::copy(env!("CARGO_BIN_EXE_wirestamp"), &binary).unwrap();
    tool("chmod", &["755", folder.path().to_str().unwrap(), binary.to_str().unwrap()]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.arg(&binary).args(LOOPBACK).args(["--rate", "1", "-c", "1"]);
    let addresses = ["--from", "127.0.0.1", "--to", "127.0.0.1"];
    let output = command.args(addresses).current_dir("/").output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("sudo") && message.contains("cap_bpf,cap_net_admin"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let ends = ["--to", "127.0.0.1", "--from", "127.0.0.1"];
    for wrong in [
        &["--rate", "0"][..],
        &["--rate", "fast"],
        &["--rate", "max", "--burst", "5000"],
        &["--rate", "max", "--size", "59"],
        &["--rate", "max", "--flows", "0"],
        &["--rate", "max", "--mac", "1:2:3"],
        &["--burst", "5"],
    ] {
        let output = run(&[&LOOPBACK[..], &ends, wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
}
