//! Tests of the archive.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::protocol::Count;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field as Cell;
use tokio::sync::watch;
use wirestamp_clock::Span;

use super::*;
use crate::collector::{Flow, PointResults, Results, Settled};

const SECOND: i64 = 1_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// A collector with a count for each quarter of an hour.
fn collector(folder: &Path, begin: Time<Utc>, quarters: i64) -> Arc<Collector> {
    let results = Results::open(&folder.join("results")).unwrap();
    let (_, tasks) = watch::channel(Arc::new(BTreeMap::new()));
    let collector = Arc::new(Collector::new(results, tasks));
    count(&collector, begin, 0..quarters);
    collector
}

fn count(collector: &Collector, begin: Time<Utc>, quarters: Range<i64>) {
    let time = |quarter: i64| begin + Span::from_secs(900 * quarter);
    let count = |quarter: i64| Count {
        begin: time(quarter),
        packets: quarter.unsigned_abs(),
        bytes: 0,
        missed: 0,
        watched: Span::ZERO,
    };
    let point_results =
        PointResults { counts: quarters.clone().map(count).collect(), flows: Vec::new() };
    let settled = Settled { point_results, ..Settled::nothing(time(quarters.end)) };
    collector.results().store(7, &settled).unwrap();
}

fn task() -> TaskRecord {
    entered(r#"{"name":"v","measure":"traffic","at":"a/eth0","interval":"15m"}"#)
}

fn entered(text: &str) -> TaskRecord {
    let task = serde_json::from_str(text).unwrap();
    TaskRecord { task, made: Timestamp::UNIX_EPOCH, ended: None }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = files(folder).unwrap().into_iter().map(|it| it.hour).collect();
    names.sort();
    names
}

fn everything() -> ResultRange {
    ResultRange { step: Step::AsMeasured, from: i64::MIN, until: i64::MAX, most: 99 }
}

#[test]
fn complete_hours_are_archived_and_deleted() {
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
    let written = ArchiveCounts { results: 8, ..ArchiveCounts::default() };
    assert_eq!(*collector.archived().borrow(), written);
    // Nothing is left to do.
    fs::remove_file(&file).unwrap();
    archive.tend_task(7, &task()).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08"]);
    assert_eq!(collector.results().counted(7, &everything()).unwrap().len(), 9);
    // The current hour is not archived, and stays.
    collector.results().forget(7, begin + Span::from_secs(999_999)).unwrap();
    let left = collector.results().counted(7, &everything()).unwrap();
    assert_eq!(left.iter().map(|it| it.packets).collect::<Vec<_>>(), [8]);
    let by_hour = ResultRange { step: Step::Hour, ..everything() };
    assert_eq!(collector.results().counted(7, &by_hour).unwrap().len(), 3);
}

const PLAIN: &str = r#"{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":6,"protocol":17,
    "packets":1,"bytes":60,"first_ns":0,"last_ns":0,"trains":1}"#;
const TCP: &str = r#"{"src":"2001:db8::1","dst":"2001:db8::2","sport":80,"dport":9,"protocol":6,
    "packets":7,"bytes":700,"first_ns":1,"last_ns":20,"throughput_bps":2.5,"lost":2,"reordered":0,
    "trains":1,"retransmitted":2,"rtt_ns":null,"handshake_ns":30}"#;

/// The columns with values, for each row of a file.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let known = |row: parquet::record::Row| {
        let columns = row.into_columns().into_iter().filter(|(_, it)| *it != Cell::Null);
        columns.map(|(name, value)| (name, value.to_string())).collect()
    };
    rows.map(known).collect()
}

#[test]
fn flow_is_in_the_hour_of_its_last_packet() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 0);
    let tell = |flows: &[(&str, i64)], until: i64| {
        let flow = |&(report, last): &(&str, i64)| {
            let last = begin + Span::from_secs(last);
            Flow { key: report.to_owned(), last, report: Some(report.to_owned()) }
        };
        let point_results =
            PointResults { counts: Vec::new(), flows: flows.iter().map(flow).collect() };
        let until = begin + Span::from_secs(until);
        collector
            .results()
            .store(7, &Settled { point_results, ..Settled::nothing(until) })
            .unwrap();
    };
    // One flow continues into the next hour, and one report is not valid.
    tell(&[("going on", 3599), (TCP, 20), ("{}", 30)], 3600);
    tell(&[("going on", 3601)], 3605);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
    let task = entered(r#"{"name":"f","measure":"flows","at":"a/eth0"}"#);
    archive.tend_task(7, &task).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08"]);
    let file = path.join("task=f").join("hour=2027-01-15T08").join("7.parquet");
    // Late results are added to the file.
    assert_eq!(rows(&file).len(), 1);
    tell(&[(PLAIN, 10)], 3610);
    archive.tend_task(7, &task).unwrap();
    let rows = rows(&file);
    let [tcp, plain] = rows.as_slice() else { panic!("{rows:?}") };
    let of = |row: &BTreeMap<String, String>, names: [&str; 4]| {
        names.map(|name| row.get(name).cloned().unwrap_or_default())
    };
    let names = ["dst", "packets", "lost", "handshake_ns"];
    assert_eq!(of(tcp, names), ["\"2001:db8::2\"", "7", "2", "30"]);
    assert_eq!(of(plain, names), ["\"192.0.2.2\"", "1", "", ""]);
    // Archived flows are deleted, others stay.
    collector.results().forget(7, begin + Span::from_secs(999_999)).unwrap();
    assert_eq!(collector.results().flows(7, &everything()).unwrap(), ["going on"]);
}

