//! The contract: flags, JSON keys, metric names, columns, tables, API and protocol. It may grow; nothing of it may be
//! removed or renamed. The snapshot is in `tests/contract`; a test that finds something new prints the lines to add.
//! `WIRESTAMP_CONTRACT=add` adds them.

mod documents;
#[cfg(all(feature = "mesh", feature = "studies"))]
mod flags;
#[cfg(feature = "mesh")]
mod mesh;
mod protobuf;
mod schemas;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Names of one kind, each a line of text.
type Names = BTreeSet<String>;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract").join(name)
}

fn snapshot(name: &str) -> Names {
    fs::read_to_string(path(name)).unwrap_or_default().lines().map(ToOwned::to_owned).collect()
}

/// Whether new names are added to the snapshot, instead of failing.
fn adds_new_names() -> bool {
    std::env::var("WIRESTAMP_CONTRACT").is_ok_and(|it| it == "add")
}

/// Compares the names that exist now with the snapshot `file`. `missing` are those of the snapshot that do not.
fn compare(file: &str, found: &Names, missing: &Names) {
    let known = snapshot(file);
    let new: Vec<_> = found.difference(&known).collect();
    assert!(missing.is_empty(), "{file}: removed or renamed: {missing:#?}");
    if adds_new_names() {
        let all: Vec<_> = known.union(found).map(String::as_str).collect();
        fs::write(path(file), all.join("\n") + "\n").unwrap();
    } else {
        assert!(
            new.is_empty(),
            "{file}: not in the snapshot (WIRESTAMP_CONTRACT=add adds it): {new:#?}"
        );
    }
}

/// Compares names that must all exist at any time.
fn compare_all(file: &str, found: &Names) {
    let missing = snapshot(file).difference(found).cloned().collect();
    compare(file, found, &missing);
}

/// Compares the keys of JSON documents, by their names. A key is missing if an object that should have it was there;
/// without the object (null, or an empty list) nothing is known of its keys.
fn compare_keys(file: &str, documents: &BTreeMap<String, Value>) {
    let mut objects: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, document) in documents {
        collect(&format!("{name} "), document, &mut objects);
    }
    let known = snapshot(file);
    let parent = |line: &str| line.rfind(['.', ' ']).map_or("", |end| &line[..=end]).to_owned();
    // New keys inside an object depend on the traffic; they are not a change of the contract.
    let parents: BTreeSet<_> = known.iter().map(|line| parent(line)).collect();
    let is_recorded = |at: &String| parents.is_empty() || parents.contains(at);
    let found: Names = objects
        .iter()
        .filter(|(at, _)| is_recorded(at))
        .flat_map(|(at, keys)| keys.iter().map(move |key| format!("{at}{key}")))
        .collect();
    let is_missing = |line: &&String| objects.contains_key(&parent(line)) && !found.contains(*line);
    compare(file, &found, &known.iter().filter(is_missing).cloned().collect());
}

fn collect(at: &str, value: &Value, objects: &mut BTreeMap<String, BTreeSet<String>>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            objects.entry(at.to_owned()).or_default().extend(map.keys().cloned());
            for (key, value) in map {
                collect(&format!("{at}{key}."), value, objects);
            }
        }
        Value::Array(items) => {
            let at = format!("{}[].", at.trim_end_matches('.'));
            items.iter().for_each(|item| collect(&at, item, objects));
        }
        _ => {}
    }
}

/// Families of metrics in a scrape, with their types. Each has a help text.
fn families(scrape: &str) -> impl Iterator<Item = &str> {
    let families = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    families.inspect(|family| {
        let (name, _) = family.split_once(' ').unwrap();
        let has_help = |line: &str| line.starts_with(&format!("# HELP {name} "));
        assert!(scrape.lines().any(has_help), "{name} is not in crates/results/metrics.md");
    })
}
