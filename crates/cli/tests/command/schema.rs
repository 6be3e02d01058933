//! JSON schemas: each document that a test receives is valid, and has no key that its schema does not declare.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::common::{is_root, run, stderr};

/// The committed schemas. They equal those that `wirestamp schema` prints (`contract::schemas`).
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// Parses a document, and checks it against the schema `name`.
pub(crate) fn document(name: &str, text: &[u8]) -> Value {
    let document = serde_json::from_slice(text)
        .unwrap_or_else(|error| panic!("{name}: {error} in {}", String::from_utf8_lossy(text)));
    check(name, &document);
    document
}

/// Checks a document against the schema `name`.
pub(crate) fn check(name: &str, document: &Value) {
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Validator>>> = LazyLock::new(Mutex::default);
    let mut validators = VALIDATORS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let validator = validators.entry(name.to_owned()).or_insert_with(|| validator(name));
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "docs/schema/{name}.json: {errors:#?} in {document:#}");
}

/// The name of the schema for the document of a command line. None for commands without a schema.
pub(crate) fn of_command(arguments: &[&str]) -> Option<String> {
    let has = |flag: &str| arguments.contains(&flag);
    let name = match arguments {
        ["capture", ..] if has("-D") => "capture-interfaces".to_owned(),
        ["capture", ..] if arguments.iter().filter(|it| **it == "-i").count() > 1 => {
            "capture-several".to_owned()
        }
        ["capture", ..] if has("--list") => "capture-list".to_owned(),
        ["capture", ..] if has("--tune") => "capture-tune".to_owned(),
        ["capture", ..] if has("--tune=restore") => "capture-tune-restore".to_owned(),
        ["study", action @ ("all" | "index" | "list"), ..] => format!("study-{action}"),
        [command @ ("lab" | "extcap" | "pki"), action, ..] => format!("{command}-{action}"),
        [command, ..] => (*command).to_owned(),
        [] => return None,
    };
    folder().join(format!("{name}.json")).exists().then_some(name)
}

fn validator(name: &str) -> Validator {
    let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    reject_other_keys(&mut schema, false);
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Makes undeclared keys invalid. `is_part`: the schema describes a part of an object, whose other keys another schema
/// describes.
fn reject_other_keys(schema: &mut Value, is_part: bool) {
    let Value::Object(members) = schema else { return };
    let is_object = members.contains_key("properties");
    if is_object && !is_part {
        members.insert("unevaluatedProperties".to_owned(), false.into());
    }
    for (keyword, inner) in members {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|it| reject_other_keys(it, false));
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|it| reject_other_keys(it, is_part || is_object));
            }
            ("items" | "additionalProperties", inner) => reject_other_keys(inner, false),
            _ => {}
        }
    }
}

#[test]
fn undeclared_and_missing_keys_are_invalid() {
    let schema = validator("schema");
    let item = json!({"name": "a", "command": "b"});
    let with = |key: &str, value: Value| {
        let mut item = item.clone();
        item[key] = value;
        json!({"commands": [item]})
    };
    assert!(schema.is_valid(&json!({"commands": [item]})));
    assert!(!schema.is_valid(&with("more", 1.into())));
    assert!(!schema.is_valid(&with("name", Value::Null)));
    assert!(!schema.is_valid(&json!({"commands": [{"name": "a"}]})));
}

#[test]
fn key_of_no_kind_of_traffic_is_invalid() {
    let schema = validator("send");
    let distribution = json!({
        "count": 0, "min": null, "mean": null, "stddev": null, "p50": null, "p90": null, "p99": null, "p999": null,
        "max": null
    });
    let mut document = json!({
        "pattern": "voip", "destination": "127.0.0.1:1", "method": "a", "mode": null, "sent": 1, "bytes": 1,
        "failed": 0, "first_error": null, "late": 0, "pacing_error_ns": distribution, "tx_stamps": null,
        "clock_error_ns": 1
    });
    assert!(schema.is_valid(&document));
    document["burst_size"] = 1.into();
    assert!(!schema.is_valid(&document));
}

#[test]
fn unknown_command_has_no_schema() {
    let output = run(&["schema", "nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("flows"), "{}", stderr(&output));
}

#[test]
fn list_names_each_command() {
    let text = String::from_utf8(run(&["schema"]).stdout).unwrap();
    assert!(text.contains("flows                 wirestamp flows --json\n"), "{text}");
    let list = document("schema", &run(&["schema", "--json"]).stdout);
    assert_eq!(list["commands"].as_array().unwrap().len(), text.lines().count());
}

#[test]
fn interfaces_and_test_beds_match_their_schemas() {
    if !is_root() {
        return;
    }
    for arguments in
        [&["capture", "-D", "--json"][..], &["lab", "up", "--json"], &["lab", "down", "--json"]]
    {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        document(&of_command(arguments).unwrap(), &output.stdout);
    }
}

#[test]
fn link_of_wireshark_matches_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let place = ["--dir", folder.path().to_str().unwrap(), "--json"];
    for action in ["install", "remove"] {
        let output = run(&[&["extcap", action][..], &place].concat());
        assert!(output.status.success(), "{action}: {}", stderr(&output));
        let done = document(&format!("extcap-{action}"), &output.stdout);
        assert_eq!(done["changed"], true);
    }
}
