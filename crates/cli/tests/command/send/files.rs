//! `wirestamp send`: the packets on the wire, and the report about them.

use std::fs;
use std::path::Path;

use crate::common::{is_root, run, stderr, tool};
use serde_json::Value;
use tempfile::TempDir;

/// Captures 50 packets at the end of a bed's path into `$1/$2.pcapng`, while they are sent.
const SCRIPT: &str = r#"
    set -e
    folder=$1 name=$2
    shift 2
    mkfifo "$folder/$name.message"
    "$0" capture -i tap-b@wirestamp-sink -w "$folder/$name.pcapng" -c 50 "udp port 5004" \
        2> "$folder/$name.message" > /dev/null &
    exec 3< "$folder/$name.message"
    read -r listening <&3
    "$0" send -q -i out@wirestamp-source --json "$@" > "$folder/$name.json"
    wait $!
"#;

/// Sends 50 packets across a bed, and returns the report of the sender.
fn send(folder: &TempDir, name: &str, arguments: &[&str]) -> Value {
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    let path = folder.path().to_str().unwrap();
    let script = ["lab", "run", "--rate", "1000", "sh", "-c", SCRIPT, binary, path, name];
    let output = run(&[&script[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&read(folder.path(), &format!("{name}.json"))).unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// These fields of every packet captured, as tshark reads them with all checksums checked.
fn fields(folder: &TempDir, name: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let file = folder.path().join(format!("{name}.pcapng")).to_str().unwrap().to_owned();
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let mut arguments = vec!["-r", &file, "-T", "fields"];
    arguments.extend(checks);
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let lines = tool("tshark", &arguments);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn all_methods_send_the_same_packets() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let same =
        ["frame.len", "udp.dstport", "udp.length", "ip.src", "ip.ttl", "ip.id", "ip.flags.df"];
    let same =
        [&same[..], &["ip.dsfield.dscp", "ipv6.src", "ipv6.hlim", "ipv6.tclass.dscp"]].concat();
    for (version, to) in [(4, "10.77.2.2"), (6, "fd77:2::2")] {
        let pattern = ["--pattern", "free", "--size", "301", "--interval", "1ms", "-c", "50"];
        let send = |method: &str| {
            let name = format!("{method}{version}");
            let found = send(
                &folder,
                &name,
                &[&["--to", to, "--dscp", "46", "--method", method], &pattern[..]].concat(),
            );
            assert_eq!(
                (&found["sent"], &found["bytes"]),
                (&50.into(), &15_050.into()),
                "{found:#}"
            );
            let mode: Value = if method == "xdp" { "copy".into() } else { Value::Null };
            assert_eq!((&found["method"], &found["mode"]), (&method.into(), &mode));
            name
        };
        let expected = fields(&folder, &send("udp"), &same);
        assert_eq!(expected.len(), 50);
        for method in ["packet", "ring", "xdp"] {
            let name = send(method);
            assert_eq!(fields(&folder, &name, &same), expected, "{name}");
            for status in fields(&folder, &name, &["udp.checksum.status", "ip.checksum.status"]) {
                let good = if version == 4 { ["1", "1"] } else { ["1", ""] };
                assert_eq!(status, good, "{name}");
            }
        }
    }
}

#[test]
fn log_packets_and_report_agree() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("sent.csv").to_str().unwrap().to_owned();
    let arguments =
        ["--to", "10.77.2.2", "--pattern", "free", "--size", "200", "--interval", "1ms"];
    let more = ["-c", "50", "--method", "packet", "--tx-stamps", "--log", &log];
    let found = send(&folder, "logged", &[&arguments[..], &more].concat());
    let payloads = fields(&folder, "logged", &["udp.payload"]);
    let log = fs::read_to_string(&log).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("sequence,intended,actual,sched,software,hardware"));
    let mut software = 0;
    for (line, payload) in lines.zip(&payloads) {
        // Sequence, intended and actual time are bytes 8 to 31 of the payload.
        let number = |at: usize| {
            i64::from_str_radix(&payload[0][2 * at..2 * at + 16], 16).unwrap().to_string()
        };
        let line: Vec<_> = line.split(',').collect();
        assert_eq!(line[..3], [number(8), number(16), number(24)]);
        assert!(line[3] <= line[4] && line[5].is_empty(), "{line:?}");
        software += 1;
    }
    assert_eq!((payloads.len(), software), (50, 50));
    let stamps = &found["tx_stamps"];
    for kind in ["sched", "software"] {
        let kind = &stamps[kind];
        assert_eq!((&kind["count"], &kind["missing"]), (&50.into(), &0.into()), "{stamps:#}");
        assert_eq!(
            (&kind["since_intended_ns"]["count"], &kind["since_actual_ns"]["count"]),
            (&50.into(), &50.into())
        );
    }
    assert_eq!(stamps["hardware"], Value::Null);
    assert!(stamps["unavailable"]["hardware"].as_str().unwrap().contains("ethtool -T out"));
    assert!(found["clock_error_ns"].as_i64() > Some(0), "{found:#}");
}

#[test]
fn replay_sends_the_captured_frames() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pattern = ["--to", "10.77.2.2", "--pattern", "free", "--size", "99", "--interval", "2ms"];
    send(&folder, "first", &[&pattern[..], &["-c", "50", "--method", "packet"]].concat());
    // The path has counted the time to live down and put its own hardware addresses in.
    let file = folder.path().join("first.pcapng").to_str().unwrap().to_owned();
    let rewritten = folder.path().join("again.pcap").to_str().unwrap().to_owned();
    tool("tcpdump", &["-r", &file, "-w", &rewritten]);
    let mut bytes = fs::read(&rewritten).unwrap();
    for packet in bytes[24..].chunks_mut(16 + 99) {
        packet[16..22].copy_from_slice(&[0x02, 0x77, 0, 0, 0x01, 0x02]);
    }
    fs::write(&rewritten, bytes).unwrap();
    let first = fields(&folder, "first", &["udp.payload"]);
    for (method, more) in [("packet", &[][..]), ("xdp", &["--method", "xdp"])] {
        let replay = ["--replay", &rewritten, "--speed", "2"];
        let found = send(&folder, method, &[&replay[..], more].concat());
        assert_eq!((&found["sent"], &found["method"]), (&50.into(), &method.into()));
        assert_eq!(found["replay"]["time_went_back"], 0);
        assert_eq!(found["pacing_error_ns"]["count"], 50);
        assert_eq!(fields(&folder, method, &["udp.payload"]), first, "{method}");
    }
}

