//! An authenticated test while forged packets are sent to its reflector.

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};
use serde_json::Value;

const FORGER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/forger.py");

/// Forged packets of each kind: two kinds have the length of an authenticated packet, one is too short.
const FORGED: u64 = 500;

const SEALED: &str = r#"
    let_in roof roof.log
    let_in cellar cellar.log
    "$0" -q pki issue olaf --role operator -o olaf.pem --authority authority > issued
    port=5555
    curl -sS --cert olaf.pem --cacert olaf.pem -X PUT "https://$address/api/v1/tasks/sealed" -d '{
        "measure": "active-delay", "from": "roof@wirestamp-source", "to": "cellar@wirestamp-sink",
        "address": "10.77.2.2", "port": 5555, "rate": 200, "bytes": 200, "authenticated": true
    }' > entered
    number=$(jq .number entered)
    sealed() { # HOW MANY
        echo '{}' > sealed
        until [ "$(jq '[.results // [] | .[].matched] | add // 0' sealed)" -ge $1 ]; do
            sleep 0.1
            ask tasks/sealed/results > sealed || true
        done 2> asking
    }
    refused() { # HOW MANY, WHY
        until [ "$(jq "[.[].health.tests // [] | .[] | select(.task == $number and .end == \"reflector\") | .$2] |
            add // 0" probes)" -ge $1 ]; do
            sleep 0.1
            ask probes > probes || true
        done 2> asking
    }
    echo '[]' > probes
    sealed 100
    ip netns exec wirestamp-sink tcpdump -q -i tap-b --immediate-mode -c 50 -w test.pcap \
        "udp and dst port $port and greater 200" 2> tcpdump &
    dumping=$!
    await 'listening on' tcpdump
    # The number of a session is one more than that of its task.
    ip netns exec wirestamp-source /usr/bin/python3 FORGER send 10.77.2.2 $port $((number + 1)) COUNT
    wait $dumping
    refused $((2 * COUNT)) forged
    refused COUNT too_short
    # A controller that is started again, and a probe that was away meanwhile, have the same secret.
    sealed 500
    killed $controller
    killed $cellar
    "$0" probe $address --folder cellar --namespaces 2> alone.log &
    cellar=$!
    await 'reflecting at port 5555' alone.log
    start_controller $address controller2.log
    seen=$(jq '[.results[].matched] | add' sealed)
    sealed $((seen + 400))
    ask tasks > tasks
    ask openapi.json > openapi
    curl -sS --cert ann.pem --cacert ann.pem "https://$address/metrics" > metrics
    stat -c %a roof/duties cellar/duties controller/plan.sqlite* > modes
    end
    tshark -r test.pcap -T fields -e udp.payload 2> shark > payloads
    /usr/bin/python3 FORGER check controller/plan.sqlite < payloads > checked 2> secret
"#;

#[test]
fn forged_packets_are_rejected_and_counted() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = SEALED.replace("FORGER", FORGER).replace("COUNT", &FORGED.to_string());
    let (folder, message) = in_lab(&script);
    let of_test = results(&folder, "sealed", &message);
    assert!(sum(&of_test, "matched") >= 900, "{of_test:#?}{message}");
    let probes: Value = serde_json::from_str(&read(folder.path(), "probes")).unwrap();
    let ends = probes[0]["health"]["tests"].as_array().unwrap();
    let refused = |end: &&Value| end["forged"] == 2 * FORGED && end["too_short"] == FORGED;
    assert_eq!(ends.iter().filter(refused).count(), 1, "{probes:#}");
    assert_eq!(ends.iter().filter(|it| it["forged"] == 0).count(), 1, "{probes:#}");
    assert!(message.contains(" rejected a datagram: "), "{message}");
    assert_eq!(read(folder.path(), "checked"), "50 50\n");
    let metrics = read(folder.path(), "metrics");
    let sample = r#"refused_packets_total{probe="roof",task="sealed",end="sender",why="forged"} 0"#;
    assert!(metrics.contains(sample), "{metrics}");
    let secret = read(folder.path(), "secret");
    assert_eq!(secret.trim().len(), 64, "{secret}");
    for text in [message, read(folder.path(), "tasks"), read(folder.path(), "openapi"), metrics] {
        assert!(!text.contains(secret.trim()) && !text.contains("\"secret\""), "{text}");
    }
    let modes = read(folder.path(), "modes");
    assert!(modes.lines().all(|mode| mode == "600"), "{modes}");
    assert_eq!(Leftovers::now(), before);
}
