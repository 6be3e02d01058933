use std::path::Path;

use tokio::runtime::Runtime;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Quality;

use super::*;
use crate::collector::{Flow, PointResults, Results, Settled, Window};
use crate::controller::testing as sample;

fn time(second: i64) -> Time<Utc> {
    Time::from_nanos(0) + Span::from_secs(second)
}

/// Stores three seconds of the first task, settled up to one minute.
fn store(folder: &Path) {
    let empty =
        Window { quality: Quality::new(), offset: Ok(Span::ZERO), least: None, return_path: None };
    let windows = [1, 2, 3].map(|second| (time(second), empty.clone())).into();
    let mut results = Results::open(&folder.join("results.sqlite")).unwrap();
    results.store(1, &Settled { windows, ..Settled::nothing(time(60)) }).unwrap();
}

fn seconds(results: &[Measured]) -> Vec<i64> {
    results.iter().map(|it| it.begin_ns / 1_000_000_000).collect()
}

/// New results in the next response, which is of the first task.
async fn next(poller: &mut Poller, tasks: &Tasks) -> Vec<i64> {
    let next_response = poller.next_response().await.unwrap();
    let Some((task, NewResults::Results(results))) = poller.take(next_response, tasks).unwrap()
    else {
        panic!("results")
    };
    assert_eq!(task, 1);
    seconds(&results)
}

#[test]
fn hanging_collector_does_not_delay_others() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path());
    let controller = sample::open(folder.path(), &runtime);
    for name in ["p", "silent"] {
        let points = r#""measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0""#;
        sample::enter(&controller, &format!(r#"{{"name":"{name}",{points}}}"#));
    }
    let silent = sample::hang(&controller, 2);
    let mut tasks = Tasks::clone(&controller.plan().subscribe().borrow());
    let mut poller = Poller::behind(&Tasks::new(), controller.sources());
    runtime.block_on(async {
        poller.poll(&tasks);
        assert_eq!(next(&mut poller, &tasks).await, [1, 2, 3]);
        // A response with results leads to another query.
        assert!(next(&mut poller, &tasks).await.is_empty());
        assert_eq!(poller.queries.len(), 1);
        // New results arrived during the query.
        poller.poll(&tasks);
        poller.poll(&tasks);
        assert!(next(&mut poller, &tasks).await.is_empty());
        assert!(next(&mut poller, &tasks).await.is_empty());
        assert_eq!(poller.queries.len(), 1);
        // The task was ended, but its results are not final yet.
        for (ended, still_asked) in [(55, true), (51, true), (50, false)] {
            tasks.get_mut(&1).unwrap().ended = Some(Timestamp::from_second(ended).unwrap());
            poller.poll(&tasks);
            assert_eq!(poller.queries.len(), 2);
            assert!(next(&mut poller, &tasks).await.is_empty());
            poller.poll(&tasks);
            let is_asked = poller.queries.len() == 2;
            assert_eq!(is_asked, still_asked, "{ended}");
            if is_asked {
                next(&mut poller, &tasks).await;
            }
        }
    });
    drop(silent);
}

#[test]
fn earlier_results_are_not_exported() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path());
    let controller = sample::open(folder.path(), &runtime);
    let task = r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;
    sample::enter(&controller, task);
    let tasks = Tasks::clone(&controller.plan().subscribe().borrow());
    let mut poller = Poller::behind(&tasks, controller.sources());
    runtime.block_on(async {
        poller.poll(&tasks);
        assert!(next(&mut poller, &tasks).await.is_empty());
        assert_eq!(poller.queries.len(), 0);
    });
}

/// What they had before is not exported as new.
#[test]
fn earlier_flows_are_the_base_of_later_ones() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let report = r#"{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":6,"protocol":17,
        "first_ns":1000000000,"last_ns":2000000000,"packets":3}"#;
    let flows = vec![Flow::read(report.to_owned()).unwrap()];
    let point_results = PointResults { counts: Vec::new(), flows };
    let mut results = Results::open(&folder.path().join("results.sqlite")).unwrap();
    results.store(1, &Settled { point_results, ..Settled::nothing(time(60)) }).unwrap();
    drop(results);
    let controller = sample::open(folder.path(), &runtime);
    sample::enter(&controller, r#"{"name":"f","measure":"flows","at":"roof/eth0"}"#);
    let tasks = Tasks::clone(&controller.plan().subscribe().borrow());
    let mut poller = Poller::behind(&tasks, controller.sources());
    runtime.block_on(async {
        poller.poll(&tasks);
        let response = poller.next_response().await.unwrap();
        let new = poller.take(response, &tasks).unwrap();
        let Some((1, NewResults::EarlierFlows(reports, since))) = new else { panic!("{new:?}") };
        assert_eq!((reports.len(), since), (1, 60_000_000_000));
        poller.poll(&tasks);
        let response = poller.next_response().await.unwrap();
        let new = poller.take(response, &tasks).unwrap();
        assert!(matches!(new, Some((1, NewResults::Flows(reports))) if reports.is_empty()));
        // The task was ended, and all its flows were read.
        let mut tasks = tasks;
        tasks.get_mut(&1).unwrap().ended = Some(Timestamp::from_second(60).unwrap());
        poller.poll(&tasks);
        let response = poller.next_response().await.unwrap();
        poller.take(response, &tasks).unwrap();
        poller.poll(&tasks);
        assert_eq!(poller.queries.len(), 0);
        // It was removed.
        poller.poll(&Tasks::new());
        assert!(poller.states.is_empty());
    });
}

#[test]
fn ended_task_is_polled_until_its_results_are_delivered() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let flows = |millis: i64, now| is_over(true, at(1000), millis * 1_000_000, at(now));
    // Probes may stop 900 ms before the end, and measure 10 s longer.
    assert_eq!([999_000, 999_100].map(|settled| flows(settled, 1010)), [false, true]);
    assert!(!flows(1_000_000, 1009));
    // A batch is never delivered.
    assert_eq!([86_399, 86_400].map(|age| flows(500_000, 1000 + age)), [false, true]);
    // Delays are settled beyond the end.
    let delays = |settled: i64| is_over(false, at(1000), settled * 1_000_000_000, at(999_999));
    assert_eq!([1009, 1010].map(delays), [false, true]);
}
