//! Contract of the mesh with programs: paths and keys of the API, metrics, tables of the databases.

use std::fs;

use serde_json::Value;

use super::{Names, compare_all, families, snapshot};
use crate::common::is_root;
use crate::mesh::in_lab;

/// A controller with a probe and results, then a list of the columns of all databases.
const SCRIPT: &str = r#"
    let_in roof roof.log
    let_in cellar cellar.log
    let_in_collector east east.log
    send 200
    wait $sending
    await_last
    ask openapi.json > openapi.json
    # Some exist only after the probes' next reports.
    for _ in $(seq 100); do
        curl -sS --cert ann.pem --cacert ann.pem "https://$address/metrics" > metrics
        [ $(grep -c '^# TYPE' metrics) -lt METRICS ] || break
        sleep 0.1
    done
    "$0" pki list --authority authority --json > pki.json
    kill -INT $east
    wait $east
    end
    find . -name '*.sqlite' | sort | python3 -c '
import os, sqlite3, sys
for path in sys.stdin.read().split():
    tables = sqlite3.connect(path)
    for (table,) in tables.execute("select name from sqlite_master where type = \"table\"").fetchall():
        for column in tables.execute(f"pragma table_info({table})").fetchall():
            print(os.path.basename(path), f"{table}.{column[1]}", column[2])
' > tables
"#;

#[test]
fn api_metrics_and_tables_keep_their_names() {
    if !is_root() {
        return;
    }
    let metrics = snapshot("mesh-metrics.txt").len().to_string();
    let (folder, _) = in_lab(&SCRIPT.replace("METRICS", &metrics));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let api: Value = serde_json::from_str(&read("openapi.json")).unwrap();
    let mut names = Names::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            names.insert(format!("{method} {path}"));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                names.insert(format!("{method} {path} ? {}", parameter["name"].as_str().unwrap()));
            }
        }
    }
    for (name, schema) in api["components"]["schemas"].as_object().unwrap() {
        properties(name, schema, &mut names);
    }
    compare_all("api.txt", &names);
    compare_all("mesh-metrics.txt", &families(&read("metrics")).map(ToOwned::to_owned).collect());
    compare_all("tables.txt", &read("tables").lines().map(ToOwned::to_owned).collect());
}

/// The properties and values of a schema and of those inside it. A schema's own name is no part of the contract.
fn properties(name: &str, schema: &Value, names: &mut Names) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(format!("{name}.{key}"));
        properties(&format!("{name}.{key}"), inner, names);
    }
    for value in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        names.insert(format!("{name} = {value}"));
    }
    for part in ["oneOf", "allOf", "anyOf"] {
        for inner in schema[part].as_array().into_iter().flatten() {
            properties(name, inner, names);
        }
    }
    if schema["items"].is_object() {
        properties(&format!("{name}[]"), &schema["items"], names);
    }
}
