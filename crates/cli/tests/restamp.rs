//! A capture of real packets, stamped again with the anchors kept beside it.

mod common;

use std::fs;
use std::path::Path;

use common::{Traces, is_root, json, run, stderr, tool};
use serde_json::Value;
use wirestamp_capture::file::Reader;

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
    serde_json::from_slice(&fs::read(folder.join("summary")).unwrap()).unwrap()
}

/// What tshark finds: for each packet the time and our comment.
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

#[test]
fn every_packet_gets_a_time_within_the_bounds_and_a_bound_that_is_no_wider() {
    if !is_root() {
        return;
    }
    let before = Traces::now();
    for source in ["--stamp=raw", "--method=xdp-pass"] {
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
        for ((old, said), (new, says)) in old.iter().zip(&new) {
            assert_eq!((&said["raw"], &said["clock"]), (&says["raw"], &says["clock"]));
            let moved = (new - old).abs();
            assert!(moved <= error(said) + error(says), "{said} moved by {moved} ns: {says}");
            assert_eq!(reader.next_packet().unwrap().unwrap().time.as_nanos(), *new);
        }
        assert!(reader.next_packet().unwrap().is_none());
        assert_eq!(reader.provenance().unwrap().error_ns, errors(&new)[1]);
        for (old, new) in errors(&old).into_iter().zip(errors(&new)) {
            assert!(new <= old, "{source}: {new} ns after {old} ns, {found:#}");
        }
        assert_eq!(found["error_after_ns"]["max"], errors(&new)[1]);
        survives_other_tools(&capture, &anchors, &path("cut.pcapng"));
    }
    assert_eq!(Traces::now(), before);
}

/// What editcap and mergecap leave of a capture can still be restamped.
fn survives_other_tools(capture: &str, anchors: &str, cut: &str) {
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
fn what_does_not_fit_together_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [text, none, out] = ["text", "none", "out.pcapng"].map(path);
    fs::write(&text, "to whom it may concern\n").unwrap();
    let capture = ["capture", "-i", "lo", "--anchors", &text];
    let with = |more: &[&'static str]| [&capture[..], more].concat();
    let cases = [
        (with(&[]), 2, "--write"),
        (with(&["-w", "/dev/null"]), 2, "nothing to convert again"),
        (vec!["capture", "-i", "lo", "--stamp=raw", "-w", &text, "--anchors", &text], 2, "its own"),
        (vec!["restamp", &text, "--anchors", &text, "-w", &text], 2, "overwrite"),
        (vec!["restamp", &text, "--anchors", &text, "-w", "-", "--json"], 2, "to a file"),
        (vec!["restamp", &text, "-w", &out], 2, "--anchors"),
        (vec!["restamp", &text, "--anchors", &none, "-w", &out], 1, "No such file"),
        (vec!["restamp", &text, "--anchors", &text, "-w", &out], 1, "line 1: not the header"),
        (vec!["restamp", &text, "--anchors", "/dev/null", "-w", &out], 1, "no anchors"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(&arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(hint) && !said.contains("panicked"), "{arguments:?}: {said}");
        assert!(code == 2 || said.lines().count() == 1, "{arguments:?}: {said}");
    }
    assert!(!Path::new(&out).exists());
    assert_eq!(fs::read_to_string(&text).unwrap(), "to whom it may concern\n");
}

#[test]
fn its_help_fits_on_a_terminal() {
    let output = run(&["restamp", "--help"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: wirestamp restamp"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
