//! Delay histograms of any time range.

use wirestamp_metrics::CompactHistogram;

use super::*;

#[test]
fn histograms_cover_any_range_and_count_missing_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path).unwrap();
    let synchronised = |ids| Window {
        quality: quality(ids),
        offset: Ok(Span::from_nanos(500)),
        least: Some(Span::ZERO),
        return_path: None,
    };
    let unknown = Window { offset: Err(NotSynchronised::First), ..synchronised(3..5) };
    let windows = [
        (59, synchronised(1..3)),
        (60, unknown),
        (61, synchronised(5..9)),
        (3600, synchronised(9..10)),
        (3660, synchronised(10..13)),
    ];
    let windows = windows.map(|(second, window)| (second * SECOND, window)).into();
    results.store(7, &settled(3700 * SECOND, windows, [1, 1])).unwrap();
    let counts = |results: &Results, from: i64, until: i64| {
        let found = results.histograms(7, from * SECOND..until * SECOND).unwrap();
        let Missing { delay, variation } = found.missing;
        (found.delay.count(), delay, found.variation.count(), variation)
    };
    assert_eq!(counts(&results, 0, 9999), (10, 2, 7, 0));
    assert_eq!(counts(&results, 59, 61), (2, 2, 2, 0));
    assert_eq!(counts(&results, 60, 61), (0, 2, 1, 0));
    assert_eq!(counts(&results, 61, 3601), (5, 0, 3, 0));
    let found = results.histograms(7, i64::MIN..i64::MAX).unwrap();
    let mut expected = CompactHistogram::default();
    for ids in [1..3, 5..9, 9..10, 10..13] {
        expected.merge(&quality(ids).delay().into());
    }
    assert_eq!(found.delay, expected);
    assert_eq!(counts(&results, 100, 50), (0, 0, 0, 0));
    assert_eq!(results.histograms(8, 0..i64::MAX).unwrap(), Histograms::default());
}

#[test]
fn database_without_histograms_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path).unwrap();
    let known = || window(Ok(Span::from_nanos(500)));
    let second = |second| settled((second + 1) * SECOND, vec![(second * SECOND, known())], [1, 1]);
    results.store(7, &second(1)).unwrap();
    let before =
        "DROP TABLE histogram; DROP TABLE return_path; DROP TABLE epoch; DROP TABLE count_tail;
                  DROP TABLE count_earlier; DROP TABLE observed_batch; DROP TABLE observed_hour;
                  ALTER TABLE task DROP COLUMN epoch; PRAGMA user_version = 3;";
    results.database.change(|change| change.execute_batch(before)).unwrap();
    drop(results);
    let mut results = Results::open(&path).unwrap();
    results.store(7, &second(2)).unwrap();
    results.store(7, &second(60)).unwrap();
    results.store(7, &second(120)).unwrap();
    let found = results.histograms(7, 0..i64::MAX).unwrap();
    let missing = Missing { delay: 9, variation: found.variation.count() / 3 };
    assert_eq!((found.delay.count(), found.missing), (27, missing));
    let minutes = results.measured(7, &range(Step::Minute, 0, i64::MAX)).unwrap();
    let medians: Vec<_> = minutes.iter().map(|it| it.delay_ns.unwrap().p50.is_some()).collect();
    assert_eq!(medians, [false, true]);
}
