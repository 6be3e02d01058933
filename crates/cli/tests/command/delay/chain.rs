//! More than two points in a row.

use std::fs;

use tempfile::TempDir;

use super::packet_rows::rows;
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
        (&["--offset", "1"][..], "cannot use --offset with more than two points"),
        (&["no-such-file"], "no-such-file is not a file"),
    ] {
        let arguments = [&["delay", &files[0], &files[1], &files[2]], more].concat();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn each_packet_has_a_row_with_its_points_and_hops() {
    let (folder, files) = captured();
    let [csv, parquet] = ["rows.csv", "rows.parquet"]
        .map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let output =
        run(&["delay", &files[0], &files[1], &files[2], "--csv", &csv, "--parquet", &parquet]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&csv).unwrap();
    let rows = rows(&text);
    let [matched, lost] = ["matched", "lost"]
        .map(|outcome| rows.iter().filter(|row| row["outcome"] == outcome).collect::<Vec<_>>());
    assert_eq!((rows.len(), matched.len(), lost.len()), (500, 450, 50));
    for row in matched {
        let number: i64 = row["sequence"].parse().unwrap();
        let stamp = BEGIN + number * 20 * MS;
        let second = (5 + number % 5) * MS;
        let expected = [
            ("point1_ns", stamp),
            ("point2_ns", stamp + MS),
            ("point3_ns", stamp + MS + second),
            ("hop1_delay_ns", MS),
            ("hop2_delay_ns", second),
            ("delay_ns", MS + second),
        ];
        for (column, value) in expected {
            assert_eq!(row[column], value.to_string(), "{column} {row:?}");
        }
        assert_eq!((row["lost_hop"], row["sport"], row["hop2_reordered"]), ("", "5000", "0"));
        assert_eq!([row["point1_error_ns"], row["error_ns"]], ["", ""], "the file has no errors");
    }
    for row in lost {
        let empty = ["point3_ns", "hop2_delay_ns", "delay_ns", "reason", "point3_time"];
        assert!(empty.iter().all(|column| row[column].is_empty()), "{row:?}");
        assert_eq!((row["lost_hop"], row["hop1_delay_ns"]), ("2", "1000000"));
        assert!(row["point1_time"].starts_with("20"), "{row:?}");
    }
    assert!(fs::read(&parquet).unwrap().starts_with(b"PAR1"));
}

#[test]
fn rows_of_two_points_are_not_written_before_those_of_all() {
    let (_folder, files) = captured();
    for matching in ["auto", "packet"] {
        let options = ["--match", matching, "--csv", "/dev/stdout"];
        let output = run(&[&["delay", &files[0], &files[1], &files[2]], &options[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        let headers = text.lines().filter(|line| line.starts_with("outcome,")).count();
        assert_eq!(headers, 1, "{text}");
    }
}

/// Packet 0 passes all points, 1 is not observed at the second one, 2 is lost before it, 3 is seen there for the first
/// time, and 4 arrives there twice and is lost once after it.
#[test]
fn rows_name_where_packets_appear_and_disappear() {
    let folder = tempfile::tempdir().unwrap();
    let at = |number: u32, more: i64| (BEGIN + i64::from(number) * 20 * MS + more * MS, number);
    let many = || 10..40;
    let points = [
        vec![at(0, 0), at(1, 0), at(2, 0), at(4, 0)],
        vec![at(0, 1), at(3, 1), at(4, 1), at(4, 2)],
        vec![at(0, 3), at(1, 3), at(3, 3), at(4, 3)],
    ];
    let files = points.into_iter().enumerate().map(|(place, packets)| {
        let path = folder.path().join(format!("{place}.pcap"));
        let place = i64::try_from(place).unwrap();
        let packets = packets.into_iter().chain(many().map(|number| at(number, place)));
        fs::write(&path, Classic::packets(packets).0).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let files: Vec<_> = files.collect();
    let csv = folder.path().join("rows.csv").to_str().unwrap().to_owned();
    let output = run(&["delay", &files[0], &files[1], &files[2], "--csv", &csv]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&csv).unwrap();
    let rows = rows(&text);
    let of = |first: (i64, u32), column: &str| {
        let found: Vec<_> = rows.iter().filter(|row| row[column] == first.0.to_string()).collect();
        assert_eq!(found.len(), 1, "{first:?} {rows:?}");
        ["outcome", "lost_hop", "hop1_delay_ns", "hop2_delay_ns", "delay_ns"]
            .map(|column| found[0][column])
    };
    assert_eq!(of(at(0, 0), "point1_ns"), ["matched", "", "1000000", "2000000", "3000000"]);
    assert_eq!(of(at(1, 0), "point1_ns"), ["matched", "", "", "", "3000000"]);
    assert_eq!(of(at(2, 0), "point1_ns"), ["lost", "1", "", "", ""]);
    assert_eq!(of(at(3, 1), "point2_ns"), ["unexpected", "", "", "2000000", ""]);
    assert_eq!(of(at(4, 0), "point1_ns"), ["matched", "", "1000000", "2000000", "3000000"]);
    assert_eq!(of(at(4, 2), "point2_ns")[0], "duplicated");
    assert_eq!(rows.len(), 36);
}

/// The first sub-path loses 10 packets, the second 20, and the point between does not capture 5 others.
#[test]
fn packets_that_only_the_middle_point_missed_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |n: u32, more: i64| (BEGIN + i64::from(n) * 20 * MS + more * MS, n);
    let is_lost_first = |n: &u32| n % 50 == 3;
    let is_lost_second = |n: &u32| n % 25 == 4;
    let is_not_captured = |n: &u32| n % 100 == 9;
    let points = [
        Classic::packets((0..500).map(|n| at(n, 0))),
        Classic::packets(
            (0..500).filter(|n| !is_lost_first(n) && !is_not_captured(n)).map(|n| at(n, 3)),
        ),
        Classic::packets(
            (0..500).filter(|n| !is_lost_first(n) && !is_lost_second(n)).map(|n| at(n, 10)),
        ),
    ];
    let files: Vec<_> = ["a.pcap", "b.pcap", "c.pcap"]
        .into_iter()
        .zip(points)
        .map(|(name, capture)| {
            let path = folder.path().join(name);
            fs::write(&path, capture.0).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let [a, b, c] = [&files[0], &files[1], &files[2]];
    let found = json(&["delay", a, b, c, "--json"]);
    let of = |path: &serde_json::Value| {
        ["sent", "matched", "lost", "given_up_sent", "unexpected"]
            .map(|key| path[key].as_u64().unwrap())
    };
    let subpaths = found["subpaths"].as_array().unwrap();
    assert_eq!(of(&subpaths[0]), [500, 485, 10, 5, 0]);
    assert_eq!(subpaths[0]["flows"][0]["lost"], 10);
    assert_eq!(of(&subpaths[1]), [485, 465, 20, 0, 5]);
    assert_eq!(of(&found["complete_path"]), [500, 470, 30, 0, 0]);

    let csv = folder.path().join("rows.csv").to_str().unwrap().to_owned();
    let report = folder.path().join("report.html").to_str().unwrap().to_owned();
    let output = run(&["delay", a, b, c, "--csv", &csv, "--report", &report]);
    let text = String::from_utf8(output.stdout).unwrap();
    let missed = format!("{a} (A) > {b} (B): 5 packets that were not observed at {b}");
    let unexpected = format!("{b} (A) > {c} (B): 5 packets were observed at B only");
    for part in [missed, unexpected] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    let page = fs::read_to_string(report).unwrap();
    assert!(page.contains("observed at a later point"));
    let rows_of_all = fs::read_to_string(&csv).unwrap();
    let hops: Vec<_> = rows(&rows_of_all).iter().map(|row| row["lost_hop"].to_owned()).collect();
    let count = |hop: &str| hops.iter().filter(|it| *it == hop).count();
    assert_eq!([count("1"), count("2"), count("")], [10, 20, 470]);
}
