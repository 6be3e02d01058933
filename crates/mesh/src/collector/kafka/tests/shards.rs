//! Tasks with several shards, which move between collectors: the merged results are those of one shard at one collector.

use wirestamp_metrics::{CompactHistogram, Counts};

use super::*;
use crate::collector::{Measured, ResultRange, ShardWindow, Spread, Step, merge_shards};

/// The windows of all shards, and the histograms of all windows.
fn merged(files: &[PathBuf], count: u16) -> (Vec<Measured>, [CompactHistogram; 2]) {
    let range = ResultRange { step: Step::AsMeasured, from: 0, until: i64::MAX, most: u32::MAX };
    let mut windows: Vec<ShardWindow> = Vec::new();
    for file in files {
        let results = Results::open(file).unwrap();
        windows.extend(shards(count).flat_map(|it| results.shard_windows(it, &range).unwrap()));
    }
    let mut histograms = [CompactHistogram::default(), CompactHistogram::default()];
    for window in &windows {
        histograms[0].merge(&window.histograms().delay);
        histograms[1].merge(&window.histograms().variation);
    }
    (merge_shards(windows).collect(), histograms)
}

/// Compares means and standard deviations up to rounding, and all else but percentiles exactly.
fn is_same(one: Option<&Spread>, other: Option<&Spread>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(1.0);
    let exact = |it: &Spread| (it.count, it.min, it.max);
    exact(one) == exact(other) && is_near(one.mean, other.mean) && is_near(one.stddev, other.stddev)
}

fn check(
    first: u64,
    expected: &(Vec<Measured>, [CompactHistogram; 2]),
    until: [Time<wirestamp_clock::Utc>; 2],
) {
    for seed in (first..seeds()).step_by(2) {
        let count = [1, 2, 4][usize::try_from(seed % 3).unwrap()];
        let collectors = [1, 2, 3][usize::try_from(seed / 3 % 3).unwrap()];
        let mut world = World::new(seed, collectors, count);
        world.run(until);
        world.stores.iter_mut().for_each(|it| it.running = None);
        let files: Vec<_> =
            world.stores.iter().map(|it| it.folder.join("results.sqlite")).collect();
        let (windows, histograms) = merged(&files, count);
        let what = format!("seed {seed}, {count} shards: {:?}", world.histories());
        assert_eq!(histograms, expected.1, "{what}");
        assert_eq!(windows.len(), expected.0.len(), "{what}");
        for (found, expected) in windows.iter().zip(&expected.0) {
            let exact = |it: &Measured| {
                (it.begin_ns, it.counts, it.error_ns, it.not_synchronised, it.counts_are_bounds)
            };
            assert_eq!(exact(found), exact(expected), "{what}");
            for spread in [
                |it: &Measured| it.delay_ns,
                |it: &Measured| it.above_minimum_ns,
                |it: &Measured| it.variation_ns,
            ] {
                let (found, expected) = (spread(found), spread(expected));
                let is_same = is_same(found.as_ref(), expected.as_ref());
                assert!(is_same, "{what}: {found:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn merged_shards_are_the_whole_task() {
    let folder = folder();
    let file = folder.path().join("results.sqlite");
    let until = deliver_directly(&file);
    let expected = merged(&[file], 1);
    let mut all = Counts::default();
    expected.0.iter().for_each(|it| all.add(&it.counts));
    // Packets are lost, and others were missed by a capture, or dropped with a batch.
    assert!(all.matched > 100 && all.lost >= 3 && all.undetermined_sent >= 3, "{all:?}");
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| {
            scope.spawn({
                let expected = &expected;
                move || check(first, expected, until)
            })
        });
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// Results of a random stream with `count` shards: all packets of the task.
fn counted(seed: u64, count: u16) -> Counts {
    let file = folder();
    let file = file.path().join("results.sqlite");
    let collector = Arc::new(Collector::new(Results::open(&file).unwrap(), tasks(count)));
    for (number, shard) in shards(count).zip(0..) {
        let shard = Shard::new(shard, count).unwrap();
        for (point, name) in (0..).zip(NAMES) {
            let origin = SpoolOrigin { spool: 7, first: 1, instance: 9 };
            let channel = collector.open(&name.parse().unwrap(), (number, point), origin).unwrap();
            for (nth, mut batch) in (1..).zip(stream(seed, point)) {
                batch.observations.retain(|it| shard.has(it.flow.shard_hash()));
                channel.take(nth, &batch.encode()).unwrap();
            }
        }
    }
    drop(collector);
    let mut all = Counts::default();
    merged(&[file], count).0.iter().for_each(|it| all.add(&it.counts));
    all
}

/// Batches of a point. The network loses packets while captures miss others.
fn stream(seed: u64, point: u32) -> Vec<ObservationBatch> {
    let mut rng = Rng::with_seed(seed);
    let mut seen = [Vec::new(), Vec::new()];
    let mut missed = [Vec::new(), Vec::new()];
    for id in 0..400 {
        let sent = BEGIN + id * 20_000_000;
        let received = sent + rng.i64(0..40_000_000);
        let fate = rng.u8(0..40);
        for (point, time) in [(0, sent), (1, received)] {
            if fate == point {
                missed[usize::from(point)].push(time);
            } else if fate != 3 || point == 0 {
                seen[usize::from(point)].push(observation(id, time));
            }
        }
    }
    let point = point as usize;
    seen[point].sort_by_key(|it| it.stamp.utc);
    let batch = |nth: i64| {
        let (from, until) = (BEGIN + nth * BATCH, BEGIN + (nth + 1) * BATCH);
        let observations = seen[point].iter().copied();
        let is_here = |it: &Observation| (from..until).contains(&it.stamp.utc.as_nanos());
        let packets = missed[point].iter().filter(|it| (from..until).contains(*it)).count() as u64;
        let [from, until] = [from, until].map(Time::from_nanos);
        ObservationBatch {
            observations: observations.filter(is_here).collect(),
            missed: Some(CaptureLoss { from, until, packets })
                .into_iter()
                .filter(|it| it.packets > 0)
                .collect(),
            complete_until: until,
            begin: (nth == 0).then_some(Time::from_nanos(BEGIN - SECOND)),
            clock: MachineClock { machine: [7; 16], error: None },
            answers: None,
        }
    };
    (0..60).map(batch).collect()
}

/// Packets that a capture missed may count as undetermined in each shard, but never as lost.
#[test]
fn shards_never_overestimate_loss() {
    let mut differences = 0;
    for seed in 0..40 {
        let whole = counted(seed, 1);
        assert!(whole.lost > 0 && whole.undetermined_sent > 0, "{whole:?}");
        for count in [2, 4] {
            let merged = counted(seed, count);
            assert!(merged.lost <= whole.lost, "seed {seed}: {merged:?}, {whole:?}");
            assert!(merged.unexpected <= whole.unexpected, "seed {seed}: {merged:?}, {whole:?}");
            let unresolved = |it: &Counts| {
                (it.lost + it.undetermined_sent, it.unexpected + it.undetermined_received)
            };
            assert_eq!(unresolved(&merged), unresolved(&whole), "seed {seed}");
            let known =
                |it: &Counts| (it.sent, it.received, it.matched, it.duplicated, it.reordered);
            assert_eq!(known(&merged), known(&whole), "seed {seed}");
            differences += u64::from(merged.lost < whole.lost);
        }
    }
    // Otherwise the test shows nothing.
    assert!(differences > 0);
}
