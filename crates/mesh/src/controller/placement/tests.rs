//! Placement of tasks, and their moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::collector::Begun;
use crate::controller::shared_ca::SharedCa;
use crate::pki::{Authority, Request, Role, Subject};
use crate::task::Task;

pub(super) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Tasks 1 to `last`.
fn tasks(last: u64) -> Tasks {
    let task: Task = serde_json::from_str(r#"{"name":"v","measure":"volume","at":"a/i"}"#).unwrap();
    let entered = TaskRecord { task, made: at(1), ended: None };
    (1..=last).map(|number| (number, entered.clone())).collect()
}

/// A CA that has enrolled collectors of these names.
pub(super) fn authority(folder: &Path, collectors: &[&str]) -> SharedCa {
    let now = at(Timestamp::now().as_second());
    let mut authority = Authority::create(&folder.join("authority"), now).unwrap();
    for text in collectors {
        let subject = Subject { name: name(text), role: Role::Collector };
        let lifetime = SignedDuration::from_mins(1);
        let token = authority.token(&subject, lifetime, now).unwrap();
        let request = Request::new().unwrap().pem().unwrap();
        authority.enrol(&token, &request, now).unwrap();
    }
    SharedCa::new(authority).unwrap()
}

pub(super) fn members(authority: &SharedCa) -> Arc<ValidCertificates> {
    authority.refresh().unwrap();
    let members = authority.members();
    let now = members.borrow();
    Arc::clone(&now)
}

#[test]
fn task_stays_with_its_collector() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path(), &["one"]);
    let path = folder.path().join("homes");
    let all = tasks(4);
    let placement = TaskPlacement::open(&path, &Tasks::new()).unwrap();
    placement.place([1], &all, &members(&authority)).unwrap();
    placement.connected(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
    // A collector that was not enrolled gets no tasks.
    placement.connected(&name("other"), "192.0.2.2:4749".to_owned(), at(5)).unwrap();
    placement.disconnected(&name("one"), at(5));
    for task in [1, 2, 3] {
        placement.place([task], &all, &members(&authority)).unwrap();
    }
    drop(placement);
    let placement = TaskPlacement::open(&path, &all).unwrap();
    let one = Some((name("one"), "192.0.2.1:4749".to_owned()));
    assert_eq!([1, 2, 3, 4].map(|task| placement.of(task)), [None, one.clone(), one, None]);
    let mut last = placement.subscribe();
    placement.connected(&name("one"), "192.0.2.3:4749".to_owned(), at(6)).unwrap();
    assert!(last.has_changed().unwrap());
    last.mark_unchanged();
    let remote = Destination {
        collector: "192.0.2.3:4749".to_owned(),
        tasks: vec![2, 3],
        ..Destination::default()
    };
    assert_eq!(placement.destinations(1..5, &members(&authority)), [remote]);
    // The tasks of a revoked collector go nowhere.
    authority.lock().revoke(&name("one"), None, at(Timestamp::now().as_second())).unwrap();
    let nowhere = Destination { tasks: vec![2, 3], ..Destination::default() };
    assert_eq!(placement.destinations(1..5, &members(&authority)), [nowhere]);
    placement.place([4], &all, &members(&authority)).unwrap();
    assert_eq!(placement.of(4), None);
    // Removed tasks stay with their collector, which deletes their results.
    let removed = Removed::from([1, 3, 9]);
    assert_eq!(placement.removed_of(&removed, &name("one")), [3]);
    assert!(placement.removed_of(&removed, &name("other")).is_empty());
}

#[test]
fn task_goes_to_connected_collector_with_fewest_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path(), &["one", "two"]);
    let placement = TaskPlacement::open(&folder.path().join("homes"), &Tasks::new()).unwrap();
    for text in ["one", "two"] {
        placement.connected(&name(text), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
    }
    let mut all = tasks(8);
    let mut place = |number, ended: Option<u64>| {
        if let Some(task) = ended {
            all.get_mut(&task).unwrap().ended = Some(at(9));
        }
        placement.place([number], &all, &members(&authority)).unwrap();
        placement.of(number).unwrap().0.to_string()
    };
    let homes_of = [1, 2, 3, 4].map(|number| place(number, None));
    assert_eq!(homes_of, ["one", "two", "one", "two"]);
    // Ended tasks do not count.
    assert_eq!([place(5, Some(2)), place(6, Some(4))], ["two", "two"]);
    // A connected collector is preferred.
    placement.disconnected(&name("two"), at(5));
    assert_eq!(place(7, None), "one");
    placement.disconnected(&name("one"), at(5));
    assert_eq!(place(8, None), "two");
}

