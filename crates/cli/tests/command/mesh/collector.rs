//! A separate collector: it loses no observations when nodes are killed, and rejects unauthorized clients.

use crate::common::{Leftovers, is_root, run, stderr};
use crate::mesh::two_collectors::ENTER;
use crate::mesh::{assert_each_thread, assert_privileges, in_lab, read, results, sum};
use serde_json::Value;

/// The collector registers before the probes, so that it gets all tasks.
const COLLECTOR: &str = r#"
    let_in_collector store collector.log
    let_in roof roof.log
    let_in cellar cellar.log
    shown() { ask tasks/path/results -w ' %{http_code}\n'; }
    finish() {
        kill -INT $store
        wait $store
    }
"#;

/// Kills collector, controller, and the collector again, under load: each packet is counted once.
#[test]
fn killed_collector_loses_no_result() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = r#"
        # Until both probes look.
        send 100
        wait $sending
        await_seconds 1
        date +%s > since
        send 15000
        await_seconds 3
        killed $store
        shown > away
        start_collector store $listens collector2.log
        await_seconds 5
        killed $controller
        await 'retrying' collector2.log
        start_controller $address controller2.log --ipfix 127.0.0.1:9
        await_seconds 7
        killed $store
        # Elsewhere, where the probes follow it.
        start_collector store 127.0.0.1:0 collector3.log
        wait $sending
        # The probes may not have observed all of the first packets.
        await_results 15000 "[.results // [] | .[] | select(.begin_ns >= $(cat since)000000000).sent] | add // 0"
        ask tasks/load/results > load
        ask tasks/flows/results > flows
        ask ../../metrics > metrics
        end
        finish
    "#;
    let (folder, message) = in_lab(&[COLLECTOR, script].concat());
    let away = read(folder.path(), "away");
    assert!(away.contains("cannot read results from the collector store"), "{away}");
    assert!(away.ends_with(" 503\n") && away.lines().count() == 1, "{away}");
    let mut path = results(&folder, "results", &message);
    let since = read(folder.path(), "since").trim().parse::<i64>().unwrap() * 1_000_000_000;
    path.retain(|second| second["begin_ns"].as_i64() >= Some(since));
    let sent: Value = serde_json::from_str(&read(folder.path(), "sent")).unwrap();
    assert_eq!(sent["sent"], 15_000, "{sent:#}");
    let found = ["sent", "matched", "given_up_sent", "given_up_received"].map(|it| sum(&path, it));
    assert_eq!(found, [15_000, 15_000, 0, 0], "{path:#?}{message}");
    let load: Value = serde_json::from_str(&read(folder.path(), "load")).unwrap();
    assert!(sum(load["results"].as_array().unwrap(), "packets") <= 15_100, "{load:#}");
    let flows: Value = serde_json::from_str(&read(folder.path(), "flows")).unwrap();
    assert_eq!(flows["results"][0]["dport"], 7000, "{flows:#}");
    let metrics = read(folder.path(), "metrics");
    for sample in [r#"collector_up{collector="store"} 1"#, r#"task_loss_ratio{task="path"} 0"#] {
        assert!(metrics.contains(&format!("\nwirestamp_{sample}\n")), "{sample}: {metrics}");
    }
    assert!(message.contains("enrolled the collector store"), "{message}");
    assert!(!message.contains("cannot read earlier results"), "{message}");
    assert_eq!(Leftovers::now(), before);
}

