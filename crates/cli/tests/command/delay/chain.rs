//! More than two points in a row.

use std::fs;

use tempfile::TempDir;

use super::{BEGIN, Classic};
use crate::common::{json, run, stderr};

const MS: i64 = 1_000_000;

/// 500 packets at three points. The first sub-path takes 1 ms; the second takes 5 ms and up to 4 ms more, and loses
/// every tenth.
fn captured() -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let sent = |number: u32| BEGIN + i64::from(number) * 20 * MS;
    let first: Vec<_> = (0..500).map(|number| (sent(number), number)).collect();
    let second: Vec<_> = first.iter().map(|(time, number)| (time + MS, *number)).collect();
    let third = second.iter().filter(|(_, number)| number % 10 != 5);
    let third: Vec<_> =
        third.map(|(time, number)| (time + 5 * MS + i64::from(number % 5) * MS, *number)).collect();
    let files = [first, second, third].into_iter().enumerate().map(|(place, packets)| {
        let path = folder.path().join(format!("{place}.pcap"));
        fs::write(&path, Classic::packets(packets).0).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let files = files.collect();
    (folder, files)
}

#[test]
fn each_subpath_and_the_complete_path_are_measured() {
    let (_folder, files) = captured();
    let found = json(&["delay", &files[0], &files[1], &files[2], "--json"]);
    let of = |path: &serde_json::Value| {
        (path["matched"].as_u64(), path["lost"].as_u64(), path["owd_ns"]["min"].as_i64())
    };
    let subpaths = found["subpaths"].as_array().expect("sub-paths");
    assert_eq!(subpaths.len(), 2);
    assert_eq!(of(&subpaths[0]), (Some(500), Some(0), Some(MS)));
    assert_eq!(of(&subpaths[1]), (Some(450), Some(50), Some(5 * MS)));
    assert_eq!(of(&found["complete_path"]), (Some(450), Some(50), Some(6 * MS)));
    assert_eq!(subpaths[1]["from"], *files[1]);
    assert_eq!(found["complete_path"]["to"], *files[2]);
}

#[test]
fn text_names_the_subpath_with_the_most_loss_and_variation() {
    let (_folder, files) = captured();
    let output = run(&["delay", &files[0], &files[1], &files[2]]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let second = format!("{} > {}", files[1], files[2]);
    for part in [
        format!("Most packets are lost in {second}."),
        format!("{second} adds the most delay variation (PDV p99)."),
    ] {
        assert!(text.contains(&part), "{part} in {text}{}", stderr(&output));
    }
    let same = run(&["delay", &files[0], &files[0], &files[0]]);
    assert!(!String::from_utf8_lossy(&same.stdout).contains("adds the most"));
    assert!(!text.contains("adds the most delay (p50)"), "the clock errors are unknown: {text}");
}

#[test]
fn report_has_each_subpath_and_the_complete_path() {
    let (folder, files) = captured();
    let path = folder.path().join("report.html");
    let report = path.to_str().unwrap();
    let output = run(&["delay", &files[0], &files[1], &files[2], "--report", report]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(&path).unwrap();
    let names =
        [(0, 2), (0, 1), (1, 2)].map(|(a, b)| format!("<h2>{} &gt; {}</h2>", files[a], files[b]));
    let places: Vec<_> = names.iter().map(|name| page.find(name).expect(name)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("Most packets are lost in") && !page.contains("NaN"));
    let refused = run(&["delay", &files[0], &files[1], &files[2], "--report", &files[1]]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn options_of_two_points_are_rejected() {
    let (_folder, files) = captured();
    for (more, message) in [
        (&["--csv", "x.csv"][..], "cannot use --csv with more than two points"),
        (&["no-such-file"], "no-such-file is not a file"),
    ] {
        let arguments = [&["delay", &files[0], &files[1], &files[2]], more].concat();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}
