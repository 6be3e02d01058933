//! Results of a single point: counts and flows.

use super::*;
use crate::collector::Flow;
use crate::protocol::Count;

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
