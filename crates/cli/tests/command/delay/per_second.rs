//! A measurement second by second.

use serde_json::{Value, json};

use crate::common::run;
use crate::delay::{Classic, delay, delayed, files, sent};
use crate::schema;

/// Packets of four seconds, 50 in each, of which 3 of the second one are lost.
fn two_files() -> (tempfile::TempDir, [String; 2]) {
    let a = Classic::packets((0..200).map(|n| (sent(n), n)));
    let arrive = (0..200).filter(|n| ![60, 70, 80].contains(n));
    files(a, Classic::packets(arrive.map(|n| (sent(n) + delay(n), n))))
}

/// The seconds of a document: packets sent, matched and lost.
fn counts(found: &Value) -> Vec<[Value; 3]> {
    let seconds = found["per_second"]["seconds"].as_array().unwrap();
    let of = |second: &Value| ["sent", "matched", "lost"].map(|key| second[key].clone());
    seconds.iter().map(of).collect()
}

#[test]
fn seconds_have_their_packets_and_delays() {
    let (_folder, files) = two_files();
    let found = delayed(&["--per-second"], &files);
    let whole = [json!(50), json!(50), json!(0)];
    let expected = [whole.clone(), [json!(50), json!(47), json!(3)], whole.clone(), whole];
    assert_eq!(counts(&found), expected, "{found:#}");
    assert_eq!(found["per_second"]["packets_omitted"], 0);
    for (number, second) in (0..).zip(found["per_second"]["seconds"].as_array().unwrap()) {
        let delays =
            (50 * number..50 * number + 50).filter(|n| ![60, 70, 80].contains(n)).map(delay);
        assert_eq!(second["begin_ns"], sent(50 * number));
        assert_eq!(second["delay_min_ns"], delays.clone().min().unwrap());
        assert_eq!(second["delay_max_ns"], delays.max().unwrap());
    }
    assert!(delayed(&[], &files).get("per_second").is_none());
}

#[test]
fn unknown_values_of_a_second_are_null() {
    let (_folder, files) = two_files();
    let aligned = delayed(&["--per-second", "--align"], &files);
    assert!(aligned["per_second"]["seconds"][0]["delay_mean_ns"].is_null(), "{aligned:#}");
    // Nothing of A is at B, which has as many packets.
    let a = Classic::packets((0..100).map(|n| (sent(n), n)));
    let b = Classic::packets((0..100).map(|n| (sent(n), n + 1_000)));
    let (_folder, files) = crate::delay::files(a, b);
    let output = run(&["delay", &files[0], &files[1], "--json", "--per-second"]);
    let found = schema::document("delay", &output.stdout);
    assert!(found["lost"].is_null() && counts(&found)[0][2].is_null(), "{found:#}");
}
