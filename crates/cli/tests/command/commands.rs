//! Commands with valid and invalid arguments.

use std::fs;
use std::process::Stdio;

use crate::common::{Leftovers, is_root, json, run, stderr, tool, wirestamp};
use crate::schema;
use serde_json::Value;

const DISTRIBUTION: [&str; 9] =
    ["count", "min", "mean", "stddev", "p50", "p90", "p99", "p999", "max"];

fn assert_keys(document: &Value, keys: &[&str]) {
    for key in keys {
        assert!(document.get(key).is_some(), "no {key} in {document:#}");
    }
}

#[test]
fn clock_lists_sources_and_the_selected_one() {
    let found = json(&["clock", "--duration", "0.3", "--json"]);
    assert_keys(&found, &["selected", "sources", "rate_error_ppm", "error_ns"]);
    let keys = ["name", "available", "reason", "frequency_hz", "granularity_ns", "cost_ns"];
    for source in found["sources"].as_array().unwrap() {
        assert_keys(source, &keys);
    }
    let other = json(&["clock", "--duration", "0.1", "--source", "os", "--json"]);
    assert_eq!(other["selected"], "os");
    let text = run(&["clock", "--duration", "0.01"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains('*'), "nothing is selected");
}

#[test]
#[cfg(feature = "studies")]
fn timers_study_reports_the_papers_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new").to_str().unwrap().to_owned();
    let found = json(&["study", "timers", "--rounds", "2", "--json", "-o", &path]);
    assert_keys(&found, &["date", "kernel", "processor", "clocksource", "command", "paper"]);
    assert_eq!(found["published"][0]["costs"][0]["mean"], 38.231);
    assert_eq!((&found["rounds"], &found["interrupted"]), (&2.into(), &false.into()));
    let ways = found["ways"].as_array().unwrap();
    for timer in ["TSC Timer", "HPET Timer", "OS Timer"] {
        let way = ways.iter().find(|way| way["timer"] == timer).unwrap();
        if way["filtered"].is_null() {
            assert_ne!(way["reason"], "", "{timer}");
            continue;
        }
        for cost in ["filtered", "unfiltered"] {
            assert_keys(&way[cost], &DISTRIBUTION);
        }
        assert_eq!(way["unfiltered"]["count"], 20_000);
        assert!(way["filtered"]["mean"].as_f64() <= way["unfiltered"]["mean"].as_f64(), "{way:#}");
    }
    let page = fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    assert!(page.contains("<svg") && page.contains("38.231"), "no figures beside the paper's");
    let text = run(&["study", "timers", "--rounds", "1"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("598.72 ± 76.015") && text.contains("Linux"), "{text}");
}

/// A named test bed, removed on drop.
struct Bed;

impl Bed {
    fn up() -> Self {
        let bed = json(&["lab", "up", "--json"]);
        assert_eq!(bed["tap_b"]["namespace"], "wirestamp-sink");
        Self
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        run(&["lab", "down"]);
    }
}

/// Starts a command and waits until it is running.
fn listening(arguments: &[&str]) -> std::process::Child {
    let mut child =
        wirestamp(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let message = std::io::BufReader::new(child.stderr.as_mut().unwrap());
    let mut lines = std::io::BufRead::lines(message).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("Ctrl-C")), "it ended before it listened");
    child
}

