//! Measured windows and a task's progress, as stored and as read.

use super::*;

#[test]
fn results_and_progress_survive_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path).unwrap();
    let beginning = results.progress(7).unwrap();
    assert_eq!(beginning.settled_until, Time::from_nanos(i64::MIN));
    assert_eq!(beginning.delivered, [Delivered::default(); 2]);
    results.begin_spool(7, Point::A, 70, 0).unwrap();
    results.begin_spool(7, Point::B, 71, 0).unwrap();
    let known = window(Ok(Span::from_nanos(500)));
    let unknown = window(Err(NotSynchronised::Second));
    let windows = vec![(SECOND, known.clone()), (3 * SECOND, unknown.clone())];
    results.store(7, &settled(4 * SECOND, windows, [3, 4])).unwrap();
    results.store(7, &settled(5 * SECOND, vec![(4 * SECOND, known.clone())], [4, 4])).unwrap();
    results.store(8, &settled(2 * SECOND, vec![(SECOND, known.clone())], [0, 0])).unwrap();
    drop(results);
    let mut results = Results::open(&path).unwrap();
    let first = Delivered { spool: Some(70), acknowledged: 4, dropped: 0, is_unknown: false };
    let second = Delivered { spool: Some(71), dropped: 10, ..first };
    let progress = results.progress(7).unwrap();
    assert_eq!(progress.settled_until, Time::from_nanos(5 * SECOND));
    assert_eq!(progress.delivered, [first, second]);
    let as_measured = |from, until| range(Step::AsMeasured, from, until);
    let measured = results.measured(7, &as_measured(0, 4 * SECOND)).unwrap();
    let begins: Vec<_> = measured.iter().map(|it| it.begin_ns).collect();
    assert_eq!(begins, [SECOND, 3 * SECOND]);
    for (measured, window) in measured.iter().zip([&known, &unknown]) {
        check(measured, window, 0.0);
    }
    let one = ResultRange { most: 1, ..as_measured(SECOND + 1, i64::MAX) };
    assert_eq!(results.measured(7, &one).unwrap(), measured[1..]);
    let all = results.measured(7, &as_measured(0, i64::MAX)).unwrap();
    let briefs = results.briefs(7, Time::from_nanos(0), 2).unwrap();
    assert_eq!(briefs.len(), 2);
    briefs.iter().zip(&all[1..]).for_each(|(brief, whole)| check_brief(brief, whole));
    results.begin_spool(7, Point::B, 72, 6).unwrap();
    let second = Delivered { spool: Some(72), acknowledged: 6, dropped: 10, is_unknown: true };
    assert_eq!(results.progress(7).unwrap().delivered, [first, second]);
}

/// Asserts equal contents.
fn check_brief(brief: &Brief, whole: &Measured) {
    let Brief { begin_ns, matched, lost, error_ns, contradicts_the_clocks, .. } = *brief;
    let (counts, contradicts) = (whole.counts, whole.contradicts_the_clocks);
    assert_eq!((begin_ns, contradicts_the_clocks), (whole.begin_ns, contradicts));
    assert_eq!((matched, lost, error_ns), (counts.matched, counts.lost, whole.error_ns));
    let rounded = |spread: Option<Spread>| spread.map(|it| it.mean.round());
    let real = |nanos: Option<i64>| nanos.map(|it| it as f64);
    assert_eq!(real(brief.delay_mean_ns), rounded(whole.delay_ns));
    let above = rounded(whole.above_minimum_ns.filter(|_| whole.delay_ns.is_none()));
    assert_eq!(real(brief.above_minimum_mean_ns), above);
}

#[test]
fn unsynchronised_clocks_give_delay_differences_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(&folder.path().join("results")).unwrap();
    let [unknown, known] = [Err(NotSynchronised::First), Ok(Span::from_nanos(500))].map(window);
    results.store(7, &settled(2 * SECOND, vec![(0, unknown), (SECOND, known)], [1, 1])).unwrap();
    let measured = results.measured(7, &range(Step::AsMeasured, 0, i64::MAX)).unwrap();
    let value = serde_json::to_value(&measured[0]).unwrap();
    assert_eq!((&value["sent"], &value["lost"]), (&10.into(), &1.into()));
    assert_eq!((&value["delay_ns"], &value["error_ns"]), (&().into(), &().into()));
    assert_eq!(value["not_synchronised"], "first");
    assert_eq!(value["above_minimum_ns"]["max"], 8000);
    let delay = measured[1].delay_ns.as_ref().unwrap();
    assert_eq!((delay.min, delay.max, measured[1].error_ns), (1000, 9000, Some(520)));
}
