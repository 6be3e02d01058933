//! Archived observations: each is archived once, also if the collector is killed, and programs compute the collector's
//! results from them.

#[path = "../examples/observations/paths.rs"]
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fastrand::Rng;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use paths::{Deliveries, Delivery, KEEP, SECOND, SPOOLS};
use tempfile::TempDir;
use tokio::sync::watch;
use wirestamp_mesh::collector::{Archive, Collector, Keep, Results};
use wirestamp_mesh::protocol::ObservationBatch;
use wirestamp_mesh::task::Tasks;

/// A minute before an hour and a day begin: 2023-11-14T23:59:00Z.
const BEGIN: i64 = 1_700_006_340 * SECOND;
const SECONDS: i64 = 200;

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A collector of one task, and its archive.
struct Node {
    collector: Arc<Collector>,
    archive: Archive,
    tasks: Arc<Tasks>,
}

impl Node {
    /// Opens the collector; its task has ended if `is_over`.
    fn open(folder: &Path, is_over: bool) -> Self {
        let mut record = paths::task(1, BEGIN, SECONDS);
        record.ended = record.ended.filter(|_| is_over);
        let tasks = Arc::new(Tasks::from([(1, record)]));
        let receiver = watch::channel(Arc::clone(&tasks)).1;
        let results = Results::open(&folder.join("results.sqlite")).unwrap();
        let collector = Arc::new(Collector::new(results, receiver));
        let archive = Archive::new(folder.join("archive"), Arc::clone(&collector), KEEP);
        Self { collector, archive, tasks }
    }

    fn maintain(&self) {
        self.archive.maintain(&self.tasks);
    }

    /// Number of observations in files that it has written.
    fn written(&self) -> u64 {
        self.collector.archived().borrow().observations
    }
}

/// Delivers all batches, in a random order of the points. The collector is killed and files are written meanwhile. Returns
/// the number of written observations.
fn run(folder: &Path, points: &Deliveries, rng: &mut Rng) -> u64 {
    let mut written = 0;
    let mut node = Node::open(folder, false);
    let mut channels = [None, None];
    let mut sent = [0; 2];
    loop {
        let side = rng.usize(0..2);
        let channel = &mut channels[side];
        match rng.u32(0..25) {
            0 => {
                channels = [None, None];
                written += node.written();
                // Nothing else has the collector.
                drop(node);
                node = Node::open(folder, false);
                continue;
            }
            1 => node.maintain(),
            _ => {}
        }
        let channel = channel.get_or_insert_with(|| {
            let channel = paths::open(&node.collector, 1, side).unwrap();
            sent[side] = channel.up_to().unwrap();
            channel
        });
        if paths::deliver(channel, &points[side], sent[side] + 1).unwrap() {
            sent[side] += 1;
        } else if channels.iter().all(Option::is_some)
            && (0..2).all(|it| sent[it] == points[it].len() as u64)
        {
            break;
        }
    }
    drop(channels);
    written += node.written();
    drop(node);
    let node = Node::open(folder, true);
    node.maintain();
    written + node.written()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|it| it.unwrap().path());
    paths.flat_map(|it| if it.is_dir() { files(&it) } else { vec![it] }).collect()
}

/// Rows of the files of a table: the columns with values, and the path of the file.
fn rows(folder: &Path, table: &str) -> Vec<(BTreeMap<String, String>, String)> {
    let mut found = Vec::new();
    for path in files(&folder.join("archive").join(table)) {
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let columns = row.unwrap().into_columns().into_iter();
            let columns = columns.filter(|(_, value)| *value != Field::Null);
            let columns = columns.map(|(name, value)| (name, value.to_string()));
            found.push((columns.collect(), path.to_str().unwrap().to_owned()));
        }
    }
    found
}

/// Spool, batch, position, identity and time of each observation that was delivered.
fn expected(points: &Deliveries) -> BTreeSet<[i64; 5]> {
    let mut all = BTreeSet::new();
    for (deliveries, spool) in points.iter().zip(SPOOLS) {
        for (number, delivery) in (1..).zip(deliveries) {
            let Delivery::Batch(message) = delivery else { continue };
            let Ok(batch) = ObservationBatch::decode(message) else { continue };
            for (position, seen) in (0..).zip(&batch.observations) {
                let (id, time) = (seen.id.0.cast_signed(), seen.stamp.utc.as_nanos());
                all.insert([spool, number, position, id, time]);
            }
        }
    }
    all
}