#[test]
fn current_tasks_without_placement_stay_with_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path(), &["one"]);
    let path = folder.path().join("homes");
    let (before, all) = (tasks(2), tasks(3));
    let placement = TaskPlacement::open(&path, &before).unwrap();
    placement.connected(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
    let place = |placement: &TaskPlacement| {
        [1, 2, 3].map(|task| {
            placement.place([task], &all, &members(&authority)).unwrap();
            placement.of(task).map(|(name, _)| name.to_string())
        })
    };
    let found = [None, None, Some("one".to_owned())];
    assert_eq!(place(&placement), found);
    drop(placement);
    // The file is not new any more.
    assert_eq!(place(&TaskPlacement::open(&path, &all).unwrap()), found);
}

/// Collectors of tasks 1 to 7; `-` for the controller's own.
fn homes(placement: &TaskPlacement) -> [String; 7] {
    [1, 2, 3, 4, 5, 6, 7]
        .map(|task| placement.of(task).map_or_else(|| "-".to_owned(), |(name, _)| name.to_string()))
}

#[test]
fn tasks_of_an_absent_collector_move_evenly() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path(), &["one", "three", "two"]);
    let path = folder.path().join("homes");
    let all = tasks(7);
    let placement = TaskPlacement::open(&path, &tasks(1)).unwrap();
    let connect = |text: &str| {
        placement.connected(&name(text), format!("{text}.example:4749"), at(5)).unwrap();
    };
    connect("one");
    let members = || members(&authority);
    for task in 2..=5 {
        placement.place([task], &all, &members()).unwrap();
    }
    connect("two");
    placement.place([6], &all, &members()).unwrap();
    connect("three");
    assert_eq!(homes(&placement), ["-", "one", "one", "one", "one", "two", "-"]);
    let absent = || placement.move_from_absent(Duration::ZERO, &all, &members()).unwrap();
    assert_eq!(absent(), 0);
    placement.disconnected(&name("one"), at(5));
    let hour = Duration::from_secs(3600);
    assert_eq!(placement.move_from_absent(hour, &all, &members()).unwrap(), 0);
    let mut last = placement.subscribe();
    assert_eq!((absent(), absent()), (4, 0));
    assert!(last.has_changed().unwrap());
    last.mark_unchanged();
    assert_eq!(homes(&placement), ["-", "three", "three", "two", "three", "two", "-"]);
    assert_eq!(placement.moves(), 4);
    // A collector that comes back gets none of them.
    connect("one");
    assert_eq!(absent(), 0);
    // Without another collector, tasks wait.
    for text in ["one", "two", "three"] {
        placement.disconnected(&name(text), at(5));
    }
    assert_eq!(absent(), 0);
    // The certificate of one is revoked.
    connect("two");
    connect("three");
    authority.lock().revoke(&name("three"), None, at(Timestamp::now().as_second())).unwrap();
    assert_eq!(placement.move_from_absent(hour, &all, &members()).unwrap(), 3);
    assert_eq!(homes(&placement), ["-", "two", "two", "two", "two", "two", "-"]);
    drop(placement);
    let placement = TaskPlacement::open(&path, &all).unwrap();
    // After a restart of the controller, collectors have time to connect again.
    placement.connected(&name("one"), "one.example:4749".to_owned(), at(6)).unwrap();
    let soon = Duration::from_nanos(1);
    assert_eq!(placement.move_from_absent(soon, &all, &members()).unwrap(), 0);
    assert_eq!(homes(&placement), ["-", "two", "two", "two", "two", "two", "-"]);
    let collectors = placement.history(2).into_iter().map(|it| it.collector);
    let expected = ["one", "three", "two"].map(|text| Some(name(text)));
    assert_eq!(collectors.collect::<Vec<_>>(), expected);
    assert_eq!(placement.destinations([2, 6].into_iter(), &members())[0].epochs, [2, 0]);
}

