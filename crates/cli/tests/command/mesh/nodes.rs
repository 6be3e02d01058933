//! A controller and two probes, from the first start to results of real packets.

use std::fs;

use crate::common::{Leftovers, is_root, json, run, stderr};
use crate::exporter::{assert_conventional, value};
use crate::mesh::{in_lab, read, results, sum};
use serde_json::Value;
use tempfile::TempDir;

/// Joins two probes.
const PROBES: &str = "
    let_in roof roof.log
    let_in cellar cellar.log
";

/// Runs a script in a lab with a controller and two probes.
pub(super) fn in_mesh(script: &str) -> (TempDir, String) {
    in_lab(&[PROBES, script].concat())
}

#[test]
fn three_commands_give_a_first_delay() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        send 4000
        wait $sending
        await_last
        ask probes > probes
        echo '{}' > flows
        until [ "$(jq '.results // [] | length' flows)" -ge 1 ]; do
            sleep 0.1
            ask tasks/flows/results > flows
        done
        ask tasks/load/results > load
        ask tasks/test/results > test
        end
        "#,
    );
    let path = results(&folder, "results", &message);
    assert!(sum(&path, "matched") > 1000, "{path:#?}{message}");
    let test = results(&folder, "test", &message);
    assert!(sum(&test, "matched") > 100, "{test:#?}{message}");
    for result in path.iter().chain(&test).filter(|it| it["matched"].as_u64() > Some(0)) {
        let (delay, error) = (&result["delay_ns"], &result["error_ns"]);
        let least = delay["min"].as_f64().unwrap() + error.as_f64().unwrap();
        assert!(least >= 0.0, "{result:#}");
        assert_eq!(result["contradicts_the_clocks"], false, "{result:#}");
    }
    let flows: Value = serde_json::from_str(&read(folder.path(), "flows")).unwrap();
    let flow = &flows["results"][0];
    assert_eq!((&flow["dst"], &flow["dport"]), (&"10.77.2.2".into(), &7000.into()), "{flows:#}");
    assert!((1..=4000).contains(&flow["packets"].as_u64().unwrap()), "{flows:#}");
    let load: Value = serde_json::from_str(&read(folder.path(), "load")).unwrap();
    let seconds = load["results"].as_array().unwrap();
    let packets = sum(seconds, "packets");
    assert!((1000..=4000).contains(&packets), "{load:#}{message}");
    assert_eq!((sum(seconds, "bytes"), sum(seconds, "missed")), (300 * packets, 0), "{load:#}");
    // Both probes captured during all seconds except the first and the last.
    let inner = &seconds[1..seconds.len() - 1];
    assert!(inner.iter().all(|it| it["watched_ns"] == 1_000_000_000), "{load:#}{message}");
    let probes: Value = serde_json::from_str(&read(folder.path(), "probes")).unwrap();
    let names: Vec<_> = probes.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["cellar", "roof"], "{probes:#}");
    assert!(message.contains("enrolled the probe roof"), "{message}");
    assert_eq!(Leftovers::now(), before);
}