#[test]
fn last_hour_is_archived_at_end_and_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 5);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
    let ended = Timestamp::from_nanosecond((begin + Span::from_secs(5 * 900)).as_nanos().into());
    let ended = TaskRecord { ended: Some(ended.unwrap()), ..task() };
    archive.tend_task(7, &task()).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08"]);
    archive.tend_task(7, &ended).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08", "2027-01-15T09"]);
    let last = path.join("task=v").join("hour=2027-01-15T09").join("7.parquet");
    let first = fs::read(&last).unwrap();
    count(&collector, begin, 5..6);
    archive.tend_task(7, &ended).unwrap();
    assert_ne!(fs::read(&last).unwrap(), first);
    // Nothing is left to do.
    fs::remove_file(&last).unwrap();
    archive.tend_task(7, &ended).unwrap();
    assert_eq!(names(&path), ["2027-01-15T08"]);
}

#[test]
fn oldest_files_are_deleted_first_foreign_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    // Long ago.
    let begin = Time::from_nanos(1_500_000_000 * SECOND).interval_begin(Span::from_secs(3600));
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
fn truncated_files_are_written_again_or_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 9);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
    archive.tend_task(7, &task()).unwrap();
    let file = |hour: &str| path.join("task=v").join(format!("hour=2027-01-15T{hour}/7.parquet"));
    let truncate = |file: &Path| {
        let whole = fs::read(file).unwrap();
        fs::write(file, &whole[..whole.len() / 2]).unwrap();
        whole
    };
    let whole = ["08", "09"].map(|hour| truncate(&file(hour)));
    let tasks = BTreeMap::from([(7, task())]);
    archive.replace_damaged(&tasks);
    assert_eq!(["08", "09"].map(|hour| fs::read(file(hour)).unwrap()), whole);
    // Without the results, nothing can be written.
    collector.results().forget(7, begin + Span::from_secs(3600)).unwrap();
    truncate(&file("08"));
    archive.replace_damaged(&tasks);
    assert!(!file("08").exists() && file("08").with_extension("damaged").exists());
    assert_eq!(fs::read(file("09")).unwrap(), whole[1]);
}

#[test]
fn removed_task_leaves_neither_files_nor_results() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 9);
    let (removal, removed) = watch::channel(Arc::default());
    let collector = Arc::into_inner(collector).unwrap().with_removed(removed);
    let collector = Arc::new(collector);
    let path = folder.path().join("archive");
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path.clone(), Arc::clone(&collector), keep);
    archive.tend_task(7, &task()).unwrap();
    let last = path.join("task=v").join("hour=2027-01-15T09");
    for name in ["7.new", "7.damaged", "70.parquet", "7.txt"] {
        fs::write(last.join(name), "x").unwrap();
    }
    archive.remove_tasks();
    assert_eq!(names(&path).len(), 4, "nothing was removed yet");
    removal.send_replace(Arc::new([7].into()));
    archive.remove_tasks();
    let mut left: Vec<_> = entries(&last).unwrap();
    left.sort();
    assert_eq!(left, ["7.txt", "70.parquet"].map(|name| last.join(name)));
    assert!(!path.join("task=v").join("hour=2027-01-15T08").exists());
    assert!(collector.results().counted(7, &everything()).unwrap().is_empty());
    assert!(!collector.results().is_stored(7).unwrap());
    // A maintenance that began earlier writes no file again.
    archive.tend_task(7, &task()).unwrap();
    assert_eq!(names(&path), ["2027-01-15T09"]);
}

#[test]
fn archive_without_files_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    assert!(files(&folder.path().join("none")).unwrap().is_empty());
}

#[test]
fn failure_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Time::from_nanos(1_800_000_000 * SECOND);
    let collector = collector(folder.path(), begin, 9);
    let path = folder.path().join("archive");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("task=v"), "not a folder").unwrap();
    let keep = Keep { age: 1000 * 365 * DAY, bytes: None };
    let archive = Archive::new(path, Arc::clone(&collector), keep);
    archive.maintain(&BTreeMap::from([(7, task())]));
    let failed = ArchiveCounts { failures: 1, ..ArchiveCounts::default() };
    assert_eq!(*collector.archived().borrow(), failed);
}
