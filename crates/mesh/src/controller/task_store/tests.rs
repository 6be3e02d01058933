//! Tasks and their numbers survive restarts; secrets do not leave the store.

use rusqlite::Connection;

use super::*;
use crate::secret;

fn task(text: &str) -> Task {
    serde_json::from_str(text).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn tasks_and_numbers_survive_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let plan = TaskStore::open(&path).unwrap();
    let mut last = plan.subscribe();
    let volume = task(r#"{"name":"v","measure":"volume","at":"a/eth0"}"#);
    let filtered = task(r#"{"name":"v","measure":"volume","at":"a/eth0","filter":"udp"}"#);
    assert_eq!(plan.enter(&volume, at(1)).unwrap(), Change::Created(1));
    assert!(last.has_changed().unwrap());
    assert_eq!(plan.enter(&volume, at(2)).unwrap(), Change::Unchanged(1));
    assert_eq!(plan.enter(&filtered, at(3)).unwrap(), Change::Created(2));
    let entered = |task: &Task, made, ended: Option<i64>| TaskRecord {
        task: task.clone(),
        made: at(made),
        ended: ended.map(at),
    };
    let wanted = Tasks::from([(1, entered(&volume, 1, Some(3))), (2, entered(&filtered, 3, None))]);
    assert_eq!(**last.borrow_and_update(), wanted);
    drop(plan);
    let plan = TaskStore::open(&path).unwrap();
    assert_eq!(**plan.subscribe().borrow(), wanted);
    assert_eq!(plan.end(&volume.name, at(4)).unwrap(), Some(2));
    assert_eq!(plan.end(&volume.name, at(5)).unwrap(), None);
    assert_eq!(plan.current(&volume.name), None);
    assert_eq!(plan.enter(&volume, at(6)).unwrap(), Change::Created(3));
}

#[test]
fn only_ended_tasks_are_removed_and_numbers_are_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let plan = TaskStore::open(&path).unwrap();
    let mut removed = plan.removed();
    let flows = task(r#"{"name":"f","measure":"flows","at":"a/eth0"}"#);
    let other: Name = "other".parse().unwrap();
    plan.enter(&flows, at(1)).unwrap();
    assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::Running);
    plan.end(&flows.name, at(2)).unwrap();
    for (name, number) in [(&flows.name, 2), (&other, 1), (&flows.name, u64::MAX)] {
        assert_eq!(plan.remove(name, number).unwrap(), Removal::NoSuchTask);
    }
    assert!(!removed.has_changed().unwrap());
    assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::Removed);
    assert_eq!(plan.remove(&flows.name, 1).unwrap(), Removal::NoSuchTask);
    assert_eq!(**removed.borrow_and_update(), Removed::from([1]));
    assert!(plan.subscribe().borrow().is_empty());
    drop(plan);
    let plan = TaskStore::open(&path).unwrap();
    assert_eq!(**plan.removed().borrow(), Removed::from([1]));
    assert_eq!(plan.enter(&flows, at(3)).unwrap(), Change::Created(2));
}

#[test]
fn secret_is_stored_but_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let test = |rate| {
        let text = r#"{"name":"x","measure":"active-delay","from":"a","to":"b","authenticated":true,"rate":RATE}"#;
        task(&text.replace("RATE", rate))
    };
    let plan = TaskStore::open(&path).unwrap();
    plan.enter(&test("1"), at(1)).unwrap();
    let secret = plan.secret(1).unwrap().unwrap();
    assert_eq!(secret.len(), secret::BYTES);
    drop(plan);
    let plan = TaskStore::open(&path).unwrap();
    assert_eq!(plan.enter(&test("1"), at(2)).unwrap(), Change::Unchanged(1));
    assert_eq!(plan.secret(1).unwrap().as_ref(), Some(&secret));
    assert!(!format!("{:?}", plan.subscribe().borrow()).contains("secret"));
    // The new task has a new secret, and the old one is deleted.
    assert_eq!(plan.enter(&test("2"), at(3)).unwrap(), Change::Created(2));
    assert_eq!(plan.secret(1).unwrap(), None);
    assert_ne!(plan.secret(2).unwrap().unwrap(), secret);
    let open = task(r#"{"name":"o","measure":"active-delay","from":"a","to":"b"}"#);
    assert_eq!(plan.enter(&open, at(4)).unwrap(), Change::Created(3));
    assert_eq!(plan.secret(3).unwrap(), None);
}

