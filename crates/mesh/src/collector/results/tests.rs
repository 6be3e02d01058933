//! Tests: results are stored and read.

#![expect(clippy::cast_precision_loss, reason = "delays of microseconds")]

use std::collections::BTreeMap;
use std::ops::Range;

use crate::protocol::Count;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp};
use wirestamp_metrics::{CompactHistogram, Config, Correlator, Observation, Quality, Summary};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;
use crate::collector::{Flow, NotSynchronised, PointResults, Window};

const SECOND: i64 = 1_000_000_000;

fn observation(id: u64, nanos: i64) -> Observation {
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// Ten packets: one is lost, the others have delays of 1, 2, 3... us.
fn window(offset: Result<Span, NotSynchronised>) -> Window {
    Window { quality: quality(0..10), offset, least: Some(Span::ZERO), return_path: None }
}

fn quality(ids: Range<i64>) -> Quality {
    let (mut quality, mut correlator) = (Quality::new(), Correlator::new(Config::default()));
    let mut record = |outcome| quality.record(&outcome);
    for id in ids {
        let number = id.unsigned_abs();
        correlator.observe(Point::A, observation(number, id * 10_000), &mut record);
        if id > 0 {
            correlator.observe(Point::B, observation(number, id * 11_000), &mut record);
        }
    }
    correlator.finish(&mut record);
    quality
}

/// Selection of results in a time range.
fn range(step: Step, from: i64, until: i64) -> ResultRange {
    ResultRange { step, from, until, most: 9 }
}

fn settled(until: i64, windows: Vec<(i64, Window)>, acknowledged: [u64; 2]) -> Settled {
    let windows = windows.into_iter().map(|(begin, window)| (Time::from_nanos(begin), window));
    Settled {
        windows: windows.collect::<BTreeMap<_, _>>(),
        point_results: PointResults::default(),
        acknowledged,
        dropped: [0, 5],
        ..Settled::nothing(Time::from_nanos(until))
    }
}

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

/// Asserts that a result matches a window, with this relative error of percentiles.
fn check(measured: &Measured, window: &Window, share: f64) {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, error_ns, .. } = measured;
    let quality = &window.quality;
    let delay = quality.delay().summary();
    assert_eq!(counts, quality.counts());
    // Delays of unsynchronised clocks cannot be merged.
    let is_known = share == 0.0 || window.offset.is_ok();
    let off = share * delay.as_ref().map_or(0.0, |delay| delay.max as f64);
    let above = delay.as_ref().map(Summary::above_minimum);
    check_spread(above_minimum_ns.as_ref(), above, is_known.then_some(off));
    check_spread(delay_ns.as_ref(), delay.filter(|_| window.offset.is_ok()), Some(off));
    check_spread(variation_ns.as_ref(), quality.variation().summary(), Some(off));
    assert_eq!(*error_ns, window.error().ok().map(Span::as_nanos));
    assert_eq!(measured.not_synchronised, window.offset.err());
}

fn check_spread(spread: Option<&Spread>, summary: Option<Summary>, off: Option<f64>) {
    let (Some(spread), Some(summary)) = (spread, &summary) else {
        assert!(spread.is_none() && summary.is_none(), "{spread:?}, {summary:?}");
        return;
    };
    let whole = |it: &Spread| (it.count, it.min, it.max);
    assert_eq!(whole(spread), (summary.count, summary.min, summary.max));
    let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * other.abs();
    assert!(is_near(spread.mean, summary.mean), "{spread:?}, {summary:?}");
    assert!(is_near(spread.stddev, summary.stddev), "{spread:?}, {summary:?}");
    let expected = [summary.p50, summary.p90, summary.p99, summary.p999];
    for (found, expected) in [spread.p50, spread.p90, spread.p99, spread.p999].iter().zip(expected)
    {
        let is_as_expected = match (found, off) {
            (Some(found), Some(off)) => (found - expected).abs() as f64 <= off,
            (found, off) => found.is_none() && off.is_none(),
        };
        assert!(is_as_expected, "{spread:?}, {summary:?}");
    }
}

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