/// The disk of a collector is full for some seconds; then the collector is away. Both are in the API and the metrics, and
/// no packet is lost or counted twice.
#[test]
fn full_disk_of_a_collector_is_reported_and_loses_no_result() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = r#"
        kill -INT $store
        wait $store
        cp -r store kept
        # Of the mount namespace that the lab has of its own.
        mount -t tmpfs -o size=4m none store
        cp kept/* store
        start_collector store $listens collector2.log
        send 600000
        await_seconds 2
        cat /dev/zero > store/filler 2> filling || true
        until ask results | jq -e '.cannot_store[0]' > full; do sleep 0.1; done
        ask ../../metrics > metrics
        rm store/filler
        until ask results | jq -e '.cannot_store == null' > room; do sleep 0.1; done
        kill -INT $sending
        wait $sending
        await_last
        ask ../../metrics > metrics2
        kill -INT $store
        wait $store
        until ask results | jq -e '.without_results | length == 4' > away; do sleep 0.1; done
        end
        umount store
    "#;
    let (folder, message) = in_lab(&[COLLECTOR, script].concat());
    let path = results(&folder, "results", &message);
    assert!(sum(&path, "matched") > 2000, "{path:#?}{message}");
    assert_eq!(sum(&path, "given_up_sent"), 0, "{path:#?}{message}");
    let full = read(folder.path(), "full");
    assert!(full.starts_with("\"the collector store cannot store results: "), "{full}");
    for (metrics, count) in [("metrics", 1), ("metrics2", 0)] {
        let metrics = read(folder.path(), metrics);
        let sample = format!("\nwirestamp_collector_troubles{{collector=\"store\"}} {count}\n");
        assert!(metrics.contains(&sample), "{sample}: {metrics}");
    }
    assert_eq!(Leftovers::now(), before);
}

/// It does not run, but its machine acknowledges packets.
#[test]
fn stopped_collector_is_disconnected() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = r#"
        let_in_collector store store.log
        until_up() { # 0 or 1
            until ask ../../metrics | grep -qFx "wirestamp_collector_up{collector=\"store\"} $1"; do sleep 0.1; done
        }
        until_up 1
        kill -STOP $store
        until_up 0
        kill -CONT $store
        until_up 1
        kill -INT $store $controller
        wait $store $controller
    "#;
    in_lab(&[ENTER, script].concat());
    assert_eq!(Leftovers::now(), before);
}

/// The gRPC status of calls to the collector with different certificates: 7 is "permission denied", 16
/// "unauthenticated". Nodes are identified by their role, which curl does not check.
const ASKED: &str = r#"
        send 600000
        await_seconds 2
        cat /proc/$store/task/*/status > collector.status
        asked() { # SERVICE/CALL ARGUMENTS
            call=$1
            shift
            # Who is refused before all was sent may hear of nothing but that.
            until head -c 5 /dev/zero | curl -sS -k --http2 "$@" -H 'content-type: application/grpc' \
                --data-binary @- -D - -o body https://$listens/wirestamp.mesh.v1.$call |
                tr -d '\r' | grep -i '^grpc-status'; do sleep 0.1; done
        }
        {
            asked Answers/Ask --cert ann.pem
            asked Answers/Ask --cert roof/probe.pem
            asked Answers/Ask --cert store/collector.pem
            asked Answers/Ask
            asked Answers/Ask --cert controller/controller.pem
            asked Collection/Deliver --cert ann.pem
            asked Collection/Deliver --cert controller/controller.pem
        } > asked
        "$0" -q pki revoke roof --authority authority > revoked
        await 'deliveries of probe roof.*certificate of the probe roof is not valid' collector.log
        asked Collection/Deliver --cert roof/probe.pem > refused
        # What was there stays, and is answered.
        shown > there
        "$0" -q pki revoke store --authority authority > revoked
        await 'collector store disconnected: the certificate of the collector store is not valid' controller.log
        until shown > gone && grep -q ' 503$' gone; do sleep 0.1; done
        kill -INT $sending
        wait $sending
        end
        finish
    "#;

#[test]
fn collector_rejects_unauthorized_clients() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_lab(&[COLLECTOR, ASKED].concat());
    let file = |name: &str| read(folder.path(), name);
    let asked = file("asked");
    let status: Vec<_> =
        asked.lines().map(|line| line.trim_start_matches("grpc-status: ")).collect();
    // The request is invalid: 3 is "invalid argument".
    assert_eq!(status, ["7", "7", "7", "16", "3", "7", "7"], "{asked}{message}");
    assert_eq!(file("refused").trim(), "grpc-status: 16", "{message}");
    assert!(file("there").ends_with(" 200\n"), "{}", file("there"));
    let gone = file("gone");
    assert!(gone.contains("its certificate is not valid any more"), "{gone}");
    assert_privileges(&file("collector.status"), "0000000000000000");
    assert_each_thread(&file("collector.status"), "NoNewPrivs:", "1");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn failed_start_reports_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().to_str().unwrap();
    let output = run(&["collector", "--folder", own, "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let why = stderr(&output);
    assert!(why.contains("enrol the collector with a token from `wirestamp pki token`"), "{why}");
}
