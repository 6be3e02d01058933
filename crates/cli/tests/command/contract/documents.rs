//! JSON documents, CSV columns and metrics of the commands that measure on one machine.

use std::collections::BTreeMap;
use std::fs;

use super::{Names, compare_all, compare_keys, families};
use crate::common::{is_root, run, stderr};
use crate::schema;

#[test]
fn documents_columns_and_metrics_keep_their_names() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lab =
        ["lab", "run", "--rate", "1000", "--queue", "1000000", "timeout", "120", "sh", "-euc"];
    let script = [
        include_str!("documents.sh"),
        env!("CARGO_BIN_EXE_wirestamp"),
        folder.path().to_str().unwrap(),
    ];
    let output = run(&[&lab[..], &script].concat());
    assert!(output.status.success(), "{}", stderr(&output));

    let (mut documents, mut columns, mut metrics) = (BTreeMap::new(), Names::new(), Names::new());
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = || fs::read_to_string(&path).unwrap();
        match path.extension().and_then(|it| it.to_str()) {
            Some("json") => {
                let document = serde_json::from_str(&text()).unwrap();
                if let Some(schema) = schema_of(&name) {
                    schema::check(schema, &document);
                }
                documents.insert(name, document);
            }
            Some("csv") => {
                let text = text();
                let head = text.lines().next().unwrap().split(',');
                columns.extend(head.map(|column| format!("{name} {column}")));
            }
            Some("prom") => {
                metrics.extend(families(&text()).map(|family| format!("{name} {family}")))
            }
            _ => {}
        }
    }
    compare_keys("json-keys.txt", &documents);
    compare_all("csv-columns.txt", &columns);
    compare_all("metrics.txt", &metrics);
}

/// The schema of a document of `documents.sh`. None for commands without a schema.
fn schema_of(name: &str) -> Option<&str> {
    match name {
        "study-list" => None,
        "capture-several" | "capture-tune" => Some(name),
        "capture-list" | "capture-list-interface" => Some("capture-list"),
        _ => name.split('-').next(),
    }
}
