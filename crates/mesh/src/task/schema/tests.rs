use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::*;
use crate::task::WrongTask;

/// A task of each kind with all keys.
const WHOLE: [&str; 6] = [
    r#"{"measure":"volume","at":"a/eth0","filter":"udp"}"#,
    r#"{"measure":"traffic","at":"a/eth0","filter":"udp","interval":"10s"}"#,
    r#"{"measure":"passive-delay","from":"a/eth0","to":"b/eth1","share":0.25,"filter":"udp",
        "codec":"g711","archive":"observations","shards":4}"#,
    r#"{"measure":"passive-delay","from":"ipfix:192.0.2.7/3","to":"ipfix:2001:db8::1/3/9","clock_error":"1ms",
        "archive":"observations"}"#,
    r#"{"measure":"active-delay","from":"a","to":"b@ns","address":"2001:db8::1","port":862,
        "rate":50.0,"bytes":400,"distribution":"poisson","dscp":46,"authenticated":true,
        "codec":"g729a","archive":"results"}"#,
    r#"{"measure":"flows","at":"a/eth0","filter":"udp"}"#,
];

fn whole(text: &str) -> Map<String, Value> {
    let Value::Object(mut task) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
    task.insert("name".to_owned(), json!("x"));
    if !text.contains("ipfix:") {
        task.insert("schedule".to_owned(), json!({ "every": "1h", "for": "10m" }));
    }
    task
}

fn keys(schema: &Value, of: &str) -> BTreeSet<String> {
    match &schema[of] {
        Value::Object(keys) => keys.keys().cloned().collect(),
        Value::Array(keys) => keys.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
        other => panic!("{of}: {other}"),
    }
}

fn read(task: &Map<String, Value>) -> Result<Task, String> {
    Task::read(task.clone().into()).map_err(|why| why.to_string())
}

#[test]
fn accepted_keys_match_the_schema() {
    let all: Map<_, _> = WHOLE.iter().flat_map(|text| whole(text)).collect();
    for (kind, text) in KINDS.iter().zip(WHOLE) {
        let (schema, task) = (kind.task(Direction::Request), whole(text));
        read(&task).unwrap();
        assert_eq!(task.keys().cloned().collect::<BTreeSet<_>>(), keys(&schema, "properties"));
        let mut required = keys(&schema, "required");
        // Without a path, the name is required.
        required.insert("name".to_owned());
        for key in task.keys() {
            let mut without = task.clone();
            without.remove(key);
            assert_eq!(read(&without).is_err(), required.contains(key), "{key} of {text}");
        }
        for (key, value) in all.iter().filter(|(key, _)| !task.contains_key(*key)) {
            let mut with = task.clone();
            with.insert(key.clone(), value.clone());
            let error = read(&with).unwrap_err();
            assert!(error.contains("is not used for"), "{key} in {text}: {error}");
        }
    }
}

#[test]
fn keys_of_stored_tasks_match_the_schema() {
    let generated = ["number", "made", "ended", "unconnected"].map(str::to_owned);
    for (kind, text) in KINDS.iter().zip(WHOLE) {
        let entering = keys(&kind.task(Direction::Request), "required");
        let schema = kind.task(Direction::Response);
        let mut least = whole(text);
        least.retain(|key, _| key == "name" || entering.contains(key));
        for (task, of) in [(&least, "required"), (&whole(text), "properties")] {
            let task = serde_json::to_value(read(task).unwrap()).unwrap();
            let written = task.as_object().unwrap().keys().cloned();
            let written: BTreeSet<_> = written.chain(generated.clone()).collect();
            assert_eq!(written, keys(&schema, of), "{text}");
        }
    }
}

#[test]
fn malformed_and_contradictory_tasks_differ() {
    use WrongTask::{Contradiction, Unreadable, Value as WrongValue};
    let wrong = |key: &str, value: Value| {
        let mut task = whole(WHOLE[1]);
        task.insert(key.to_owned(), value);
        Task::read(task.into()).unwrap_err()
    };
    assert!(
        matches!(wrong("filter", Value::Null), Unreadable(why) if why.contains("`filter` is null"))
    );
    assert!(matches!(wrong("schedule", json!({ "for": null })), Unreadable(_)));
    assert!(
        matches!(wrong("schedule", json!([])), Unreadable(why) if why.contains("must be JSON objects"))
    );
    assert!(matches!(Task::read(json!(["x", "volume"])).unwrap_err(), Unreadable(_)));
    assert!(matches!(wrong("dscp", json!(4)), WrongTask::UnusedKey { .. }));
    assert!(matches!(wrong("interval", json!(4.5)), WrongValue { key: "interval", .. }));
    assert!(matches!(wrong("at", json!("a")), WrongValue { key: "at", .. }));
    assert!(matches!(wrong("interval", json!("7s")), Contradiction { key: "interval", .. }));
}
