//! A controller that receives packet digests of other programs.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::common::{Leftovers, is_root, run, stderr};
use crate::exporter::value;
use serde_json::Value;
use tempfile::TempDir;

const EXPORTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/exporter.py");

/// The same path by exporters with a good network, with and without a clock error, and with a bad network.
const TASKS: &str = r#"
    [[task]]
    name = "good"
    measure = "passive-delay"
    from = "ipfix:127.0.0.2/3"
    to = "ipfix:127.0.0.3/3"
    clock_error = "5us"

    [[task]]
    name = "unknown"
    measure = "passive-delay"
    from = "ipfix:127.0.0.2/3"
    to = "ipfix:127.0.0.3/3"

    [[task]]
    name = "bad"
    measure = "passive-delay"
    from = "ipfix:127.0.0.2/4"
    to = "ipfix:127.0.0.3/4"
"#;

/// Shell functions for the folder `$1` and the exporter `$2`, in a router's namespace. Exporters observe packets before
/// and behind its bottleneck.
const ROUTER: &str = r#"
    cd "$1"
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.1; done; }
    inside="ip netns exec wirestamp-router"
    python="/usr/bin/python3"
    ask() { $inside curl -sS http://127.0.0.1:4748/$1; }
    start_controller() { # LOG
        $inside "$0" controller --listen 127.0.0.1:4747 --page 127.0.0.1:4748 --digests 127.0.0.1:4739 \
            --folder controller --authority authority --tasks tasks.toml 2> $1 &
        controller=$!
        await 'page at' $1
    }
    send() { # COUNT
        "$0" send --json -q -i out@wirestamp-source --to 10.77.2.2 --port 7000 --pattern free \
            --size 1400 --interval 1ms -c $1 > sent
    }
    # Until what jq says of the results of a task is so much.
    await_results() { # TASK WHAT LEAST
        echo '{}' > $1
        until [ "$(jq "[.results // [] | .[] | $2] | add // 0" $1)" -ge $3 ]; do
            sleep 0.1
            ask api/v1/tasks/$1/results > $1 || true
        done 2> asking
    }
    end() {
        kill $first $second
        wait $first $second
        kill -INT $controller
        wait $controller
    }
    $inside ip link set lo up
    start_controller controller.log
    $inside $python "$2" tap-a in 127.0.0.2 4739 7000 > first 2> first.log &
    first=$!
    $inside $python "$2" bottleneck out 127.0.0.3 4739 7000 > second 2> second.log &
    second=$!
    await exporting first.log
    await exporting second.log
"#;

/// Runs a script there, over a path of `rate` Mbit/s; returns its folder and the controller's log.
fn in_router(script: &str, rate: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("tasks.toml"), TASKS).unwrap();
    let script = [ROUTER, script].concat();
    let script = [&*script, env!("CARGO_BIN_EXE_wirestamp"), path.to_str().unwrap(), EXPORTER];
    let lab = ["lab", "run", "--rate", rate, "timeout", "150", "sh", "-euc"];
    let output = run(&[lab.as_slice(), &script].concat());
    let message = fs::read_to_string(path.join("controller.log")).unwrap_or_default();
    assert!(output.status.success(), "{}{message}", stderr(&output));
    (folder, message)
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

fn sum(results: &[Value], key: &str) -> u64 {
    results.iter().map(|it| it[key].as_u64().unwrap()).sum()
}

/// Times of an exporter's packets, in nanoseconds since 1970.
fn seen(folder: &Path, exporter: &str) -> HashMap<String, i64> {
    let reported = read(folder, exporter);
    let seen: HashMap<String, i64> = serde_json::from_value(reported["seen"].clone()).unwrap();
    assert_eq!(
        reported["packets"].as_u64(),
        Some(seen.len() as u64),
        "each has a digest of its own"
    );
    seen
}

#[test]
fn exporter_digests_become_delay_and_loss() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    // 11 Mbit/s exceed the bottleneck's 10.
    let (folder, message) = in_router(
        r#"
        $inside $python -c '
import socket
stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stranger.bind(("127.0.0.9", 0))
stranger.sendto(b"who am I", ("127.0.0.1", 4739))'
        send 3000
        await_results good .sent 3000
        await_results unknown .sent 3000
        # Not all digests were reported.
        await_results bad .sent 2000
        ask metrics > metrics
        end
        "#,
        "10",
    );
    let path = folder.path();

    let [first, second] = ["first", "second"].map(|it| seen(path, it));
    let delays: Vec<i64> =
        second.iter().filter_map(|(id, time)| Some(time - first.get(id)?)).collect();
    let lost = (first.len() - delays.len()) as u64;
    assert!(first.len() == 3000 && lost > 50, "{lost} lost of {}", first.len());
    let results = |task: &str| read(path, task)["results"].as_array().unwrap().clone();

    let good = results("good");
    assert_eq!(["sent", "matched", "lost"].map(|it| sum(&good, it)), [3000, 3000 - lost, lost]);
    assert_eq!(["unexpected", "duplicated", "given_up_sent"].map(|it| sum(&good, it)), [0; 3]);
    let of = |key: &'static str| good.iter().filter_map(move |it| it["delay_ns"][key].as_i64());
    let (least, most) = (of("min").min().unwrap(), of("max").max().unwrap());
    // Times go over the network in parts of 2^32 of a second.
    assert!((least - delays.iter().min().unwrap()).abs() <= 2, "{least}");
    assert!((most - delays.iter().max().unwrap()).abs() <= 2, "{most}");
    let with_delay = || good.iter().filter(|it| !it["delay_ns"].is_null());
    assert!(with_delay().all(|it| (10_000..11_000).contains(&it["error_ns"].as_u64().unwrap())));

    let unknown = results("unknown");
    assert_eq!(["sent", "matched", "lost"].map(|it| sum(&unknown, it)), [3000, 3000 - lost, lost]);
    assert!(unknown.iter().all(|it| it["delay_ns"].is_null() && it["not_synchronised"] == "first"));
    assert!(unknown.iter().any(|it| it["above_minimum_ns"]["max"].as_i64() > Some(1_000_000)));

    // Losses in the exporters' network are not losses of the path, and nothing is duplicated.
    let bad = results("bad");
    let counted =
        ["lost", "given_up_sent", "given_up_received", "duplicated"].map(|it| sum(&bad, it));
    assert!(counted[0] <= lost && counted[1] > 0 && counted[2] > 0, "{counted:?} {bad:#?}");
    assert_eq!((counted[3], sum(&bad, "identical")), (0, 0), "{bad:#?}");

    let text = fs::read_to_string(path.join("metrics")).unwrap();
    let what = |name: &str| {
        value(&text, &format!(r#"wirestamp_digests_total{{what="{name}"}}"#)).unwrap_or_default()
    };
    assert_eq!(what("datagrams-from-strangers"), 1.0, "{text}");
    for more in ["datagrams-malformed", "messages-twice", "records-missed", "packets-taken"] {
        assert!(what(more) > 0.0, "{more}: {text}");
    }
    for none in
        ["sets-unread", "records-of-no-packet", "packets-given-up", "messages-ahead-of-time"]
    {
        assert_eq!(what(none), 0.0, "{none}: {text}");
    }
    assert!(message.contains("IPFIX datagrams, the last from 127.0.0."), "{message}");
    assert_eq!(Leftovers::now(), before);
}

/// Digests without a result when the controller was killed are excluded from loss.
#[test]
fn killed_controller_adds_no_path_loss() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_router(
        r#"
        send 12000 &
        sending=$!
        await_results good .matched 500
        kill -KILL $controller
        wait $controller || true
        start_controller again.log
        await_results good .matched 3000
        wait $sending
        end
        "#,
        "1000",
    );
    let good = read(folder.path(), "good")["results"].as_array().unwrap().clone();
    let none = ["lost", "unexpected", "duplicated", "identical"].map(|it| sum(&good, it));
    assert_eq!(none, [0; 4], "{good:#?}{message}");
    assert!((3000..=12_000).contains(&sum(&good, "sent")), "{good:#?}");
    assert_eq!(Leftovers::now(), before);
}
