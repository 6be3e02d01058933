//! Many tasks on two probes: few sockets, and results within seconds.

use std::env;

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read};

/// Tasks on a busy machine with two cores; `WIRESTAMP_TASKS` sets another number, such as 800 on an idle one.
const TASKS: usize = 200;

/// Max sockets of a node, of any kind.
const MAX_SOCKETS: u64 = 20;

/// Max time from the end of a window until its results can be read, in milliseconds. The correlator alone waits for
/// 1.1 s.
const MAX_DELIVERY_MS: i64 = 5000;

/// Readings of the newest results, one after the other.
const READINGS: usize = 30;

/// The controller gets all tasks at once, from a file: probes receive all their tasks after each change.
const MANY: &str = r#"
    kill -INT $controller
    wait $controller
    for number in $(seq TASKS); do
        cat << TASK
    [[task]]
    name = "many$number"
    measure = "passive-delay"
    from = "roof/tap-a@wirestamp-router"
    to = "cellar/tap-b@wirestamp-sink"
    filter = "udp and dst port 7001"
TASK
    done >> tasks.toml
    start_controller $address controller2.log
    let_in roof roof.log
    let_in cellar cellar.log
    "$0" send --json -q -i out@wirestamp-source --to 10.77.2.2 --port 7001 --pattern free --size 300 \
        --interval 100ms -c 600000 > sent &
    sending=$!
    newest() { ask "results?from=$(date -u -d '20 seconds ago' +%FT%TZ)" > $1; }
    measured() { jq '[.results[] | select(length > 0)] | length' newest; }
    echo '{"results": {}}' > newest
    until [ $(measured) -ge TASKS ]; do
        sleep 0.1
        newest newest
    done
    for reading in $(seq READINGS); do
        newest recent.$reading
        date +%s%N > time.$reading
        sleep 0.2
    done
    for node in controller roof cellar; do
        eval "ls -l /proc/\$$node/fd" | grep -c socket: > sockets.$node
    done
    kill -INT $sending
    wait $sending
    end
"#;

#[test]
fn many_tasks_need_few_sockets_and_deliver_within_seconds() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let tasks = env::var("WIRESTAMP_TASKS").map_or(TASKS, |number| number.parse().unwrap());
    let script = MANY.replace("TASKS", &tasks.to_string());
    let (folder, message) = in_lab(&script.replace("READINGS", &READINGS.to_string()));
    let number = |name: &str| -> u64 { read(folder.path(), name).trim().parse().unwrap() };
    let nodes = ["controller", "roof", "cellar"];
    let sockets = nodes.map(|node| number(&format!("sockets.{node}")));
    let mut delays: Vec<i64> = (1..=READINGS)
        .flat_map(|reading| {
            let results = read(folder.path(), &format!("recent.{reading}"));
            delivery_ms(&results, number(&format!("time.{reading}")))
        })
        .collect();
    delays.sort_unstable();
    assert!(delays.len() >= READINGS * tasks, "{} results in {READINGS} readings", delays.len());
    let (median, max) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    println!("sockets of {nodes:?}: {sockets:?}");
    println!("{tasks} tasks: delivered within {max} ms, median of all readings {median} ms");
    assert!(sockets.iter().all(|it| *it < MAX_SOCKETS), "{sockets:?}{message}");
    assert!(max < MAX_DELIVERY_MS, "{max} ms: {message}");
    assert_eq!(Leftovers::now(), before);
}

/// For each task, the time from the end of its first window without results until the reading, in milliseconds.
fn delivery_ms(results: &str, read_at_ns: u64) -> Vec<i64> {
    let found: Value = serde_json::from_str(results).unwrap();
    let newest = |windows: &Value| windows.as_array()?.last()?["begin_ns"].as_i64();
    let tasks = found["results"].as_object().unwrap().values().filter_map(newest);
    let read_at = read_at_ns.cast_signed();
    tasks.map(|begin| (read_at - begin) / 1_000_000 - 2000).collect()
}