#[test]
fn conflicting_options_fail_with_one_line() {
    let voip = ["--to", "127.0.0.1", "--pattern", "voip"];
    let live = ["--to", "127.0.0.1", "--method", "live", "--rate", "max"];
    let cases: [(&[&str], i32, &str); 20] = [
        (&["--replay", "x", "--pattern", "voip"], 2, "--pattern conflicts with --replay"),
        (&["--replay", "x", "--mac", "02:00:00:00:00:01"], 2, "--mac conflicts with --replay"),
        (&["--replay", "x", "--method", "udp"], 2, "use packet, ring or xdp"),
        (
            &[&voip[..], &["--mac", "02:00:00:00:00:01"]].concat(),
            2,
            "--mac conflicts with --method udp",
        ),
        (&[&voip[..], &["--qdisc-bypass"]].concat(), 2, "use packet, ring or xdp"),
        (&[&voip[..], &["--speed", "2"]].concat(), 2, "requires --replay"),
        (&[&voip[..], &["--queue", "1"]].concat(), 2, "--queue requires --method xdp"),
        (&[&voip[..], &["--method", "xdp", "--tx-stamps"]].concat(), 2, "use udp, packet or ring"),
        (&[&voip[..], &["--rate", "max"]].concat(), 2, "--rate requires --method live"),
        (&[&voip[..], &["--flows", "2"]].concat(), 2, "--flows requires --method live"),
        (&[&voip[..], &["--burst", "2"]].concat(), 2, "--burst requires --method live"),
        (&[&voip[..], &["--from", "127.0.0.1"]].concat(), 2, "--from requires --method live"),
        (
            &[&live[..], &["--pattern", "voip"]].concat(),
            2,
            "--pattern conflicts with --method live",
        ),
        (&[&live[..], &["--interval", "1ms"]].concat(), 2, "--interval conflicts with"),
        (&[&live[..], &["--tx-stamps"]].concat(), 2, "--tx-stamps conflicts with"),
        (&[&live[..], &["--replay", "x"]].concat(), 2, "--replay conflicts with"),
        (&["--to", "127.0.0.1"], 2, "--pattern, --replay FILE or --method live"),
        (&["--replay", "/dev/null"], 1, "it is empty"),
        (&["--replay", "/nowhere"], 1, "cannot read /nowhere"),
        (&[&voip[..], &["--log", "/nowhere/log"]].concat(), 1, "cannot write /nowhere/log"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(&[&["send", "-i", "lo"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    }
}
