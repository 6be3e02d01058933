//! Live measurements of `wirestamp delay`, at both points or at one.

use std::fs;

use crate::common::{Leftovers, is_root, run, stderr};
use crate::schema;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn pipes_and_files_are_measured_against_interfaces() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    check_pipe_against_interface();
    check_file_against_interface();
    assert_eq!(Leftovers::now(), before);
}

/// Packets in flight when the captures open and close are excluded from loss.
#[test]
fn ongoing_traffic_has_no_edge_losses() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = in_lab(
        r#"
        cd "$1"
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 500us -d 600 > sent &
        sending=$!
        "$0" -q capture -i tap-b@wirestamp-sink -w first.pcapng -c 10 udp > summary
        "$0" delay tap-a@wirestamp-router tap-b@wirestamp-sink --filter udp --duration 0.5 \
            --timeout 300 --json > found 2> message
        kill -INT $sending
        wait $sending
        "#,
    );
    let found = found(&folder);
    assert!(found["matched"].as_u64() > Some(100), "{found:#}");
    assert_eq!((&found["lost"], &found["unexpected"]), (&0.into(), &0.into()), "{found:#}");
    assert_eq!(Leftovers::now(), before);
}

/// The router sends out what it forwards, and by default only received packets are captured.
#[test]
fn loss_is_unknown_if_b_only_sends() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = in_lab(
        r#"
        cd "$1"
        mkfifo delay
        "$0" delay tap-a@wirestamp-router bottleneck@wirestamp-router --filter udp --timeout 300 \
            --json --csv rows.csv > found 2> delay &
        measuring=$!
        exec 3< delay
        grep -q -m1 Ctrl-C <&3
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 1ms -c 50 > sent
        kill -INT $measuring
        ! wait $measuring
        "#,
    );
    let found = found(&folder);
    assert_eq!((&found["sent"], &found["lost"]), (&50.into(), &Value::Null), "{found:#}");
    let reason = found["lost_reason"].as_str().unwrap();
    assert!(reason.contains("-Q inout"), "{reason}");
    let rows = fs::read_to_string(folder.path().join("rows.csv")).unwrap();
    assert_eq!(rows.matches("undetermined").count(), 50, "{rows}");
    assert_eq!(Leftovers::now(), before);
}

/// Runs a script in a lab, where `$0` is the binary and `$1` a folder.
fn in_lab(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = run(&["lab", "run", "sh", "-euc", script, env!("CARGO_BIN_EXE_wirestamp"), path]);
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

fn found(folder: &TempDir) -> Value {
    let found = fs::read_to_string(folder.path().join("found")).unwrap();
    let found = serde_json::from_str(&found).unwrap_or_else(|_| {
        panic!("{found}{}", fs::read_to_string(folder.path().join("message")).unwrap_or_default())
    });
    schema::check("delay", &found);
    found
}

fn check_pipe_against_interface() {
    let folder = in_lab(
        r#"
        cd "$1"
        mkfifo packets delay capture
        "$0" delay - tap-b@wirestamp-sink --filter udp --timeout 300 --json \
            < packets > found 2> delay &
        measuring=$!
        "$0" capture -i tap-a@wirestamp-router -w - -c 50 udp > packets 2> capture &
        exec 3< delay 4< capture
        grep -q -m1 Ctrl-C <&3
        grep -q -m1 Ctrl-C <&4
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 1ms -c 50 > sent
        wait $measuring
        "#,
    );
    let found = found(&folder);
    assert_eq!((&found["sent"], &found["matched"]), (&50.into(), &50.into()), "{found:#}");
    assert_eq!((&found["lost"], &found["unexpected"]), (&0.into(), &0.into()));
    assert!(found["clock_error_ns"].as_i64() > Some(0), "one machine: {found:#}");
    assert!(found["skew_reason"].as_str().unwrap().contains("the same clock"));
    assert!(found["owd_ns"]["min"].as_i64() > Some(0));
}

fn check_file_against_interface() {
    let folder = in_lab(
        r#"
        cd "$1"
        mkfifo capture delay
        "$0" capture -i tap-a@wirestamp-router -w a.pcapng -c 50 udp > summary 2> capture &
        capturing=$!
        exec 4< capture
        grep -q -m1 Ctrl-C <&4
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 1ms -c 50 > sent
        wait $capturing
        "$0" delay a.pcapng tap-b@wirestamp-sink --align --filter udp --json > found 2> delay &
        measuring=$!
        exec 3< delay
        grep -q -m1 Ctrl-C <&3
        "$0" send -q -i out@wirestamp-source --replay a.pcapng > replayed
        kill -INT $measuring
        wait $measuring
        "#,
    );
    let found = found(&folder);
    assert_eq!((&found["sent"], &found["matched"]), (&50.into(), &50.into()), "{found:#}");
    assert_eq!(found["owd_ns"], Value::Null);
    assert!(found["pdv_ns"]["max"].as_i64() > Some(0), "{found:#}");
    assert!(found["offset_removed_ns"].as_i64() > Some(0), "sent again later");
}