#[test]
fn each_observation_is_archived_once_if_the_collector_is_killed() {
    for seed in 0..12 {
        let (folder, mut rng) = (folder(), Rng::with_seed(seed));
        let points = paths::deliveries(seed, 2, BEGIN, SECONDS);
        let written = run(folder.path(), &points, &mut rng);
        let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<i64>().unwrap();
        let found = rows(folder.path(), "observations");
        let mut all = BTreeSet::new();
        for (row, path) in &found {
            let names = ["spool", "batch", "position", "identity", "time_ns"];
            assert!(all.insert(names.map(|it| number(row, it))), "seed {seed}: twice: {row:?}");
            let is_before = number(row, "time_ns") < BEGIN + 60 * SECOND;
            let hour =
                if is_before { "date=2023-11-14/hour=23" } else { "date=2023-11-15/hour=00" };
            let point = if row["spool"] == SPOOLS[0].to_string() { "a" } else { "b" };
            assert!(
                path.contains(&format!("task=path-1/{hour}/point={point}/")),
                "{path}: {row:?}"
            );
        }
        assert!(all == expected(&points), "seed {seed}: {} archived", all.len());
        assert_eq!(written, all.len() as u64, "seed {seed}");
        // Each batch has a row.
        let batches = rows(folder.path(), "batches");
        let is_batch = |row: &&BTreeMap<String, String>| row["kind"] != "\"missed\"";
        let of_batches = batches.iter().map(|(row, _)| row).filter(is_batch);
        let numbers: BTreeSet<_> =
            of_batches.clone().map(|row| [number(row, "spool"), number(row, "batch")]).collect();
        let delivered: usize = points.iter().map(Vec::len).sum();
        assert_eq!((of_batches.count(), numbers.len()), (delivered, delivered), "seed {seed}");
        assert!(files(folder.path()).iter().all(|it| it.extension().is_none_or(|it| it != "new")));
    }
}

#[test]
fn observations_beyond_the_size_limit_are_deleted() {
    let folder = folder();
    let points = paths::deliveries(7, 2, BEGIN, SECONDS);
    run(folder.path(), &points, &mut Rng::with_seed(7));
    assert!(!files(&folder.path().join("archive/observations")).is_empty());
    let keep = Keep { bytes: Some(0), ..KEEP };
    let Node { collector, tasks, .. } = Node::open(folder.path(), true);
    Archive::new(folder.path().join("archive"), collector, keep).maintain(&tasks);
    assert_eq!(files(&folder.path().join("archive")), Vec::<PathBuf>::new());
}

/// Python with DuckDB, where `tools/setup-peers` installs it.
const DUCKDB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/duckdb/bin/python");

/// Paths in CI. `WIRESTAMP_PATHS` sets another number.
const PATHS: u64 = 20;

#[test]
fn duckdb_computes_the_results_of_an_hour() {
    if !Path::new(DUCKDB).exists() {
        println!("skipped: needs DuckDB, which tools/setup-peers installs");
        return;
    }
    let folder = folder();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let paths = std::env::var("WIRESTAMP_PATHS").ok().and_then(|it| it.parse().ok());
    paths::write(folder.path(), (paths.unwrap_or(PATHS), 3600, 1)).unwrap();
    let archive = folder.path().join("archive");
    let compare = |archive: &Path, results: &Path, step: &str| {
        let script = format!("{root}/examples/duckdb/analyse.py");
        let mut command = Command::new(DUCKDB);
        command.arg(script).arg(archive).args(["--step", step, "--compare"]).arg(results);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
        (output.status.success(), text)
    };
    for (results, step) in [(archive.clone(), "1"), (folder.path().join("hours"), "3600")] {
        let (is_equal, text) = compare(&archive, &results, step);
        assert!(is_equal && text.contains("no differences"), "{text}");
    }
    // A missing file is a difference.
    let lost = files(&archive.join("observations/task=path-3")).into_iter().next().unwrap();
    fs::remove_file(lost).unwrap();
    let (is_equal, text) = compare(&archive, &archive, "1");
    assert!(!is_equal && text.contains("path-3"), "{text}");
}