#[test]
fn store_without_secrets_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let tables = SCHEMA
        .tables
        .replace(", secret BLOB,\n        shard INTEGER NOT NULL DEFAULT 0", "")
        .replace("task_shard ON task (name, shard)", "task_name ON task (name)")
        .replace("user_version = 4", "user_version = 1");
    let tables = tables.replace("CREATE TABLE removed (number INTEGER PRIMARY KEY) STRICT;", "");
    let before = Connection::open(&path).unwrap();
    before.execute_batch(&tables).unwrap();
    let body = r#"{"name":"x","measure":"active-delay","from":"a","to":"b"}"#;
    let query = "INSERT INTO task (name, body, origin, made) VALUES ('x', ?, 'api', 1)";
    before.execute(query, [body]).unwrap();
    drop(before);
    let plan = TaskStore::open(&path).unwrap();
    assert_eq!(plan.enter(&task(body), at(2)).unwrap(), Change::Unchanged(1));
    assert_eq!(plan.secret(1).unwrap(), None);
}

#[test]
fn shards_have_successive_numbers_and_one_life() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let plan = TaskStore::open(&path).unwrap();
    let delay = |shards| {
        let text = r#"{"name":"d","measure":"passive-delay","from":"a/i","to":"b/i","shards":N}"#;
        task(&text.replace('N', shards))
    };
    let (three, one) = (delay("3"), delay("1"));
    assert_eq!(plan.enter(&three, at(1)).unwrap(), Change::Created(1));
    assert_eq!(plan.enter(&three, at(2)).unwrap(), Change::Unchanged(1));
    drop(plan);
    let plan = TaskStore::open(&path).unwrap();
    let of = || -> Vec<_> {
        let tasks = plan.subscribe().borrow().clone();
        tasks.iter().map(|(number, it)| (*number, it.task.shard, it.ended.is_some())).collect()
    };
    assert_eq!(of(), [(1, 0, false), (2, 1, false), (3, 2, false)]);
    let (number, first) = plan.find(&three.name, None).unwrap();
    assert_eq!((number, &first.task), (1, &three));
    assert_eq!(shards(number, &first).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(plan.find(&three.name, Some(2)), None);
    assert_eq!(plan.enter(&one, at(3)).unwrap(), Change::Created(4));
    assert_eq!(of(), [(1, 0, true), (2, 1, true), (3, 2, true), (4, 0, false)]);
    assert_eq!(plan.remove(&three.name, 3).unwrap(), Removal::NoSuchTask);
    assert_eq!(plan.remove(&three.name, 1).unwrap(), Removal::Removed);
    assert_eq!(**plan.removed().borrow(), Removed::from([1, 2, 3]));
    assert_eq!(of(), [(4, 0, false)]);
}

#[test]
fn file_ends_only_tasks_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let plan = TaskStore::open(&folder.path().join("plan")).unwrap();
    let named = |name: &str| task(&format!(r#"{{"name":"{name}","measure":"flows","at":"a/b"}}"#));
    let [own, first, second] = ["own", "first", "second"].map(named);
    plan.enter(&own, at(1)).unwrap();
    plan.follow(&[first.clone(), second.clone()], at(2)).unwrap();
    plan.follow(std::slice::from_ref(&second), at(3)).unwrap();
    let is_open = [&own, &first, &second].map(|it| plan.current(&it.name).is_some());
    assert_eq!(is_open, [true, false, true]);
    assert_eq!(plan.current(&second.name).unwrap().1.made, at(2));
}
