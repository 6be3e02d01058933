//! Probes that stall, whose disk is full, or whose folder was restored or copied: they cause no loss.

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Leftovers, is_root};
use crate::mesh::nodes::in_mesh;
use crate::mesh::{read, results, sum};

/// Each probe is stopped for longer than its captures can keep packets, and continues. What it missed is no loss.
#[test]
fn stalled_probes_cause_no_loss() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        passed() { ip netns exec wirestamp-sink cat /sys/class/net/tap-b/statistics/rx_packets; }
        stall() { # PROBE, while 30000 packets pass: 6 s
            kill -STOP $1
            last=$(($(passed) + 30000))
            until [ $(passed) -ge $last ]; do sleep 0.1; done
            kill -CONT $1
        }
        "$0" send --json -q -i out@wirestamp-source --to 10.77.2.2 --port 7000 --pattern free \
            --size 100 --interval 200us -c 600000 > sent &
        sending=$!
        await_seconds 2
        stall $cellar
        await_seconds 10
        stall $roof
        kill -INT $sending
        wait $sending
        await_last
        ask tasks/load/results > load
        ask tasks/flows/results > flows
        end
        "#,
    );
    let flows: Value = serde_json::from_str(&read(folder.path(), "flows")).unwrap();
    let flows = flows["results"].as_array().unwrap();
    assert!(sum(flows, "capture_missed") > 1000, "{flows:#?}");
    let path = results(&folder, "results", &message);
    let [at_a, at_b] = ["given_up_sent", "given_up_received"].map(|key| sum(&path, key));
    assert!(at_a > 1000 && at_b > 1000, "the captures missed nothing: {path:#?}{message}");
    let load: Value = serde_json::from_str(&read(folder.path(), "load")).unwrap();
    let load = load["results"].as_array().unwrap();
    let spread = load.iter().filter(|second| second["missed"].as_u64() > Some(0)).count();
    assert!(sum(load, "missed") > 1000 && spread > 3, "{load:#?}");
    assert_eq!(Leftovers::now(), before);
}

/// The disk of a probe is full for some seconds. It keeps its observations, and reports the trouble.
#[test]
fn full_disk_of_a_probe_causes_no_loss() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        kill -INT $cellar
        wait $cellar
        cp -r cellar kept
        # Of the mount namespace that the lab has of its own.
        mount -t tmpfs -o size=8m none cellar
        cp kept/* cellar
        start_probe cellar cellar2.log
        send 600000
        await_seconds 2
        cat /dev/zero > cellar/filler 2> filling || true
        await 'cannot write to the spool' cellar2.log
        until ask probes | jq -e '.[0].health.troubles[0].why' > trouble; do sleep 0.1; done
        passed() { ip netns exec wirestamp-sink cat /sys/class/net/tap-b/statistics/rx_packets; }
        last=$(($(passed) + 3000))
        until [ $(passed) -ge $last ]; do sleep 0.1; done
        rm cellar/filler
        until ask probes | jq -e '.[0].health.troubles | length == 0' > trouble2; do sleep 0.1; done
        kill -INT $sending
        wait $sending
        await_last
        end
        umount cellar
        "#,
    );
    let path = results(&folder, "results", &message);
    assert!(sum(&path, "matched") > 4000, "{path:#?}{message}");
    let [at_a, at_b] = ["given_up_sent", "given_up_received"].map(|key| sum(&path, key));
    assert!(at_a + at_b < 2000, "observations were not kept: {path:#?}{message}");
    assert!(read(folder.path(), "trouble").contains("kept in memory"), "{message}");
    assert_eq!(Leftovers::now(), before);
}

/// The traffic task counted no packet twice.
pub(super) fn assert_counted_once(folder: &TempDir) {
    let [sent, load] = ["sent", "load"].map(|name| read(folder.path(), name));
    let [sent, load]: [Value; 2] = [sent, load].map(|text| serde_json::from_str(&text).unwrap());
    let counted = sum(load["results"].as_array().unwrap(), "packets");
    assert!(counted > 1000 && counted <= sent["sent"].as_u64().unwrap(), "{counted} {sent:#}");
}

/// A copy of a probe runs beside it. The copy is refused, and delivers nothing.
#[test]
fn second_probe_with_the_same_folder_is_refused() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        kill -INT $cellar
        wait $cellar
        cp -r cellar copy
        start_probe cellar cellar2.log
        send 600000
        await_seconds 2
        "$0" probe $address --folder copy --namespaces 2> copy.log &
        copy=$!
        await 'a probe with the certificate of cellar is connected' copy.log
        await_results 5 '.results // [] | map(select(.matched > 900)) | length'
        ask probes > probes
        kill -INT $copy
        wait $copy
        kill -INT $sending
        wait $sending
        await_last
        ask tasks/load/results > load
        end
        "#,
    );
    assert!(sum(&results(&folder, "results", &message), "matched") > 4000, "{message}");
    let probes: Value = serde_json::from_str(&read(folder.path(), "probes")).unwrap();
    assert!(probes[0]["refused"].as_str().unwrap().starts_with("127.0.0.1:"), "{probes:#}");
    assert!(message.contains("refused the probe cellar"), "{message}");
    assert_counted_once(&folder);
    assert_eq!(Leftovers::now(), before);
}

/// The folder of a probe is replaced by an earlier copy of it. Nothing that it then observes is lost.
#[test]
fn restored_folder_of_a_probe_causes_no_loss() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (folder, message) = in_mesh(
        r#"
        send 600000
        await_seconds 2
        kill -INT $cellar
        wait $cellar
        cp -r cellar backup
        start_probe cellar cellar2.log
        # The collector has what the copy has not: a second that began after the start is settled.
        await_settled $(($(date +%s) + 1))
        killed $cellar
        rm -r cellar
        mv backup cellar
        start_probe cellar cellar3.log
        await 'was restored or copied' cellar3.log
        restarted=$(jq '.results | length' results)
        await_results $((restarted + 3)) '.results // [] | map(select(.matched > 900)) | length'
        until ask probes | jq -e '.[0].health.troubles[0].why' > trouble; do sleep 0.1; done
        kill -INT $sending
        wait $sending
        await_last
        ask tasks/load/results > load
        end
        "#,
    );
    let path = results(&folder, "results", &message);
    assert!(sum(&path, "matched") > 4000, "{path:#?}{message}");
    assert!(read(folder.path(), "trouble").contains("was restored or copied"), "{message}");
    assert_counted_once(&folder);
    assert_eq!(Leftovers::now(), before);
}
