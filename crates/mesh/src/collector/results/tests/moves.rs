//! Results of a task that moved between two collectors.

use super::*;

/// A task moved in the 47th second: a minute and an hour have parts at both collectors.
#[test]
fn window_of_two_collectors_equals_that_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Results::open(&folder.path().join(name)).unwrap();
    let (mut all, mut one, mut other) = (open("all"), open("one"), open("other"));
    let windows = |seconds: Range<i64>| -> Vec<(i64, Window)> {
        let of = |second: i64| {
            let known = window(Ok(Span::from_nanos(500)));
            (second * SECOND, Window { quality: quality(0..9 + second % 7), ..known })
        };
        seconds.map(of).collect()
    };
    let hour = 3600 * SECOND;
    all.store(7, &settled(hour, windows(20..130), [0; 2])).unwrap();
    one.store(7, &settled(47 * SECOND, windows(20..47), [0; 2])).unwrap();
    other.store(7, &settled(hour, windows(47..130), [0; 2])).unwrap();
    let rows = |results: &Results, step: Step| {
        results.stored_rows(7, 0..step.length().as_nanos()).unwrap()
    };
    for step in [Step::Minute, Step::Hour] {
        let whole = all.measured(7, &range(step, 0, 1)).unwrap().pop();
        assert!(whole.is_some());
        let found = merged(step, 0, &[rows(&one, step), rows(&other, step)]).unwrap();
        assert_eq!(found, whole);
        // A second that is at both collectors counts once.
        let found = merged(step, 0, &[rows(&all, step), rows(&other, step)]).unwrap();
        assert_eq!(found, whole);
    }
    assert_eq!(merged(Step::Minute, hour, &[]).unwrap(), None);
    // The seconds of one collector were deleted.
    one.next_hour(7, |_| Time::from_nanos(i64::MAX)).unwrap();
    for table in ["window", "histogram"] {
        let query = format!("DELETE FROM {table} WHERE step = 0");
        one.database.change(|change| change.execute(&query, [])).unwrap();
    }
    let whole = all.measured(7, &range(Step::Hour, 0, 1)).unwrap().pop().unwrap();
    let found = merged(Step::Hour, 0, &[rows(&one, Step::Hour), rows(&other, Step::Hour)]);
    let found = found.unwrap().unwrap();
    assert_eq!(found.counts, whole.counts);
    let [found, whole] = [found, whole].map(|it| it.delay_ns.unwrap());
    assert_eq!((found.p50, found.p999, found.max), (whole.p50, whole.p999, whole.max));
    assert!((found.mean - whole.mean).abs() < 1e-6);
}

/// The former collector had stored two windows more than the probes knew.
#[test]
fn handover_deletes_windows_of_the_next_collector() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Results::open(&folder.path().join(name)).unwrap();
    let (mut one, mut short) = (open("one"), open("short"));
    let windows = |seconds: Range<i64>| -> Vec<(i64, Window)> {
        seconds.map(|second| (second * SECOND, window(Ok(Span::ZERO)))).collect()
    };
    one.store(7, &settled(62 * SECOND, windows(30..62), [0; 2])).unwrap();
    short.store(7, &settled(58 * SECOND, windows(30..58), [0; 2])).unwrap();
    let handover = Handover { epoch: 0, start: 58 * SECOND, spool: 0, behind: 0 };
    assert!(one.hand_over(7, &handover).unwrap());
    assert!(!one.hand_over(7, &handover).unwrap());
    for results in [&mut one, &mut short] {
        results.next_hour(7, |_| Time::from_nanos(i64::MAX)).unwrap();
    }
    for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
        let all = ResultRange { most: 100, ..range(step, 0, i64::MAX) };
        assert_eq!(one.measured(7, &all).unwrap(), short.measured(7, &all).unwrap());
    }
    let histograms = [&one, &short].map(|it| it.histograms(7, 0..i64::MAX).unwrap());
    assert_eq!(histograms[0], histograms[1]);
}