/// A revoked probe measures nothing. With a new token it joins again, and delivers.
#[test]
fn revoked_probe_stops_and_joins_again_with_a_token() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        "$0" -q pki revoke cellar --authority authority > revoked
        await 'is not valid any more' cellar.log
        await 'stopped the capture' cellar.log
        kill -INT $cellar
        wait $cellar
        start_probe cellar cellar2.log --token $("$0" -q pki token cellar --authority authority)
        grep 'joined again with the token' cellar2.log > joined
        send 600000
        await_results 1000 '[.results // [] | .[].matched] | add // 0'
        kill -INT $sending
        wait $sending
        await_last
        end
        "#,
    );
    assert!(sum(&results(&folder, "results", &message), "matched") >= 1000, "{message}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn probe_with_full_disk_reports_and_ends() {
    if !is_root() {
        return;
    }
    let (_, message) = in_mesh(
        r#"
        kill -INT $cellar
        wait $cellar
        cp -r cellar kept
        # Of the mount namespace that the lab has of its own.
        mount -t tmpfs -o size=8m none cellar
        cp kept/* cellar
        start_probe cellar full.log
        cat /dev/zero > cellar/filler 2> filling || true
        await 'cannot write to the spool' full.log
        end
        "#,
    );
    assert!(message.contains("lost the last observations: "), "{message}");
}

#[test]
fn prometheus_gets_results_and_probe_state() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        scrape() { curl -sS --cert ann.pem --cacert ann.pem https://$address/metrics > metrics; }
        scrape
        send 3000
        wait $sending
        await_last
        # What they message last is of before.
        has() { grep -q "^wirestamp_$1} [1-9]" metrics; }
        until has 'probe_capture_packets_total{.*probe="roof".*' && has 'task_packets_total{task="load"' &&
            has 'task_flows{task="flows"' && grep -q '^wirestamp_probe_clock_offset_seconds' metrics; do
            sleep 0.1
            scrape
        done
        ask tasks/path/results > results
        ask probes > probes
        end
        "#,
    );
    let (results, text) = (results(&folder, "results", &message), read(folder.path(), "metrics"));
    assert_conventional(&text);
    let of = |name: &str, labels: &str| {
        let sample = format!("wirestamp_{name}{{{labels}}}");
        value(&text, &sample).unwrap_or_else(|| panic!("no {sample}: {text}"))
    };
    let of_task = |name: &str| of(&format!("task_{name}"), r#"task="path""#);
    for name in ["sent", "matched", "given_up_sent"] {
        let sum = f64::from(u32::try_from(sum(&results, name)).unwrap());
        assert_eq!(of_task(&format!("{name}_packets_total")), sum, "{text}");
    }
    let packets = of("task_packets_total", r#"task="load""#);
    assert!((1.0..=3000.0).contains(&packets), "{text}");
    assert_eq!(of("task_bytes_total", r#"task="load""#), packets * 300.0, "{text}");
    assert_eq!(of("task_flows", r#"task="flows""#), 1.0, "{text}");
    let newest = results.last().unwrap();
    let begin = newest["begin_ns"].as_f64().unwrap() / 1e9;
    assert_eq!(of_task("window_timestamp_seconds"), begin, "{text}");
    assert_eq!(Some(of_task("window_sent_packets")), newest["sent"].as_f64());
    for probe in ["roof", "cellar"] {
        let of_probe = |name: &str| of(&format!("probe_{name}"), &format!(r#"probe="{probe}""#));
        assert_eq!(of_probe("up"), 1.0);
        assert!(of_probe("cpu_seconds_total") > 0.0 && of_probe("memory_bytes") > 0.0, "{text}");
    }
    let of_clocks =
        |name: &str| of(&format!("probe_{name}"), r#"probe="roof",other="cellar",task="test""#);
    let (offset, bound) =
        (of_clocks("clock_offset_seconds"), of_clocks("clock_offset_error_seconds"));
    assert!(offset.abs() <= bound && of_clocks("clocks_contradicted") == 0.0, "{text}");
    assert_compared(&folder);
    assert_eq!(Leftovers::now(), before);
}

/// Both probes have the same clock, as their clock comparison must report.
fn assert_compared(folder: &TempDir) {
    let probes: Value = serde_json::from_str(&read(folder.path(), "probes")).unwrap();
    let health = &probes[1]["health"];
    assert_eq!(health["keepers"][0]["by"], "kernel", "{probes:#}");
    let of_path: Value = serde_json::from_str(&read(folder.path(), "results")).unwrap();
    for clocks in [&health["clock_offsets"][0], &of_path["clocks"]] {
        let [ahead, bound] = ["ahead_ns", "bound_ns"].map(|key| clocks[key].as_i64().unwrap());
        assert!(ahead.abs() <= bound && bound < 1_000_000_000, "{clocks:#}");
        assert_eq!(clocks["contradicts"], false, "{clocks:#}");
    }
}

/// Each node is killed under load and started again; unobserved packets are excluded from loss.
#[test]
fn killed_nodes_lose_no_result() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        send 600000
        await_seconds 2
        killed $controller
        await 'retrying' roof.log
        start_controller $address controller2.log
        await_seconds 4
        killed $roof
        start_probe roof roof2.log
        await_seconds 6
        killed $cellar
        start_probe cellar cellar2.log
        await_seconds 8
        kill -INT $sending
        wait $sending
        await_last
        end
        "#,
    );
    let results = results(&folder, "results", &message);
    // Probes were down for a part of the time.
    assert!(sum(&results, "matched") > 4000, "{results:#?}{message}");
    let sent: Value = serde_json::from_str(&read(folder.path(), "sent")).unwrap();
    assert!(sum(&results, "sent") <= sent["sent"].as_u64().unwrap(), "{results:#?}{message}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn failed_start_reports_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (authority, tasks, own) = (of("authority"), of("tasks.toml"), of("own"));
    let message = |arguments: &[&str], status: i32| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let controller = ["controller", "--folder", &own, "--authority", &authority, "--tasks", &tasks];
    assert!(message(&controller, 1).contains("cannot read "));
    fs::write(&tasks, "[[task]]\nname = \"x\"\n").unwrap();
    let why = message(&controller, 1);
    assert!(why.contains("tasks.toml: line 1: task x: `measure` is missing"), "{why}");
    let why = message(&["probe", "--folder", &own], 1);
    assert!(why.contains("enrol the probe with a token from `wirestamp pki token`"), "{why}");
    assert!(message(&["probe", "--token", "x"], 2).contains("not a token"));
    json(&["pki", "create", "--authority", &authority, "--json"]);
}

#[test]
fn deliveries_of_many_tasks_share_a_connection() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        "$0" -q pki issue op --role operator -o op.pem --authority authority > issued
        task='{"measure":"traffic","at":"roof/tap-a@wirestamp-router","interval":"1s"}'
        for number in $(seq 250); do
            curl -sS --fail --cert op.pem --cacert op.pem -X PUT -d "$task" \
                "https://$address/api/v1/tasks/many$number" > created
        done
        for number in 1 125 250; do
            until [ "$(ask tasks/many$number/results | jq '.results | length')" -ge 2 ]; do sleep 0.1; done
        done
        ss -Htn state established dport = ":${address##*:}" | wc -l > connections
        end
        "#,
    );
    let connections: u32 = read(folder.path(), "connections").trim().parse().unwrap();
    // Each probe has one for its reports, and one for all deliveries.
    assert_eq!(connections, 4, "{message}");
    assert_eq!(Leftovers::now(), before);
}
