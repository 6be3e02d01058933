use std::path::Path;

use tokio::runtime::Runtime;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Quality;

use super::*;
use crate::collector::{Results, Settled, Window};
use crate::controller::testing as sample;

fn time(second: i64) -> Time<Utc> {
    Time::from_nanos(0) + Span::from_secs(second)
}

/// Stores three seconds of the first task, which is settled for a minute.
fn store(folder: &Path) {
    let empty = Window { quality: Quality::new(), offset: Ok(Span::ZERO), least: None };
    let windows = [1, 2, 3].map(|second| (time(second), empty.clone())).into();
    let mut results = Results::open(&folder.join("results.sqlite")).unwrap();
    results.store(1, &Settled { windows, ..Settled::nothing(time(60)) }).unwrap();
}

fn seconds(results: &[Measured]) -> Vec<i64> {
    results.iter().map(|it| it.begin_ns / 1_000_000_000).collect()
}

/// What the next answer brings, which is of the first task.
async fn next(asking: &mut Asking, tasks: &Tasks) -> Vec<i64> {
    let answer = asking.answer().await.unwrap();
    let Some((task, News::Results(results))) = asking.take(answer, tasks).unwrap() else {
        panic!("results")
    };
    assert_eq!(task, 1);
    seconds(&results)
}

#[test]
fn who_hangs_keeps_nobody_waiting_and_what_is_over_is_not_asked_for() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path());
    let controller = sample::open(folder.path(), &runtime);
    for name in ["p", "silent"] {
        let points = r#""measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0""#;
        sample::enter(&controller, &format!(r#"{{"name":"{name}",{points}}}"#));
    }
    let silent = sample::hang(&controller, 2);
    let mut tasks = Tasks::clone(&controller.plan().subscribe().borrow());
    let mut asking = Asking::behind(&Tasks::new(), controller.sources());
    runtime.block_on(async {
        asking.ask(&tasks);
        assert_eq!(next(&mut asking, &tasks).await, [1, 2, 3]);
        // Whoever has something is asked for more.
        assert!(next(&mut asking, &tasks).await.is_empty());
        assert_eq!(asking.questions.len(), 1);
        // Something came while somebody was asked.
        asking.ask(&tasks);
        asking.ask(&tasks);
        assert!(next(&mut asking, &tasks).await.is_empty());
        assert!(next(&mut asking, &tasks).await.is_empty());
        assert_eq!(asking.questions.len(), 1);
        // It ended, and what was measured until then is not settled.
        for (ended, still_asked) in [(55, true), (51, true), (50, false)] {
            tasks.get_mut(&1).unwrap().ended = Some(Timestamp::from_second(ended).unwrap());
            asking.ask(&tasks);
            assert_eq!(asking.questions.len(), 2);
            assert!(next(&mut asking, &tasks).await.is_empty());
            asking.ask(&tasks);
            let is_asked = asking.questions.len() == 2;
            assert_eq!(is_asked, still_asked, "{ended}");
            if is_asked {
                next(&mut asking, &tasks).await;
            }
        }
    });
    drop(silent);
}

#[test]
fn what_was_there_before_is_not_new() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    store(folder.path());
    let controller = sample::open(folder.path(), &runtime);
    let task = r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;
    sample::enter(&controller, task);
    let tasks = Tasks::clone(&controller.plan().subscribe().borrow());
    let mut asking = Asking::behind(&tasks, controller.sources());
    runtime.block_on(async {
        asking.ask(&tasks);
        assert!(next(&mut asking, &tasks).await.is_empty());
        assert_eq!(asking.questions.len(), 0);
    });
}