#[test]
fn start_of_an_epoch_ends_the_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path(), &["one", "two"]);
    let path = folder.path().join("homes");
    let all = tasks(1);
    let measure = &all[&1].task.measure;
    let placement = TaskPlacement::open(&path, &Tasks::new()).unwrap();
    let members = members(&authority);
    let (one, two) = (name("one"), name("two"));
    let to = |placement: &TaskPlacement, to: Option<&Name>| {
        placement.move_to((1, measure), to, &members)
    };
    assert!(matches!(to(&placement, None), Err(MoveError::NotPlaced)));
    placement.connected(&one, "192.0.2.1:4749".to_owned(), at(5)).unwrap();
    placement.place([1], &all, &members).unwrap();
    assert!(matches!(to(&placement, Some(&two)), Err(MoveError::NoSuchCollector(_))));
    placement.connected(&two, "192.0.2.2:4749".to_owned(), at(5)).unwrap();
    assert_eq!(to(&placement, Some(&one)).unwrap(), 0);
    assert_eq!(to(&placement, Some(&two)).unwrap(), 1);
    // It begins nothing before it moves on.
    assert_eq!(to(&placement, None).unwrap(), 2);
    assert_eq!(to(&placement, Some(&one)).unwrap(), 3);
    let begun = |epoch, start| Begun { task: 1, epoch, start, spool: 71, behind: 9 };
    placement.begun(None, [begun(2, Some(20)), begun(3, Some(40)), begun(9, Some(9))]).unwrap();
    placement.begun(Some(&one), [begun(3, Some(30)), begun(0, None)]).unwrap();
    drop(placement);
    let placement = TaskPlacement::open(&path, &all).unwrap();
    let starts = placement.history(1).into_iter().map(|it| it.start.map(|it| it.at));
    assert_eq!(starts.collect::<Vec<_>>(), [None, None, Some(20), Some(30)]);
    let known = |collector| placement.known_to(&all, collector);
    let handover = |epoch, start| (1, Handover { epoch, start, spool: 71, behind: 9 });
    let place = |epoch, is_former| [(1, TaskEpoch { epoch, is_former })].into();
    let expected = TaskEpochs { placed: place(3, false), handovers: vec![handover(0, 20)] };
    assert_eq!(known(Some(&one)), (all.clone(), expected));
    let expected = TaskEpochs { placed: place(1, true), handovers: vec![handover(1, 20)] };
    assert_eq!(known(Some(&two)), (all.clone(), expected));
    let expected = TaskEpochs { placed: place(2, true), handovers: vec![handover(2, 30)] };
    assert_eq!(known(None), (all.clone(), expected));
    assert_eq!(placement.removed_of(&Removed::from([1]), &two), [1]);
    // The controller's own collector has tasks of its own, and those that were moved to it.
    let own = to(&placement, None).unwrap();
    let destination =
        Destination { tasks: vec![1], epochs: vec![own], own: true, ..Destination::default() };
    assert_eq!(placement.destinations([1].into_iter(), &members), [destination]);
}

#[test]
fn file_without_history_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("homes");
    let tables = "
        CREATE TABLE collector (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT;
        CREATE TABLE home (task INTEGER PRIMARY KEY, collector TEXT) STRICT;
        INSERT INTO collector VALUES ('one', '192.0.2.1:4749');
        INSERT INTO home VALUES (1, NULL), (2, 'one');
        PRAGMA application_id = 0x5753484f;
        PRAGMA user_version = 1;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(tables).unwrap();
    let placement = TaskPlacement::open(&path, &tasks(3)).unwrap();
    assert_eq!(homes(&placement), ["-", "one", "-", "-", "-", "-", "-"]);
    let lengths = [1, 2, 3].map(|task| placement.history(task).len());
    assert_eq!(lengths, [1, 1, 0]);
}

#[test]
fn ten_thousand_tasks_are_even_before_and_after_a_collector_is_away() {
    const TASKS: u64 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let names = ["one", "two", "three"];
    let authority = authority(folder.path(), &names);
    let placement = TaskPlacement::open(&folder.path().join("homes"), &Tasks::new()).unwrap();
    for text in names {
        placement.connected(&name(text), format!("{text}:4749"), at(5)).unwrap();
    }
    let (all, members) = (tasks(TASKS), members(&authority));
    let loads = || names.map(|text| placement.tasks_of(&all, Some(&name(text))).len());
    let begin = Instant::now();
    // Probes get their tasks one after the other.
    for first in (1..=TASKS).step_by(100) {
        placement.place(first..first + 100, &all, &members).unwrap();
    }
    let placed_in = begin.elapsed();
    let placed = loads();
    assert_eq!(placed, [3334, 3333, 3333]);
    placement.disconnected(&name("two"), at(5));
    let begin = Instant::now();
    let moved = placement.move_from_absent(Duration::ZERO, &all, &members).unwrap();
    let moved_in = begin.elapsed();
    assert_eq!((moved, loads()), (3333, [5000, 0, 5000]));
    println!("placed in {placed_in:.2?}: {placed:?}; {moved} moved in {moved_in:.2?}");
}
