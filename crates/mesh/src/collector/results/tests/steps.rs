//! Windows merged to minutes and hours.

use wirestamp_metrics::CompactHistogram;

use super::*;

#[test]
fn minutes_and_hours_are_merged_after_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(&folder.path().join("results")).unwrap();
    let part = |ids, offset| Window {
        quality: quality(ids),
        offset,
        least: Some(Span::ZERO),
        return_path: None,
    };
    let synchronised = Ok(Span::from_nanos(500));
    let parts = [
        (58, part(0..10, synchronised)),
        (59, part(10..12, Ok(Span::from_nanos(700)))),
        (60, part(12..13, synchronised)),
        (61, part(13..20, Err(NotSynchronised::Second))),
        (119, part(20..21, synchronised)),
        (3600, part(21..22, synchronised)),
    ];
    let mut store = |until: i64, parts: &[(i64, Window)]| {
        let windows = parts.iter().map(|(second, it)| (second * SECOND, it.clone())).collect();
        results.store(7, &settled(until * SECOND, windows, [1, 1])).unwrap();
        [Step::Minute, Step::Hour]
            .map(|step| results.measured(7, &range(step, i64::MIN, i64::MAX)).unwrap())
    };
    assert_eq!(store(59, &parts[..1]), [vec![], vec![]]);
    let [minutes, hours] = store(90, &parts[1..4]);
    assert_eq!((minutes.len(), hours.len()), (1, 0));
    let mut whole = part(0..10, Ok(Span::from_nanos(700)));
    whole.quality.merge(&parts[1].1.quality);
    check(&minutes[0], &whole, CompactHistogram::ERROR);
    assert_eq!(minutes[0].begin_ns, 0);
    let [minutes, hours] = store(3601, &parts[4..]);
    assert_eq!((minutes.len(), hours.len()), (2, 1));
    let mut second = part(12..13, Err(NotSynchronised::Second));
    second.quality.merge(&parts[3].1.quality);
    second.quality.merge(&parts[4].1.quality);
    check(&minutes[1], &second, CompactHistogram::ERROR);
    whole.offset = Err(NotSynchronised::Second);
    whole.quality.merge(&second.quality);
    check(&hours[0], &whole, CompactHistogram::ERROR);
}

#[test]
fn last_windows_are_merged_at_end_and_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let known = |ids| Window { quality: quality(ids), ..window(Ok(Span::from_nanos(500))) };
    let second = |second: i64, ids| {
        settled((second + 1) * SECOND, vec![(second * SECOND, known(ids))], [1, 1])
    };
    let sent = |results: &Results| {
        [Step::AsMeasured, Step::Minute, Step::Hour].map(|step| {
            let measured = results.measured(7, &range(step, 0, i64::MAX)).unwrap();
            measured.iter().map(|it| (it.begin_ns / SECOND, it.counts.sent)).collect::<Vec<_>>()
        })
    };
    let at = |second: i64| Time::from_nanos(second * SECOND);
    let mut results = Results::open(&path).unwrap();
    results.store(7, &second(59, 1..3)).unwrap();
    results.store(7, &second(70, 3..6)).unwrap();
    // Results of the hour are possible up to its last nanosecond.
    let still = at(3600) - Span::from_nanos(1);
    assert_eq!(results.next_hour(7, |_| still).unwrap(), None);
    assert_eq!(sent(&results), [vec![(59, 2), (70, 3)], vec![(0, 2)], vec![]]);
    // The same at each call, also after a restart.
    for _ in 0..2 {
        drop(results);
        results = Results::open(&path).unwrap();
        let hour = results.next_hour(7, |settled_until| {
            assert_eq!(settled_until, at(71));
            at(3600)
        });
        assert_eq!(hour.unwrap().map(|it| it.begin), Some(at(0)));
        let minutes = vec![(0, 2), (60, 3)];
        assert_eq!(sent(&results), [vec![(59, 2), (70, 3)], minutes, vec![(0, 5)]]);
    }
    let minute = &results.measured(7, &range(Step::Minute, 60 * SECOND, i64::MAX)).unwrap()[0];
    check(minute, &known(3..6), CompactHistogram::ERROR);
    // More results arrive during archiving, and afterwards.
    let hour = results.next_hour(7, |_| at(3600)).unwrap().unwrap();
    results.store(7, &second(71, 6..10)).unwrap();
    results.archived(7, &hour).unwrap();
    let hour = results.next_hour(7, |_| at(3600)).unwrap().unwrap();
    assert_eq!(sent(&results)[1..], [vec![(0, 2), (60, 7)], vec![(0, 9)]]);
    results.archived(7, &hour).unwrap();
    assert_eq!(results.next_hour(7, |_| at(3600)).unwrap(), None);
    results.forget(7, at(999_999)).unwrap();
    results.store(7, &second(72, 10..11)).unwrap();
    let hour = results.next_hour(7, |_| at(3600)).unwrap();
    assert_eq!(hour.map(|it| it.begin), Some(at(0)));
    let seconds = vec![(70, 3), (71, 4), (72, 1)];
    assert_eq!(sent(&results), [seconds, vec![(0, 2), (60, 8)], vec![(0, 10)]]);
    let found = results.histograms(7, 0..i64::MAX).unwrap();
    assert_eq!((found.delay.count(), found.missing.delay), (10, 0));
}
