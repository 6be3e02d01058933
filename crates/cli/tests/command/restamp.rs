//! Restamping a capture of real packets with its anchors.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Leftovers, is_root, json, run, stderr, tool, wirestamp};
use crate::schema;
use serde_json::Value;
use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{CapturedPacket, Facts, Ledger, Sink as _};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};

/// Captures six seconds of packets, a millisecond apart, on a bed of their own.
const SCRIPT: &str = r#"
    "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 200 \
        --interval 1ms -c 60000 > /dev/null &
    "$0" capture -q -i tap-b@wirestamp-sink $2 -w "$1/capture.pcapng" \
        --anchors "$1/anchors.csv" --duration 6 --json > "$1/summary"
    code=$?
    kill $!
    wait $!
    exit $code
"#;

fn capture(folder: &Path, source: &str) -> Value {
    let binary = env!("CARGO_BIN_EXE_wirestamp");
    let path = folder.to_str().unwrap();
    let bed = ["lab", "run", "--rate", "1000"];
    let output = run(&[&bed[..], &["sh", "-c", SCRIPT, binary, path, source]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    schema::document("capture", &fs::read(folder.join("summary")).unwrap())
}

/// Each packet's time and our comment, read by tshark.
fn packets(file: &str) -> Vec<(i64, Value)> {
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment"];
    let text = tool("tshark", &[&["-r", file][..], &fields].concat());
    let packet = |line: &str| {
        let (time, comment) = line.split_once('\t').unwrap();
        let (seconds, nanos) = time.split_once('.').unwrap();
        let nanos: i64 = [seconds, nanos].concat().parse().unwrap();
        let comment = comment.strip_prefix("wirestamp ").unwrap();
        (nanos, serde_json::from_str(comment).unwrap())
    };
    text.lines().map(packet).collect()
}

fn error(comment: &Value) -> i64 {
    comment["error_ns"].as_i64().unwrap()
}

/// Median and largest error.
fn errors(packets: &[(i64, Value)]) -> [i64; 2] {
    let mut errors: Vec<_> = packets.iter().map(|(_, comment)| error(comment)).collect();
    errors.sort_unstable();
    [errors[errors.len() / 2], errors[errors.len() - 1]]
}

/// The largest error of an anchor in the file.
fn worst_anchor(file: &str) -> i64 {
    let text = fs::read_to_string(file).unwrap();
    let error = |line: &str| line.split(',').nth(3).unwrap().parse::<i64>().unwrap();
    text.lines().skip(1).map(error).max().unwrap()
}

#[test]
fn new_times_keep_the_error_bounds() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    for source in ["--stamp=raw", "--method=xdp-pass", "--method=tc-pass", "--method=trace-pass"] {
        let folder = tempfile::tempdir().unwrap();
        let summary = capture(folder.path(), source);
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let [capture, anchors, again] = ["capture.pcapng", "anchors.csv", "again.pcapng"].map(path);
        let found = json(&["restamp", &capture, "--anchors", &anchors, "-w", &again, "--json"]);

        let (old, new) = (packets(&capture), packets(&again));
        assert!(old.len() > 4_000, "{summary:#}");
        assert_eq!(summary["packets"], old.len());
        assert_eq!(
            (&found["packets"], &found["restamped"]),
            (&old.len().into(), &old.len().into())
        );
        assert_eq!(found["anchors"], summary["anchors"]["written"]);
        assert_eq!((&summary["anchors"]["gaps"], &found["outside"]), (&0.into(), &0.into()));
        let mut reader = Reader::open(Path::new(&again)).unwrap();
        for ((old, message), (new, says)) in old.iter().zip(&new) {
            assert_eq!((&message["raw"], &message["clock"]), (&says["raw"], &says["clock"]));
            let moved = (new - old).abs();
            assert!(moved <= error(message) + error(says), "{message} moved by {moved} ns: {says}");
            assert_eq!(reader.next_packet().unwrap().unwrap().time.as_nanos(), *new);
        }
        assert!(reader.next_packet().unwrap().is_none());
        assert_eq!(reader.interfaces()[0].provenance.as_ref().unwrap().error_ns, errors(&new)[1]);
        // The offset of CLOCK_MONOTONIC from the system clock is constant: the error of a new stamp is at most that of
        // the worst anchor, plus 2 ns for rounding.
        let worst = worst_anchor(&anchors) + 2;
        for (old, new) in errors(&old).into_iter().zip(errors(&new)) {
            let limit = if found["clock"] == "CLOCK_MONOTONIC" { worst } else { old };
            assert!(new <= limit, "{source}: {new} ns after {old} ns, {found:#}");
        }
        assert_eq!(found["error_after_ns"]["max"], errors(&new)[1]);
        assert_restampable_after_other_tools(&capture, &anchors, &path("cut.pcapng"));
    }
    assert_eq!(Leftovers::now(), before);
}

/// Checks that captures edited by editcap and mergecap can be restamped.
fn assert_restampable_after_other_tools(capture: &str, anchors: &str, cut: &str) {
    let merged = format!("{cut}.merged");
    tool("editcap", &["-r", capture, cut, "1-100"]);
    tool("mergecap", &["-w", &merged, cut, capture]);
    for (file, least) in [(cut, 100), (merged.as_str(), 4_100)] {
        let found = json(&["restamp", file, "--anchors", anchors, "-w", "/dev/null", "--json"]);
        assert!(found["packets"].as_u64() >= Some(least), "{found:#}");
        assert_eq!(found["packets"], found["restamped"]);
    }
}

#[test]
fn mismatched_files_are_rejected_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [text, none, out] = ["text", "none", "out.pcapng"].map(path);
    fs::write(&text, "to whom it may concern\n").unwrap();
    let capture = ["capture", "-i", "lo", "--anchors", &text];
    let with = |more: &[&'static str]| [&capture[..], more].concat();
    let cases = [
        (with(&[]), 2, "--write"),
        (with(&["-w", "/dev/null"]), 2, "cannot be converted again"),
        (
            vec!["capture", "-i", "lo", "--stamp=raw", "-w", &text, "--anchors", &text],
            2,
            "use two files",
        ),
        (vec!["restamp", &text, "--anchors", &text, "-w", &text], 2, "overwrite"),
        (vec!["restamp", &text, "--anchors", &text, "-w", "-", "--json"], 2, "to a file"),
        (vec!["restamp", &text, "-w", &out], 2, "--anchors"),
        (vec!["restamp", &text, "--anchors", &none, "-w", &out], 1, "No such file"),
        (vec!["restamp", &text, "--anchors", &text, "-w", &out], 1, "line 1: not the header"),
        (vec!["restamp", &text, "--anchors", "/dev/null", "-w", &out], 1, "no anchors"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(&arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(
            message.contains(hint) && !message.contains("panicked"),
            "{arguments:?}: {message}"
        );
        assert!(code == 2 || message.lines().count() == 1, "{arguments:?}: {message}");
    }
    assert!(!Path::new(&out).exists());
    assert_eq!(fs::read_to_string(&text).unwrap(), "to whom it may concern\n");
}

#[test]
fn restamp_help_fits_on_a_terminal() {
    let output = run(&["restamp", "--help"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: wirestamp restamp"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Anchors of a clock of 1 GHz that is late by 10 us from the second second on.
const ANCHORS: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
    granularity_ns,frequency_hz,rate_error_ppm\n\
    0,1000000000000000000,0,40,0,tsc,b,1,1e9,0.1\n\
    1000000000,1000000000999990000,1000000000,40,0,tsc,b,1,1e9,0.1\n\
    2000000000,1000000001999990000,2000000000,40,0,tsc,b,1,1e9,0.1\n";

/// Writes a capture of a hundred packets and the anchors beside it into `folder`.
fn small_capture(folder: &Path, boot_id: &str) {
    fs::write(folder.join("anchors"), ANCHORS).unwrap();
    let facts = Facts {
        link: wirestamp_packet::LinkType::Ethernet,
        interface: "tap-a".into(),
        method: "ring",
        stamp: "raw",
        taken: "by the acquisition thread",
        clock: "tsc".into(),
        granularity_ns: 10,
        snaplen: 262_144,
        cores: Vec::new(),
        filter: None,
        notes: Vec::new(),
    };
    let provenance = Provenance { boot_id: boot_id.into(), ..Provenance::of(&facts, 900) };
    let writer = Writer::create(&folder.join("capture"), &facts, provenance).unwrap();
    let mut writer = writer.keep_raw(Domain::Counter, "tsc");
    for number in 0..100 {
        let value = number * 20_000_000;
        let raw = RawStamp { domain: Domain::Counter, value };
        let utc = Time::from_nanos(1_000_000_000_000_000_000 + value.cast_signed());
        let stamp = Stamp { raw, utc, error: Span::from_nanos(20_000) };
        writer
            .packet(&CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length: 60 })
            .unwrap();
    }
    writer.finish(&Ledger::default()).unwrap();
}

#[test]
fn full_disk_keeps_the_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    small_capture(folder.path(), "b");
    let again = folder.path().join("again");
    fs::write(&again, "before").unwrap();
    let limited = |limit: &str| {
        let script = format!(
            "trap '' XFSZ; ulimit -f {limit}; exec \"$0\" restamp capture --anchors anchors -w again"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_wirestamp")]);
        command.current_dir(&folder).output().unwrap()
    };
    let output = limited("2");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("no room for again") && message.lines().count() == 1, "{message}");
    assert_eq!(fs::read(&again).unwrap(), b"before");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);

    let output = limited("unlimited");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(Reader::open(&again).unwrap().next_packet().unwrap().is_some());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
}

#[test]
fn moved_distance_is_independent_of_direction() {
    let folder = tempfile::tempdir().unwrap();
    small_capture(folder.path(), "");
    let arguments = ["restamp", "capture", "--anchors", "anchors", "-w", "again"];
    let output = wirestamp(&arguments).current_dir(&folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let moved = text.lines().find(|line| line.starts_with("moved by ")).unwrap();
    assert!(moved.starts_with("moved by 9.8"), "{text}");
    assert!(moved.contains("p99 10") && moved.contains("min -10"), "{text}");
    assert!(text.contains("100 matched by clock name only"), "{text}");
}

#[test]
fn anchors_never_overwrite_packets() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x"), "before").unwrap();
    let refused = |file: &str, other: &str| {
        let capture = ["capture", "-i", "lo", "--stamp=raw", "-c1", "-w", file, "--anchors", other];
        let output = wirestamp(&capture).current_dir(&folder).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("use two files"), "{message}");
    };
    refused("x", "./x");
    assert_eq!(fs::read(folder.path().join("x")).unwrap(), b"before");
    if is_root() {
        refused("new", "./new");
        assert!(Reader::open(&folder.path().join("new")).is_ok(), "the anchors took its place");
    }
}

/// Captures three seconds of packets with a max file size of 2 KiB. The limit does not apply to the pipe of
/// the packets.
const LITTLE_ROOM: &str = r#"
    "$0" send -q -i out@wirestamp-source --to 10.77.2.2 --pattern free --size 200 \
        --interval 1ms -c 60000 > /dev/null &
    (
        trap '' XFSZ
        ulimit -f 4
        "$0" capture -q -i tap-b@wirestamp-sink --stamp raw -w - --anchors "$1/anchors" \
            --duration 3 2> "$1/message"
        echo $? > "$1/code"
    ) | cat > "$1/capture.pcapng"
    kill $!
    wait $!
    true
"#;

#[test]
fn full_anchor_disk_does_not_stop_the_capture() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [binary, place] = [env!("CARGO_BIN_EXE_wirestamp"), folder.path().to_str().unwrap()];
    let output = run(&["lab", "run", "--rate", "1000", "sh", "-c", LITTLE_ROOM, binary, place]);
    assert!(output.status.success(), "{}", stderr(&output));
    let [message, code, anchors] =
        ["message", "code", "anchors"].map(|name| fs::read_to_string(path(name)).unwrap());
    assert_eq!(code, "1\n");
    let kept = anchors.lines().filter(|row| row.contains(",anchor,")).count();
    assert!(anchors.ends_with('\n') && message.lines().count() == 1, "{message}{anchors}");
    assert!(message.contains(&format!("after {kept} anchors: ")), "{message}{anchors}");
    let [capture, anchors] = ["capture.pcapng", "anchors"].map(path);
    let found = json(&["restamp", &capture, "--anchors", &anchors, "-w", "/dev/null", "--json"]);
    assert!(found["packets"].as_u64() >= Some(2_000), "{found:#}");
    assert_eq!(Leftovers::now(), before);
}
