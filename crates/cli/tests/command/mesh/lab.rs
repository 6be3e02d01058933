//! `wirestamp lab mesh`: correct results of a complete mesh, and nothing left behind.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Leftovers, is_root, json, run, stderr, tool, wirestamp};

/// Seconds for which nodes are disconnected: `WIRESTAMP_CUT=60` for a minute, in which connections break.
fn cut() -> u64 {
    env::var("WIRESTAMP_CUT").map_or(3, |text| text.parse().unwrap())
}

/// Checks the results against known values and against each other.
fn assert_true(found: &Value) {
    for check in found["checks"].as_array().unwrap() {
        assert_eq!(check["holds"], true, "{found:#}");
    }
    assert!(found["first_delay_s"].as_f64() < Some(60.0), "{found:#}");
    let tasks = found["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{found:#}");
    for task in tasks {
        let count = |key: &str| task[key].as_u64().unwrap();
        let accounted = count("matched") + count("lost") + count("given_up_sent");
        assert_eq!(count("sent"), accounted, "{task:#}");
        // No packet was in flight at the end of a capture.
        assert_eq!(count("given_up_sent"), 0, "{task:#}");
        let (delay, error) = (&task["owd_ns"], task["error_ns"].as_i64().unwrap());
        assert_eq!(delay["count"], task["matched"], "{task:#}");
        assert!(delay["min"].as_i64().unwrap() + error >= 0, "{task:#}");
    }
}

/// Waits until nothing is left: the kernel takes namespaces down in the background.
fn assert_nothing_left(before: &Leftovers) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Leftovers::now() != *before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(Leftovers::now(), *before);
}

#[test]
fn mesh_results_agree_with_the_bottleneck() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let found = json(&["lab", "mesh", "--for", "6s", "--rate", "8", "--json"]);
    assert_true(&found);
    assert_eq!((&found["interrupted"], &found["tasks"][0]["sent"]), (&false.into(), &300.into()));
    assert_eq!(found["rate_bits_per_s"], 8_000_000, "{found:#}");
    let load = &found["tasks"][1];
    assert!(load["lost"].as_u64() > Some(0), "the queue was never full: {found:#}");
    assert_nothing_left(&before);
}

/// The same with a separate collector.
#[test]
fn separate_collector_agrees_with_the_bottleneck() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("mesh");
    let mesh = ["lab", "mesh", "--for", "6s", "--rate", "8", "--collector", "--json", "--keep"];
    let found = json(&[&mesh[..], &[kept.to_str().unwrap()]].concat());
    assert_true(&found);
    let message = fs::read_to_string(kept.join("collector.log")).unwrap();
    assert!(message.contains("accepting batches of 2 tasks"), "{message}");
    assert_nothing_left(&before);
}

/// The usage of each process, in the order of their start.
fn assert_costs(found: &Value, kinds: &[&str]) {
    let costs = &found["costs"];
    let processes = costs["processes"].as_array().unwrap();
    let found: Vec<_> = processes.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(found, kinds, "{costs:#}");
    for process in processes {
        assert!(process["peak_memory_bytes"].as_u64() > Some(1 << 20), "{process:#}");
        assert!(process["processor_time_ns"].is_u64(), "{process:#}");
    }
    assert!(costs["observations"].as_u64() > Some(0), "{costs:#}");
    assert!(costs["processor_time_per_observation_ns"].as_f64() > Some(0.0), "{costs:#}");
}

/// One of two collectors is killed: its tasks move, and all packets are counted once.
#[test]
fn killed_collector_changes_no_count() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let mesh = ["lab", "mesh", "--for", "9s", "--rate", "8", "--json"];
    let two = ["--collectors", "2", "--kill-collector", "3s"];
    let found = json(&[&mesh[..], &two].concat());
    assert_true(&found);
    assert_eq!(found["killed_collector"], "collector-01", "{found:#}");
    assert!(found["moved_after_s"].as_f64().is_some_and(|it| it > 0.0), "{found:#}");
    assert_costs(&found, &["controller", "collector", "collector", "probe", "probe"]);
    assert_nothing_left(&before);
}