#[test]
fn counts_are_added_by_interval_minute_and_hour() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(&folder.path().join("results")).unwrap();
    let count = |second, packets| Count {
        begin: Time::from_nanos(second * SECOND),
        packets,
        bytes: 100 * packets,
        missed: 1,
        watched: Span::from_millis(500),
    };
    let mut add = |counts: Vec<Count>| {
        let point_results = PointResults { counts, flows: Vec::new() };
        let settled = Settled { point_results, ..settled(0, Vec::new(), [1, 0]) };
        results.store(7, &settled).unwrap();
    };
    add(vec![count(3590, 5), count(3595, 6)]);
    add(vec![count(3595, 7), count(3600, 8)]);
    let counted = |step| {
        let counted = results.counted(7, &range(step, 0, i64::MAX)).unwrap();
        let of = |it: &Counted| (it.begin_ns / SECOND, it.packets, it.missed, it.watched_ns);
        counted.iter().map(of).collect::<Vec<_>>()
    };
    let half = SECOND / 2;
    assert_eq!(
        counted(Step::AsMeasured),
        [(3590, 5, 1, half), (3595, 13, 2, SECOND), (3600, 8, 1, half)]
    );
    assert_eq!(counted(Step::Minute), [(3540, 18, 3, SECOND + half), (3600, 8, 1, half)]);
    assert_eq!(counted(Step::Hour), [(0, 18, 3, SECOND + half), (3600, 8, 1, half)]);
    let all = Sum { packets: 26, bytes: 2600, missed: 4, watched_ns: 2_000_000_000 };
    assert_eq!((results.sum(7).unwrap(), results.sum(8).unwrap()), (all, Sum::default()));
    // Probes may send any values.
    let mut add = |second| {
        let count = Count { packets: u64::MAX >> 1, ..count(second, 1) };
        let point_results = PointResults { counts: vec![count], flows: Vec::new() };
        results.store(7, &Settled { point_results, ..settled(0, Vec::new(), [1, 0]) }).unwrap();
    };
    add(0);
    add(3600);
    assert_eq!(results.sum(7).unwrap().packets, 1 << 62);
}

#[test]
fn flow_report_replaces_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::open(&folder.path().join("results")).unwrap();
    let flow = |key: &str, last, report: &str| Flow {
        key: key.to_owned(),
        last: Time::from_nanos(last),
        report: Some(report.to_owned()).filter(|it| !it.is_empty()),
    };
    let mut put = |flows| {
        let point_results = PointResults { counts: Vec::new(), flows };
        let settled = Settled { point_results, ..settled(0, Vec::new(), [1, 0]) };
        results.store(7, &settled).unwrap();
    };
    put(vec![flow("a", 1, "1"), flow("b", 2, "2")]);
    put(vec![flow("d", 2, "2"), flow("e", 2, "")]);
    put(vec![flow("c", 3, "3"), flow("a", 4, "4"), flow("d", 2, "")]);
    let found = |from, until| results.flows(7, &range(Step::AsMeasured, from, until)).unwrap();
    assert_eq!(found(0, 9), ["4", "3", "2"]);
    assert_eq!(found(2, 4), ["3", "2"]);
    results.forget(7, Time::from_nanos(3)).unwrap();
    assert_eq!(results.flow_count(7).unwrap(), 3, "nothing is archived yet");
    let hour = results.next_hour(7, |_| Time::from_nanos(i64::MAX)).unwrap().unwrap();
    results.archived(7, &hour).unwrap();
    results.forget(7, Time::from_nanos(3)).unwrap();
    let left = results.flows(7, &range(Step::AsMeasured, 0, 9)).unwrap();
    assert_eq!(left, ["4", "3"]);
    assert_eq!((results.flow_count(7).unwrap(), results.flow_count(8).unwrap()), (2, 0));
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
