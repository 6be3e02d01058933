//! Live measurements of `wirestamp delay`, at both points or at one.

use std::fs;
use std::process::Command;

use crate::common::{Leftovers, is_root, run, stderr};
use crate::delay::{Classic, sent};
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

/// Packets that B's capture has not delivered yet when Ctrl-C ends the measurement.
#[test]
fn packets_on_the_way_at_ctrl_c_are_not_lost() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = in_lab(
        r#"
        cd "$1"
        mkfifo packets
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 500us -d 600 > sent &
        sending=$!
        "$0" capture -i tap-b@wirestamp-sink -w - udp > packets 2> capture &
        capturing=$!
        "$0" delay tap-a@wirestamp-router - --filter udp --timeout 300 --json \
            < packets > found 2> message &
        measuring=$!
        "$0" -q capture -i tap-b@wirestamp-sink -w first.pcapng -c 3000 udp > summary
        kill -INT $measuring
        wait $measuring
        kill -INT $sending $capturing || :
        wait $sending $capturing || :
        "#,
    );
    let found = found(&folder);
    assert!(found["matched"].as_u64() > Some(100), "{found:#}");
    assert_eq!((&found["lost"], &found["unexpected"]), (&0.into(), &0.into()), "{found:#}");
    assert!(found["given_up_sent"].as_u64() > Some(0), "{found:#}");
    assert_eq!(Leftovers::now(), before);
}

/// The pipe of B delivers the first packets only, and stays open.
#[test]
fn packets_that_the_pipe_has_not_delivered_are_not_lost() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = in_lab(
        r#"
        cd "$1"
        mkfifo packets delay capture
        "$0" delay tap-a@wirestamp-router - --filter udp --timeout 20 --json \
            < packets > found 2> delay &
        measuring=$!
        exec 5> packets
        "$0" capture -i tap-b@wirestamp-sink -w - -c 10 udp >&5 2> capture &
        capturing=$!
        exec 3< delay 4< capture
        grep -q -m1 Ctrl-C <&3
        grep -q -m1 Ctrl-C <&4
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 300 \
            --interval 1ms -c 500 > sent
        wait $capturing
        kill -INT $measuring
        wait $measuring
        "#,
    );
    let found = found(&folder);
    assert_eq!((&found["lost"], &found["unexpected"]), (&0.into(), &0.into()), "{found:#}");
    assert!(found["given_up_sent"].as_u64() > Some(400), "{found:#}");
    assert_eq!(Leftovers::now(), before);
}

/// A tunnel between the points: B observes the packets of A inside of VXLAN.
#[test]
fn rule_is_chosen_by_the_first_packets() {
    if !is_root() {
        return;
    }
    let (folder, found) = through_vxlan(250, &[]);
    assert_eq!(found["match_rule"], "inner", "{found:#}");
    assert!(found["matched"].as_u64() > Some(50), "{found:#}");
    assert_eq!((&found["lost"], &found["unexpected"]), (&0.into(), &0.into()), "{found:#}");
    assert!(
        found["sent"].as_u64() < Some(150),
        "the packets of the trial are not in it: {found:#}"
    );
    let message = fs::read_to_string(folder.path().join("message")).unwrap();
    assert!(message.contains("--match inner recognises"), "{message}");
    let rows = fs::read_to_string(folder.path().join("rows.csv")).unwrap();
    let rows = rows.lines().filter(|line| line.starts_with("matched")).count();
    assert_eq!(u64::try_from(rows).unwrap(), found["matched"].as_u64().unwrap());
}

#[test]
fn rule_of_match_is_used_from_the_first_packet() {
    if !is_root() {
        return;
    }
    let (_, found) = through_vxlan(30, &["--match", "inner"]);
    assert_eq!((&found["matched"], &found["lost"]), (&30.into(), &0.into()), "{found:#}");
    let (folder, found) = through_vxlan(30, &[]);
    assert_eq!((&found["match_rule"], &found["lost"]), (&"packet".into(), &Value::Null));
    let message = fs::read_to_string(folder.path().join("message")).unwrap();
    assert!(message.contains("--match inner recognises 30 of 30 packets"), "{message}");
}

/// Measures this number of packets, one every 20 ms, before and behind the entry of a tunnel.
fn through_vxlan(packets: u32, options: &[&str]) -> (TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    let packets = Classic::packets((0..packets).map(|number| (sent(number), number)));
    fs::write(folder.path().join("a.pcap"), packets.0).unwrap();
    let script = r#"
        cd "$1"
        shift
        ip link add v1 type veth peer name v2
        ip addr add 10.9.0.1/24 dev v1
        ip link set v1 up
        ip link set v2 up
        ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev v1
        # The tunnel carries no packet of the kernel, which the filter would capture at B only.
        echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
        ip link add x0 type vxlan id 7 remote 10.9.0.2 dstport 4789 dev v1
        ip link set x0 up
        mkfifo delay
        "$0" delay x0 v2 -Q inout --filter udp --timeout 500 --json --csv rows.csv "$@" \
            > found 2> delay &
        measuring=$!
        exec 3< delay
        grep -q -m1 Ctrl-C <&3
        "$0" send -q -i x0 --replay a.pcap > replayed
        kill -INT $measuring
        wait $measuring || :
        cat <&3 > message
        "#;
    let path = folder.path().to_str().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-euc", script, env!("CARGO_BIN_EXE_wirestamp"), path]);
    let output = command.args(options).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = found(&folder);
    (folder, found)
}

/// Runs a script in a lab, where `$0` is the binary and `$1` a folder. Its queue also holds what a sender makes up for that had
/// no core for a second.
fn in_lab(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let lab = ["lab", "run", "--rate", "1000", "--queue", "1000000", "sh", "-euc"];
    let output = run(&[&lab[..], &[script, env!("CARGO_BIN_EXE_wirestamp"), path]].concat());
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
