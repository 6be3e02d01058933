//! Hours of results that become files, and go.

use std::collections::BTreeMap;

use tokio::sync::watch;
use wirestamp_protocol::Count;

use super::*;
use crate::collector::{News, Results, Settled};

const SECOND: i64 = 1_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// A collector with a count of each quarter of an hour, of so many hours.
fn collector(folder: &Path, begin: Time<Utc>, quarters: i64) -> Arc<Collector> {
    let mut results = Results::open(&folder.join("results")).unwrap();
    let time = |quarter: i64| begin + Span::from_secs(900 * quarter);
    let count = |quarter: i64| Count {
        begin: time(quarter),
        packets: quarter.unsigned_abs(),
        bytes: 0,
        missed: 0,
        watched: Span::ZERO,
    };
    let counts = (0..quarters).map(count).collect();
    let news = News { counts, flows: Vec::new() };
    results.store(7, &Settled { news, ..Settled::nothing(time(quarters)) }).unwrap();
    let (_, tasks) = watch::channel(Arc::new(BTreeMap::new()));
    Arc::new(Collector::new(results, tasks))
}

fn task() -> Task {
    serde_json::from_str(r#"{"name":"v","measure":"traffic","at":"a/eth0","interval":"15m"}"#)
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = files(folder).unwrap().into_iter().map(|it| it.hour).collect();
    names.sort();
    names
}

fn everything() -> Stretch {
    Stretch { step: Step::AsMeasured, from: i64::MIN, until: i64::MAX, most: 99 }
}

#[test]
fn an_hour_becomes_a_file_when_it_is_over_and_goes_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 9);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
    archive.tend_task(7, &task()).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08", "2027-01-15T09"]);
    let file = path.join("task=v").join("hour=2027-01-15T09").join("7.parquet");
    assert!(fs::read(&file).unwrap().starts_with(b"PAR1"));
    // Again, nothing is to be done.
    fs::remove_file(&file).unwrap();
    archive.tend_task(7, &task()).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08"]);
    assert_eq!(collector.counted(7, &everything()).unwrap().len(), 9);
    // The hour that is not over is not archived, and stays.
    collector.forget(7, begin + Span::from_secs(999_999)).unwrap();
    let left = collector.counted(7, &everything()).unwrap();
    assert_eq!(left.iter().map(|it| it.packets).collect::<Vec<_>>(), [8]);
    let by_hour = Stretch { step: Step::Hour, ..everything() };
    assert_eq!(collector.counted(7, &by_hour).unwrap().len(), 3);
}

#[test]
fn the_oldest_files_go_first_and_nothing_of_others() {
    let folder = tempfile::tempdir().unwrap();
    // Long ago.
    let begin = Time::from_nanos(1_500_000_000 * SECOND).interval_begin(HOUR);
    let collector = collector(folder.path(), begin, 12);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let mut archive = Archive::new(path.clone(), collector, keep);
    archive.tend_task(7, &task()).unwrap();
    let of_others = path.join("task=v").join("hour=2017-07-14T02").join("notes.txt");
    fs::write(&of_others, "mine").unwrap();
    let bytes: u64 = files(&path).unwrap().iter().map(|it| it.bytes).sum();
    archive.keep.bytes = Some(bytes - 1);
    archive.remove_old().unwrap();
    assert_eq!(names(&path), ["2017-07-14T03", "2017-07-14T04"]);
    assert!(of_others.exists());
    archive.keep.age = DAY;
    archive.remove_old().unwrap();
    assert!(names(&path).is_empty() && !path.join("task=v").join("hour=2017-07-14T03").exists());
}

#[test]
fn without_files_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    assert!(files(&folder.path().join("none")).unwrap().is_empty());
}
