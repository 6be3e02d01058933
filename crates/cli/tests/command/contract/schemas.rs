//! JSON schemas of documents. The files in `docs/schema` equal what `wirestamp schema` prints; `WIRESTAMP_CONTRACT=add`
//! writes them, unless a key was removed or renamed.

use std::fs;

use serde_json::Value;

use super::{Names, adds_new_names};
use crate::common::{json, run, stderr};
use crate::schema::folder;

const REGENERATE: &str =
    "`WIRESTAMP_CONTRACT=add cargo test -p wirestamp --test command contract::schemas` writes it";

#[test]
fn committed_schemas_equal_those_of_the_program() {
    let mut files = Names::new();
    for name in names() {
        let file = format!("{name}.json");
        let output = run(&["schema", &name]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let schema = String::from_utf8(output.stdout).unwrap();
        let known = fs::read_to_string(folder().join(&file)).unwrap_or_default();
        if schema != known {
            let removed: Vec<_> = keys(&known).difference(&keys(&schema)).cloned().collect();
            assert!(removed.is_empty(), "docs/schema/{file}: removed or renamed: {removed:#?}");
            assert!(adds_new_names(), "docs/schema/{file} is not current; {REGENERATE}");
            fs::create_dir_all(folder()).unwrap();
            fs::write(folder().join(&file), schema).unwrap();
        }
        files.insert(file);
    }
    let found = fs::read_dir(folder()).unwrap();
    let found: Names =
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, files, "docs/schema has other files");
}

#[test]
fn each_key_of_a_schema_is_described() {
    let mut missing = Names::new();
    for name in names() {
        let schema: Value = serde_json::from_slice(&run(&["schema", &name]).stdout).unwrap();
        walk(&schema, &schema, &name, &mut |path, key| {
            let is_time = path.ends_with("_ns");
            if !is_described(key, &schema, if is_time { "nanosecond" } else { "" }) {
                missing.insert(path.to_owned());
            }
        });
        assert!(is_described(&schema, &schema, ""), "{name} has no description");
    }
    assert!(missing.is_empty(), "keys without a description, or without the unit: {missing:#?}");
}

fn names() -> Vec<String> {
    let list = json(&["schema", "--json"]);
    let commands = list["commands"].as_array().unwrap().iter();
    commands.map(|command| command["name"].as_str().unwrap().to_owned()).collect()
}

/// The keys of a schema, each with those that lead to it.
fn keys(schema: &str) -> Names {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut keys = Names::new();
    walk(&schema, &schema, "", &mut |path, _| {
        keys.insert(path.to_owned());
    });
    keys
}

/// Calls `visit` with the path and the schema of each key.
fn walk(schema: &Value, root: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        walk(target, root, path, visit);
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        visit(&path, inner);
        walk(inner, root, &path, visit);
    }
    for part in ["anyOf", "oneOf", "allOf"] {
        let parts = schema[part].as_array().into_iter().flatten();
        parts.for_each(|inner| walk(inner, root, path, visit));
    }
    if schema["items"].is_object() {
        walk(&schema["items"], root, &format!("{path}[]"), visit);
    }
}

/// Whether the description of the schema, or that of one that it refers to, contains `word`.
fn is_described(schema: &Value, root: &Value, word: &str) -> bool {
    let has = |it: &Value| is_described(it, root, word);
    let of_parts = ["anyOf", "oneOf"].iter().filter_map(|part| schema[*part].as_array()).flatten();
    let target = schema["$ref"].as_str().and_then(|it| root.pointer(it.trim_start_matches('#')));
    schema["description"]
        .as_str()
        .is_some_and(|text| !text.is_empty() && text.to_lowercase().contains(word))
        || target.is_some_and(has)
        || of_parts.into_iter().any(has)
        || (schema["items"].is_object() && has(&schema["items"]))
}
