//! A row for each packet.

use std::collections::BTreeMap;

use crate::common::{run, stderr};
use crate::delay::{Classic, delay, files, sent};
use crate::schema;

/// The rows of a CSV file, by the names of their columns.
pub(super) fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    lines.map(|cells| names.iter().copied().zip(cells).collect()).collect()
}

#[test]
fn each_packet_has_a_row_with_its_outcome() {
    let a = Classic::packets((0..40).map(|n| (sent(n), n)));
    // Every tenth is lost, number 7 arrives twice, and one packet did not pass A.
    let arrive = (0..40).filter(|n| n % 10 != 3).flat_map(|n| {
        let again = (n == 7).then_some((sent(n) + delay(n) + 1_000_000, n));
        [(sent(n) + delay(n), n)].into_iter().chain(again)
    });
    let b = Classic::packets(arrive.chain([(sent(40), 999)]));
    let (folder, files) = files(a, b);
    let [csv, parquet] = ["rows.csv", "rows.parquet"]
        .map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let output = run(&["delay", &files[0], &files[1], "--csv", &csv, "--parquet", &parquet]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&csv).unwrap();
    let rows = rows(&text);
    let count = |outcome: &str| rows.iter().filter(|row| row["outcome"] == outcome).count();
    let counts = ["matched", "lost", "duplicated", "unexpected"].map(count);
    assert_eq!((rows.len(), counts), (42, [36, 4, 1, 1]));
    for row in rows.iter().filter(|row| row["outcome"] == "matched") {
        let number: u32 = row["sequence"].parse().unwrap();
        assert_eq!(row["delay_ns"], delay(number).to_string(), "{row:?}");
        assert_eq!(row["a_ns"], sent(number).to_string(), "{row:?}");
        assert_eq!((row["sport"], row["protocol"], row["reordered"]), ("5000", "17", "0"));
        assert_eq!(row["error_ns"], "", "the files do not say which clock made the stamps");
    }
    let lost = rows.iter().find(|row| row["outcome"] == "lost").unwrap();
    assert_eq!((lost["b_ns"], lost["delay_ns"], lost["sequence"]), ("", "", "3"));
    assert!(std::fs::read(&parquet).unwrap().starts_with(b"PAR1"));
}

#[test]
fn file_that_cannot_be_written_is_an_error_beside_the_results() {
    let packets = || Classic::packets((0..40_000).map(|n| (sent(n), n)));
    let (_folder, files) = files(packets(), packets());
    let output = run(&["delay", &files[0], &files[1], "--json", "--csv", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("/dev/full"), "{}", stderr(&output));
    let found = schema::document("delay", &output.stdout);
    assert_eq!(found["matched"], 40_000);
}
