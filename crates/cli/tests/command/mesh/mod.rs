//! Tests of a mesh in a test bed, run by shell scripts.

mod certificate_names;
mod chaos;
mod collector;
mod digests;
mod faults;
mod floods;
mod forged_packets;
mod http_api;
#[cfg(feature = "kafka")]
mod kafka;
mod lab;
mod many_tasks;
mod nodes;
mod openapi;
mod page;
mod pki;
mod placement;
mod privileges;
mod return_path;
mod services;
mod shards;
mod task_end;
mod task_removal;
mod two_collectors;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{run, stderr};

const TASKS: &str = r#"
    [[task]]
    name = "path"
    measure = "passive-delay"
    from = "roof/tap-a@wirestamp-router"
    to = "cellar/tap-b@wirestamp-sink"
    filter = "udp and dst port 7000"

    [[task]]
    name = "load"
    measure = "traffic"
    at = "cellar/tap-b@wirestamp-sink"
    filter = "udp and dst port 7000"

    [[task]]
    name = "test"
    measure = "active-delay"
    from = "roof@wirestamp-source"
    to = "cellar@wirestamp-sink"
    address = "10.77.2.2"
    rate = 100
    distribution = "poisson"

    [[task]]
    name = "flows"
    measure = "flows"
    at = "cellar/tap-b@wirestamp-sink"
    filter = "udp and dst port 7000"
"#;

/// Shell functions for a mesh in the folder `$1`, with a running controller.
const MESH: &str = r#"
    cd "$1"
    ip link set lo up
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.1; done; }
    start_controller() { # ADDRESS LOG [--user NAME]
        listen=$1 log=$2
        shift 2
        "$0" controller --listen $listen --folder controller --authority authority --tasks tasks.toml \
            "$@" 2> $log &
        controller=$!
        await 'listening at' $log
        address=$(sed -n 's/.*listening at \(127[^;]*\);.*/\1/p' $log)
    }
    start_probe() { # NAME LOG [--token TOKEN] [--user NAME]
        name=$1 log=$2
        shift 2
        "$0" probe $address --folder $name --namespaces "$@" 2> $log &
        eval "$name=$!"
        await 'capturing at' $log
    }
    start_collector() { # NAME ADDRESS LOG [--token TOKEN]
        name=$1 listen=$2 log=$3
        shift 3
        "$0" collector --controller $address --listen $listen --folder $name "$@" 2> $log &
        eval "$name=$!"
        await 'connected to the controller' $log
        listens=$(sed -n 's/.*listening at \(127[^;]*\);.*/\1/p' $log)
    }
    let_in_collector() { # NAME LOG
        start_collector $1 127.0.0.1:0 $2 \
            --token $("$0" -q pki token $1 --role collector --authority authority)
    }
    let_in() { start_probe $1 $2 --token $("$0" -q pki token $1 --authority authority); }
    killed() { kill -KILL $1; wait $1 || true; }
    send() { # COUNT
        "$0" send --json -q -i out@wirestamp-source --to 10.77.2.2 --port 7000 --pattern free \
            --size 300 --interval 1ms -c $1 > sent &
        sending=$!
    }
    ask() { # PATH ARGUMENTS
        path=$1
        shift
        curl -sS --cert ann.pem --cacert ann.pem "$@" "https://$address/api/v1/$path"
    }
    await_results() { # HOW MANY OF WHAT, as jq says it
        until [ "$(jq "$2" results)" -ge $1 ]; do
            sleep 0.1
            ask tasks/path/results > results || true
        done 2> asking
    }
    await_seconds() { await_results $1 '.results // [] | length'; }
    await_settled() { # SECOND, since 1970
        await_results $1 '(.results // [] | last | .begin_ns // 0) / 1000000000 | floor'
    }
    # Until the second before the last packet was sent is settled.
    await_last() { await_settled $(($(date +%s) - 1)); }
    end() {
        kill -INT $roof $cellar
        wait $roof $cellar
        kill -INT $controller
        wait $controller
    }
    "$0" -q pki create --authority authority
    "$0" -q pki issue ann --role viewer -o ann.pem --authority authority > issued
    echo '{}' > results
    start_controller 127.0.0.1:0 controller.log
"#;

/// Runs a script in a lab with a controller; returns its folder and the nodes' logs.
pub(crate) fn in_lab(script: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("tasks.toml"), TASKS).unwrap();
    let script = [MESH, script].concat();
    let script = [&*script, env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap()];
    // A delayed sender catches up in a burst, which must fit.
    let lab = ["lab", "run", "--rate", "1000", "--queue", "1000000"];
    // The timeout also ends everything that the script has started.
    // The network namespace of the nodes, so that faults of their loopback interface are faults of nothing else.
    let shell = ["timeout", "200", "unshare", "--net", "sh", "-euc"];
    let output = run(&[lab.as_slice(), &shell, &script].concat());
    let mut logs: Vec<_> = fs::read_dir(path).unwrap().map(|it| it.unwrap().path()).collect();
    logs.retain(|it| it.extension().is_some_and(|it| it == "log"));
    logs.sort();
    let message: String = logs.iter().map(|it| fs::read_to_string(it).unwrap()).collect();
    assert!(output.status.success(), "{}{message}", stderr(&output));
    (folder, message)
}

/// The results; checks that every packet was counted once, and none was lost.
pub(crate) fn results(folder: &TempDir, name: &str, message: &str) -> Vec<Value> {
    let found: Value = serde_json::from_str(&read(folder.path(), name)).unwrap();
    let results = found["results"].as_array().unwrap().clone();
    for of_none in ["lost", "unexpected", "duplicated", "identical"] {
        assert_eq!(sum(&results, of_none), 0, "{of_none}: {found:#}{message}");
    }
    assert_eq!(
        sum(&results, "sent"),
        sum(&results, "matched") + sum(&results, "given_up_sent"),
        "{found:#}"
    );
    results
}

pub(crate) fn sum(results: &[Value], key: &str) -> u64 {
    results.iter().map(|it| it[key].as_u64().unwrap()).sum()
}

pub(crate) fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

/// Checks a value in `/proc/PID/status` (proc_pid_status(5)) of each thread.
pub(crate) fn assert_each_thread(statuses: &str, key: &str, value: &str) {
    let found = statuses.lines().filter_map(|line| line.strip_prefix(key));
    let found: Vec<_> = found.map(|it| it.trim().replace('\t', " ")).collect();
    assert!(!found.is_empty() && found.iter().all(|it| it == value), "{key} {found:?}");
}

/// Checks that a process has these capabilities and can gain no others.
pub(crate) fn assert_privileges(statuses: &str, capabilities: &str) {
    for of in ["CapPrm:", "CapEff:", "CapBnd:"] {
        assert_each_thread(statuses, of, capabilities);
    }
    for of in ["CapInh:", "CapAmb:"] {
        assert_each_thread(statuses, of, "0000000000000000");
    }
    assert_each_thread(statuses, "NoNewPrivs:", "1");
}