#[test]
fn send_capture_and_delay_agree_across_a_test_bed() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let bed = Bed::up();
    let delay = listening(&["delay", "tap-a@wirestamp-router", "tap-b@wirestamp-sink", "--json"]);
    let capture = ["capture", "-i", "tap-b@wirestamp-sink", "--method", "xdp-pass"];
    let capture = listening(&[&capture[..], &["--json", "-c", "50", "udp port 7000"]].concat());
    let send = ["send", "-i", "out@wirestamp-source", "--to", "fd77:2::2", "--port", "7000"];
    let pattern = ["--pattern", "free", "--size", "300", "--interval", "1ms", "-c", "50"];
    let sent = json(&[&send[..], &pattern, &["--json"]].concat());
    assert_keys(&sent, &["sent", "bytes", "pacing_error_ns"]);
    assert_keys(&sent["pacing_error_ns"], &DISTRIBUTION);
    assert_eq!((&sent["sent"], &sent["bytes"]), (&50.into(), &15_000.into()));
    assert!(sent["pacing_error_ns"]["min"].as_i64() >= Some(0), "sent before its time");

    let captured = capture.wait_with_output().unwrap();
    let captured = schema::document("capture", &captured.stdout);
    assert_keys(&captured, &["interface", "method", "stamp", "dropped", "interarrival_ns"]);
    assert_eq!((&captured["packets"], &captured["bytes"]), (&50.into(), &15_000.into()));
    let mean = captured["interarrival_ns"]["mean"].as_f64().unwrap();
    // What the sender was late with the first and the last packet is not an error of the stamps.
    let pacing = &sent["pacing_error_ns"];
    let late = pacing["max"].as_f64().unwrap() - pacing["min"].as_f64().unwrap();
    let allowed = 2e5 + late / 49.0;
    assert!((mean - 1e6).abs() < allowed, "{mean} ns between packets every millisecond, {pacing}");

    tool("kill", &["-INT", &delay.id().to_string()]);
    let found = delay.wait_with_output().unwrap();
    let found = schema::document("delay", &found.stdout);
    assert_keys(&found, &["sent", "received", "matched", "lost", "duplicated", "reordered"]);
    assert_keys(&found["owd_ns"], &DISTRIBUTION);
    assert_eq!((&found["matched"], &found["lost"]), (&50.into(), &0.into()));
    assert_eq!(found["flows"].as_array().unwrap().len(), 1);
    assert!(found["clock_error_ns"].as_i64() > Some(0), "{found:#}");
    drop(bed);
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn invalid_arguments_are_rejected_with_a_next_step() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["capture", "-i", "no-such-if"], 1, "ip link"),
        (&["capture", "-i", "lo", "--stamp", "xdp"], 2, "it has kernel, raw, hardware"),
        (&["capture", "-i", "lo", "udp prot 1"], 2, "pcap-filter"),
        (&["capture", "-i", "lo", "-w", "-", "--json"], 2, "write the packets to a file"),
        (&["flows", "lo"], 2, "flows -i lo"),
        (&["extcap", "install", "--dir", "/no/such/folder"], 2, "mkdir -p"),
        (&["flows"], 2, "FILE, or an interface with -i"),
        (&["delay", "/dev/null", "no-such-b"], 1, "neither a file nor an interface"),
        (&["delay", "/dev/null", "lo", "--align"], 2, "capture into files"),
        (&["delay", "lo", "lo", "--offset", "1"], 2, "applies to two clocks"),
        (&["delay", "-", "/dev/null", "--remove-skew"], 2, "which a pipe does not allow"),
        (&["delay", "lo", "lo", "--codec", "opus"], 2, "g711"),
        (&["delay", "/dev/null", "/dev/null", "--stamp", "raw"], 2, "applies to interfaces"),
        (&["send", "-i", "lo", "--to", "::1", "--pattern", "free"], 2, "--size"),
        (&["clock", "--source", "sundial"], 2, "cannot use the source sundial"),
        (&["capture"], 2, "--interface"),
        (&["capture", "-i", "lo", "--duration", "0"], 2, "a time above 0"),
        (&["capture", "-i", "lo", "-d", "-1"], 2, "a time above 0"),
        (&["capture", "-i", "lo", "-d", "1e30"], 2, "a year"),
        (&["capture", "-i", "lo", "-c", "0"], 2, "at least 1"),
        (&["capture", "-i", "lo", "-c", "-1"], 2, "at least 1"),
        (&["capture", "-i", "lo", "-c", "3", "--tune", "apply"], 2, "--tune=apply"),
        (&["capture", "-i", "lo", "--tune", "udp"], 2, "nothing is captured"),
        (&["capture", "--list", "udp"], 2, "nothing is captured"),
        (&["capture", "-i", "lo", "--method", "xdp", "-Q", "inout"], 2, "use -Q in"),
        (&["capture", "-i", "lo", "--method", "xdp"], 2, "add --yes, or a filter"),
        (&["flows", "-i", "lo", "--method", "xdp"], 2, "add --yes, or a filter"),
        (&["delay", "lo", "lo", "--method", "xdp"], 2, "add --yes, or a filter"),
        (&["delay", "/dev/null", "lo", "--method", "xdp"], 2, "add --yes, or a filter"),
        (&["delay", "/dev/null", "/dev/null", "--yes"], 2, "applies to interfaces"),
        (&["capture", "-i", "lo", "--method", "xdp-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["capture", "-i", "lo", "--method", "tc-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["capture", "-i", "lo", "--method", "trace-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["delay", "lo", "lo", "--method", "xdp-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["delay", "/dev/null", "lo", "--method", "tc-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["delay", "lo", "lo", "--method", "trace-pass", "-Q", "out"], 2, "use -Q in"),
        (&["flows", "-i", "lo", "--method", "xdp-pass", "-Q", "inout"], 2, "use -Q in"),
        (&["delay", "/dev/null", "/dev/null", "--per-second"], 2, "add --json"),
        (&["stamp", "127.0.0.1", "--per-second"], 2, "add --json"),
        (&["send", "-i", "lo", "--to", "::1", "--pattern", "voip", "-d", "-1"], 2, "above 0"),
        (&["delay", "no-such-a", "no-such-b"], 1, "neither a file nor an interface"),
        (&["send", "-i", "lo", "--to", "::1", "--pattern", "fax"], 2, "voip"),
        (&["send", "-i", "no-such-if", "--to", "127.0.0.1", "--pattern", "voip"], 1, "ip link"),
        (&["capture", "-i", "lo@nowhere"], 1, "nowhere"),
        #[cfg(feature = "studies")]
        (&["study", "sundials"], 2, "sundials"),
        #[cfg(feature = "studies")]
        (&["study", "timers", "--rounds", "0"], 2, "1..=1000000"),
        #[cfg(feature = "studies")]
        (&["study", "timers", "--rounds", "1", "-o", "/proc/nowhere"], 1, "/proc/nowhere"),
        #[cfg(feature = "studies")]
        (&["study", "timers", "--beside", "/dev/null"], 1, "is no document"),
    ];
    for &(arguments, code, hint) in cases {
        let output = run(arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{message}");
        assert!(!is_repeated(&message), "{arguments:?}: {message}");
        if code == 1 {
            assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        }
    }
}

/// Whether a line contains a cause more than once.
fn is_repeated(line: &str) -> bool {
    let parts: Vec<_> = line.split([':', ';']).map(str::trim).filter(|p| p.len() > 8).collect();
    parts.iter().enumerate().any(|(i, part)| parts[..i].contains(part))
}

#[test]
fn outputs_never_overwrite_inputs_or_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [input, new, nowhere] = ["in.pcap", "new", "no/such"].map(path);
    fs::write(&input, classic_capture(20)).unwrap();
    let replay = ["send", "-i", "lo", "--replay"];
    let cases: [(&[&str], &str); 13] = [
        (&["flows", &input, "--csv", &input], "--csv would overwrite an input"),
        (&["flows", &input, "--parquet", &input], "--parquet would overwrite an input"),
        (&["flows", &input, "--csv", &new, "--parquet", &new], "use two files"),
        (&["flows", &input, "--csv", "-"], "./-"),
        (&["flows", "-i", "lo", "--csv", &nowhere], "the folder does not exist"),
        (&["delay", &input, &input, "--report", &input], "--report would overwrite"),
        (&["delay", "lo", "lo", "--report", &nowhere], "the folder does not exist"),
        (&["delay", "-", "-"], "only one point can be standard input"),
        (&["layers", "-i", "lo", "--csv", &new, "--report", &new], "use two files"),
        (&["layers", "-i", "lo", "--report", &nowhere], "the folder does not exist"),
        (&[&replay[..], &[&input, "--log", &input]].concat(), "--log would overwrite"),
        (&[&replay[..], &["-"]].concat(), "cannot replay a pipe"),
        (&["restamp", "-", "--anchors", &input, "-w", &new], "cannot restamp a pipe"),
    ];
    for (arguments, hint) in cases {
        let output = run(arguments);
        let message = stderr(&output);
        assert!(!output.status.success() && message.contains(hint), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    }
    assert_eq!(fs::read(&input).unwrap(), classic_capture(20));
    assert!(!fs::exists(&new).unwrap());
    let full = run(&["delay", &input, &input, "--report", "/dev/full"]);
    assert!(stderr(&full).contains("cannot write /dev/full: No space left"), "{}", stderr(&full));
    assert!(String::from_utf8_lossy(&full.stdout).contains("20"), "the figures are lost");
}

#[test]
fn damaged_files_need_partial() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [empty, garbage, whole, cut] = ["empty", "garbage", "whole", "cut"].map(path);
    fs::write(&empty, "").unwrap();
    fs::write(&garbage, "this is no capture at all, whatever its name says").unwrap();
    fs::write(&whole, classic_capture(20)).unwrap();
    fs::write(&cut, &classic_capture(20)[..500]).unwrap();
    let [short, gzip] = ["short", "gzip"].map(path);
    fs::write(&short, "hello\n").unwrap();
    fs::write(&gzip, [0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0]).unwrap();
    let refused = [
        (&empty, "empty"),
        (&garbage, "not a capture"),
        (&short, "magic number"),
        (&gzip, "not a capture"),
        (&cut, "--partial"),
    ];
    for (file, hint) in refused {
        let output = run(&["delay", &whole, file]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(hint) && message.contains(file.as_str()), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let replayed = run(&["send", "-i", "lo", "--replay", &cut]);
    let message = stderr(&replayed);
    assert!(message.contains("damaged after") && !message.contains("--partial"), "{message}");
    let found = json(&["delay", &whole, &cut, "--partial", "--json"]);
    assert_eq!(found["matched"].as_u64().unwrap() + found["lost"].as_u64().unwrap(), 20);
    assert!(found["matched"].as_u64() > Some(0), "{found:#}");
    assert_eq!(found["clock_error_ns"], Value::Null);
    assert!(found["clock_error_reason"].as_str().unwrap().contains("does not say"));
}

/// A classic capture of `count` different UDP packets over IPv4.
fn classic_capture(count: u32) -> Vec<u8> {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    for number in 0..count {
        let mut frame = vec![0_u8; 14];
        frame[12] = 0x08;
        frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2]);
        frame.extend([0x13, 0x88, 0x13, 0x88, 0, 20, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.extend([0; 8]);
        let length = u32::try_from(frame.len()).unwrap();
        let head = [1_700_000_000, number * 1000, length, length];
        file.extend(head.into_iter().flat_map(u32::to_ne_bytes));
        file.extend(frame);
    }
    file
}

#[test]
fn full_disk_leaves_a_readable_capture_file() {
    if !is_root() {
        return;
    }
    // A disk of 64 KiB, in a mount namespace of its own.
    let script = r#"
        mount -t tmpfs -o size=64k tmpfs "$1"
        "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 1400 \
            --interval 100us -c 600000 > /dev/null &
        "$0" capture -q -i tap-b@wirestamp-sink -w "$1/full.pcapng" 2> "$2/message" > "$2/summary"
        echo $? > "$2/code"
        kill $!
        wait $!
        cp "$1/full.pcapng" "$2/"
    "#;
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let [disk, path] = [&disk, folder.path()].map(|path| path.to_str().unwrap());
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    run(&["lab", "run", "--rate", "1000", "unshare", "-m", "sh", "-c", script, binary, disk, path]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("code").trim(), "1");
    let message = read("message");
    assert!(message.contains("No space left") && message.contains("free some space"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let file = format!("{path}/full.pcapng");
    let lengths = tool("tshark", &["-r", &file, "-T", "fields", "-e", "frame.len"]);
    let lengths: Vec<u64> = lengths.lines().map(|length| length.parse().unwrap()).collect();
    assert!(lengths.len() >= 10, "{lengths:?}");
    let summary = read("summary");
    assert!(summary.contains("by the consumer") && !summary.contains("not balance"), "{summary}");
    let whole = format!("{} packets, {} bytes on", lengths.len(), lengths.iter().sum::<u64>());
    assert!(summary.starts_with(&whole), "{summary}");
}

#[test]
fn every_command_has_help() {
    for command in
        ["clock", "capture", "send", "delay", "flows", "layers", "lab", "demo", "study", "pki"]
    {
        let output = run(&[command, "--help"]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Usage: wirestamp"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn full_standard_error_ends_no_command() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = |arguments: &[&str]| {
        let mut command = wirestamp(arguments);
        command.stdout(Stdio::null()).stderr(full()).status().unwrap().code()
    };
    assert_eq!(status(&["clock", "--duration", "0.01", "--verbose"]), Some(0));
    assert_eq!(status(&["flows", "/nonexistent.pcapng"]), Some(1));
}

#[test]
fn address_of_the_other_family_is_refused() {
    for (option, address, family) in [("-6", "192.0.2.7", "IPv6"), ("-4", "2001:db8::7", "IPv4")] {
        let output = run(&["stamp", option, address]);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("{address} is not an {family} address");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}
