//! Results of tasks that moved, while a collector is away.

use std::ops::Range;
use std::path::Path;

use tokio::runtime::Runtime;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Quality;

use super::*;
use crate::collector::{Measured, ResultRange, Results, Settled, Step, Window};
use crate::controller::testing as sample;

/// All windows of the measured length.
const ALL: ResultRange =
    ResultRange { step: Step::AsMeasured, from: i64::MIN, until: i64::MAX, most: 100 };

fn at(second: i64) -> Time<Utc> {
    Time::from_nanos(second * 1_000_000_000)
}

/// Stores windows of these seconds at the controller's own collector.
fn store(folder: &Path, task: u64, seconds: Range<i64>) {
    let window = || Window {
        quality: Quality::new(),
        offset: Ok(Span::ZERO),
        least: None,
        return_path: None,
    };
    let settled = Settled::nothing(at(seconds.end));
    let windows = seconds.map(|second| (at(second), window())).collect();
    let mut results = Results::open(&folder.join("results.sqlite")).unwrap();
    results.store(task, &Settled { windows, ..settled }).unwrap();
}

fn seconds(windows: &[Measured]) -> Vec<i64> {
    windows.iter().map(|it| it.begin_ns / 1_000_000_000).collect()
}

/// The collector `gone`.
fn gone() -> Name {
    "gone".parse().unwrap()
}

fn is_gone<T>(result: Result<T, QueryError>) -> bool {
    result.err().is_some_and(|why| why.collector() == Some(&gone()))
}

/// The base of counters and exports: an earlier one would count the results in between again.
#[test]
fn newest_result_needs_the_current_collector() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path(), 1, 1..4);
    let controller = sample::open(folder.path(), &runtime);
    let task = r#"{"name":"path","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;
    sample::enter(&controller, task);
    sample::move_away(&controller, 1);
    let sources = controller.sources();
    runtime.block_on(async {
        assert!(is_gone(sources.newest(1).await));
        assert!(is_gone(sources.settled_until(1).await));
        let (windows, missing) = sources.measured_parts(1, &ALL).await.unwrap();
        assert_eq!(seconds(&windows), [1, 2, 3]);
        assert_eq!(missing, [MissingPart::current(Some(gone()))]);
    });
}

#[test]
fn shard_that_is_away_does_not_delay_the_others() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path(), 1, 1..6);
    // It moved away in second 3.
    store(folder.path(), 2, 1..3);
    let controller = sample::open(folder.path(), &runtime);
    let points = r#""measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0""#;
    sample::enter(&controller, &format!(r#"{{"name":"path",{points},"shards":2}}"#));
    let sources = controller.sources();
    let all = runtime.block_on(sources.measured(1, &ALL)).unwrap();
    assert_eq!(seconds(&all), [1, 2]);
    sample::move_away(&controller, 2);
    runtime.block_on(async {
        let (windows, missing) = sources.measured_parts(1, &ALL).await.unwrap();
        assert_eq!(seconds(&windows), [1, 2, 3, 4, 5]);
        assert_eq!(missing, [MissingPart::current(Some(gone()))]);
        // Exports have windows with the packets of all shards only.
        assert!(is_gone(sources.measured(1, &ALL).await));
        assert!(is_gone(sources.settled_until(1).await));
    });
}
