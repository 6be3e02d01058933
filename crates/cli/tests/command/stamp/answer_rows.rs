//! Single answers as rows of a file.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{is_root, stderr};
use crate::stamp::lossy_path::lossy_path;
use crate::stamp::{Reflector, counts, loopback, stamp, stamped};
use wirestamp_lab::SINK_V4;

/// Rows of a CSV file by their outcome, each as its fields.
fn rows(text: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("sequence,outcome,received_ns,round_trip_ns,"));
    let mut rows = BTreeMap::<_, Vec<_>>::new();
    for line in lines {
        let fields: Vec<_> = line.split(',').map(ToOwned::to_owned).collect();
        rows.entry(fields[1].clone()).or_default().push(fields);
    }
    rows
}

#[test]
fn each_packet_has_a_row_answered_or_not() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [csv, parquet] = ["answers.csv", "answers"].map(|name| folder.path().join(name));
    let files = ["--csv", csv.to_str().unwrap(), "--parquet", parquet.to_str().unwrap()];
    let lab = lossy_path();
    let _reflector = Reflector::start(lab.sink(), &[]);
    let to = SINK_V4.to_string();
    let test = [&*to, "-c", "100", "-i", "2ms", "--timeout", "300ms", "--same-clock"];
    let document = stamped(lab.source(), &[&test[..], &files].concat());
    let rows = rows(&fs::read_to_string(csv).unwrap());
    let [answered, lost] = ["answered", "unanswered"].map(|outcome| &rows[outcome]);
    let [of_answered, of_lost] = counts(&document, ["answered", "lost"]);
    assert_eq!((answered.len() as u64, lost.len() as u64), (of_answered, of_lost), "{document}");
    assert!(answered.iter().all(|row| row[3].parse::<i64>().unwrap() > 0 && !row[4].is_empty()));
    // Those that the path drops on the way there.
    for sequence in ["7", "23", "39", "55", "71", "87"] {
        let row = lost.iter().find(|row| row[0] == sequence).unwrap();
        assert!(row[2..].iter().all(String::is_empty), "{row:?}");
    }
    assert_eq!(&fs::read(parquet).unwrap()[..4], b"PAR1");
}

#[test]
fn one_way_delays_of_unsynchronised_clocks_are_empty_and_bad_files_are_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("answers.csv");
    let csv = csv.to_str().unwrap();
    let namespace = loopback();
    let _reflector = Reflector::start(&namespace, &[]);
    let document = stamped(&namespace, &["127.0.0.1", "-c", "10", "-i", "1ms", "--csv", csv]);
    let rows = rows(&fs::read_to_string(csv).unwrap());
    let are_known = document["owd_reason"].is_null();
    assert!(rows["answered"].iter().all(|row| row[4].is_empty() != are_known), "{rows:?}");
    let output = stamp(&namespace, &["127.0.0.1", "-c", "1", "--csv", "/nowhere/answers.csv"]);
    assert!(!output.status.success() && stderr(&output).contains("/nowhere"), "{output:?}");
}

#[test]
fn seconds_have_their_packets_and_delays() {
    if !is_root() {
        return;
    }
    let lab = lossy_path();
    let _reflector = Reflector::start(lab.sink(), &[]);
    let to = SINK_V4.to_string();
    let test = [&*to, "-c", "600", "-i", "2ms", "--timeout", "300ms", "--per-second"];
    let document = stamped(lab.source(), &[&test[..], &["--same-clock"]].concat());
    let seconds = document["per_second"]["seconds"].as_array().unwrap();
    assert!(seconds.len() >= 2, "{document}");
    let sum = |key: &str| seconds.iter().map(|second| second[key].as_u64().unwrap()).sum::<u64>();
    let [sent, answered, lost] = counts(&document, ["sent", "answered", "lost"]);
    assert_eq!(["sent", "matched", "lost"].map(sum), [sent, answered, lost], "{document}");
    let max = |of: &dyn Fn(&serde_json::Value) -> Option<i64>| seconds.iter().filter_map(of).max();
    assert_eq!(
        max(&|second| second["round_trip_max_ns"].as_i64()),
        document["round_trip_ns"]["max"].as_i64()
    );
    for way in ["there", "back"] {
        let min = seconds.iter().filter_map(|second| second[way]["delay_min_ns"].as_i64()).min();
        assert_eq!(min, document[way]["owd_ns"]["min"].as_i64(), "{document}");
    }
    assert_eq!(document["per_second"]["packets_omitted"], 0);
}
