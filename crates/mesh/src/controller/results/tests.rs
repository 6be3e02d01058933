use std::path::Path;

use crate::protocol::Count;
use tokio::runtime::Runtime;
use wirestamp_clock::{Span, Time};

use super::super::testing;
use super::*;
use crate::collector::{self, PointResults, Settled};

/// Seconds with results: more than one piece, not a whole number of pieces.
const SECONDS: i64 = 2500;

/// Stores counts of the first task.
fn store(folder: &Path) {
    let time = |second| Time::from_nanos(0) + Span::from_secs(second);
    let count = |second| Count {
        begin: time(second),
        packets: 7,
        bytes: 700,
        missed: 0,
        watched: Span::from_secs(1),
    };
    let point_results =
        PointResults { counts: (0..SECONDS).map(count).collect(), flows: Vec::new() };
    let mut results = collector::Results::open(&folder.join("results.sqlite")).unwrap();
    results.store(1, &Settled { point_results, ..Settled::nothing(time(SECONDS)) }).unwrap();
}

#[test]
fn long_response_is_chunked_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let runtime = Runtime::new().unwrap();
    let controller = testing::open(folder.path(), &runtime);
    let task = r#"{"name":"load","measure":"traffic","at":"roof/eth0","interval":"1s"}"#;
    testing::enter(&controller, task);
    let page = controller.page().unwrap();
    testing::run(controller, &runtime);
    for (query, seconds) in [
        ("", 0..SECONDS),
        ("?limit=0", 0..0),
        ("?limit=7", 0..7),
        ("?limit=1000", 0..1000),
        ("?limit=1001", 0..1001),
        ("?limit=2000&from=1970-01-01T00:00:30Z", 30..2030),
        ("?limit=100000&from=1970-01-01T00:08:20Z", 500..SECONDS),
        ("?until=1970-01-01T00:16:40Z", 0..1000),
    ] {
        let (status, found) = testing::get(page, &format!("/api/v1/tasks/load/results{query}"));
        let found: Value = serde_json::from_str(&found).unwrap();
        let results = found["results"].as_array().unwrap();
        let begins = results.iter().map(|it| it["begin_ns"].as_i64().unwrap() / 1_000_000_000);
        assert_eq!((&*status, found["task"]["number"].as_u64()), ("200", Some(1)), "{query}");
        assert!(begins.eq(seconds.clone()), "{query}: {} results", results.len());
    }
}

#[test]
fn earlier_task_of_a_name_is_found_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let runtime = Runtime::new().unwrap();
    let controller = testing::open(folder.path(), &runtime);
    for interval in ["1s", "2s"] {
        let task = r#"{"name":"load","measure":"traffic","at":"roof/eth0","interval":"1s"}"#;
        testing::enter(&controller, &task.replace("1s", interval));
    }
    let page = controller.page().unwrap();
    testing::run(controller, &runtime);
    for (query, number, results) in [("", 2, 0), ("?number=1&limit=7", 1, 7), ("?number=2", 2, 0)] {
        let (status, found) = testing::get(page, &format!("/api/v1/tasks/load/results{query}"));
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!((&*status, found["task"]["number"].as_u64()), ("200", Some(number)), "{query}");
        assert_eq!(found["results"].as_array().unwrap().len(), results, "{query}");
    }
    for (query, status, why) in [
        ("?number=3", "404", "load"),
        ("?number=-1", "400", "number"),
        (
            "?from=7",
            "400",
            "\"error\":\"from: \\\"7\\\" is not a time such as 2026-11-22T15:00:00Z",
        ),
    ] {
        let found = testing::get(page, &format!("/api/v1/tasks/load/results{query}"));
        assert_eq!(found.0, status, "{query}");
        assert!(found.1.contains(why), "{query}: {}", found.1);
    }
}

#[test]
fn error_for_large_limit_names_the_max() {
    let query = |limit| ResultsQuery { number: None, from: None, until: None, step: None, limit };
    let most = |limit| query(limit).range().map(|it| it.most).map_err(|why| why.1);
    assert_eq!(most(None), Ok(RESULTS));
    assert_eq!(most(Some(MAX_RESULTS)), Ok(MAX_RESULTS));
    let why = most(Some(MAX_RESULTS + 1)).unwrap_err();
    assert!(why.contains("max 100000; request a shorter time"), "{why}");
}