/// A steady load is divided into a task for each collector. One of them is killed.
#[cfg(feature = "kafka")]
#[test]
fn batches_of_a_lab_pass_through_kafka() {
    use crate::mesh::kafka::libraries;

    let Some(libraries) = libraries().filter(|_| is_root()) else { return };
    let before = Leftovers::now();
    let mesh = ["lab", "mesh", "--for", "9s", "--rate", "100", "--packet-rate", "2000", "--json"];
    let kill = ["--collectors", "2", "--kill-collector", "3s"];
    let folder = libraries.parent().unwrap().to_str().unwrap();
    let found = json(&[&mesh[..], &kill, &["--kafka", folder]].concat());
    assert_eq!(found["killed_collector"], "collector-01", "{found:#}");
    for check in found["checks"].as_array().unwrap() {
        assert_eq!(check["holds"], true, "{found:#}");
    }
    let names: Vec<_> = found["tasks"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["call", "load-1", "load-2"], "{found:#}");
    let kinds = ["broker", "controller", "collector", "collector", "probe", "probe"];
    assert_costs(&found, &kinds);
    let costs = &found["costs"];
    assert!(costs["kafka_bytes_per_observation"].as_f64() > Some(1.0), "{costs:#}");
    assert!(costs["kafka_processor_time_per_observation_ns"].is_f64(), "{costs:#}");
    assert_nothing_left(&before);
}

/// A temporary network outage between the nodes does not change the results.
#[test]
fn disconnected_nodes_lose_no_result() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("mesh");
    let cut = cut();
    let lasting = cut + 5;
    let times = [format!("--for={lasting}s"), format!("--cut={cut}s")];
    let kept_in = kept.to_str().unwrap();
    let found = json(&["lab", "mesh", &times[0], &times[1], "--keep", kept_in, "--json"]);
    assert_true(&found);
    assert_eq!(found["tasks"][0]["sent"].as_u64(), Some(lasting * 50), "{found:#}");
    let message = fs::read_to_string(kept.join("roof.log")).unwrap();
    let broke_off = message.contains("the collector of task");
    assert_eq!(broke_off, cut >= 60, "{message}");
    assert_nothing_left(&before);
}

/// A mesh that has printed a second of the call and runs until it is interrupted. Its files are in a folder.
fn running(folder: &Path) -> Child {
    let mut mesh = wirestamp(&["lab", "mesh", "--json"])
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut message = BufReader::new(mesh.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("  call  ") {
        line.clear();
        assert_ne!(message.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    // Later output fits into the pipe, which must stay open.
    mesh.stderr = Some(message.into_inner());
    mesh
}

#[test]
fn interrupt_prints_the_results_so_far() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let mut mesh = running(folder.path());
    tool("kill", &["-INT", &mesh.id().to_string()]);
    let mut message = String::new();
    mesh.stdout.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(mesh.wait().unwrap().success(), "{message}");
    let found: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(found["interrupted"], true, "{found:#}");
    assert_true(&found);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "its files are left");
    assert_nothing_left(&before);
}

#[test]
fn killed_lab_ends_its_nodes() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let mut mesh = running(folder.path());
    tool("kill", &["-KILL", &mesh.id().to_string()]);
    mesh.wait().unwrap();
    assert_nothing_left(&before);
}

#[test]
fn invalid_arguments_are_rejected() {
    let refused = |arguments: &[&str]| {
        let output = run(&[&["lab", "mesh"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    assert!(refused(&["--for", "soon"]).contains("expected a time such as 30s"));
    assert!(refused(&["--cut", "0s"]).contains("at least 1 second"));
    assert!(refused(&["--kill-collector", "3s"]).contains("--collectors <NUMBER>"));
    let output = run(&["lab", "mesh", "--collectors", "1", "--kill-collector", "3s"]);
    assert!(stderr(&output).contains("add --collectors 2"), "{}", stderr(&output));
}
