//! Strangers who burden all nodes at once: members lose no window and no packet, and the log stays short.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::exporter::value;
use crate::mesh::nodes::in_mesh;
use crate::mesh::{read, results, sum};

/// Program of the strangers.
pub(super) const FLOODER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/flooder.py");

/// Max lines that all nodes together write during the floods, which take less than a minute.
const MAX_LINES: u64 = 100;

/// Each flood alone, and then all at once. Two thirds of the packets are forged ones of the authenticated test; the others
/// have the number of another session than that of the test `test`, which requires no code: they are answered, but at most
/// at the max rate.
const FLOODS: &str = r#"
    "$0" -q pki issue olaf --role operator -o olaf.pem --authority authority > issued
    curl -sS --cert olaf.pem --cacert olaf.pem -X PUT "https://$address/api/v1/tasks/sealed" -d '{
        "measure": "active-delay", "from": "roof@wirestamp-source", "to": "cellar@wirestamp-sink",
        "address": "10.77.2.2", "port": 5555, "rate": 100, "bytes": 200, "authenticated": true
    }' > entered
    number=$(jq .number entered)
    lines() { cat *.log | wc -l; }
    send 600000
    await_seconds 3
    await 'reflecting at port 5555' cellar.log
    lines > before
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=stranger \
        -keyout stranger.key -out stranger.request 2> requesting
    open_port=$(ask tasks | jq '.[] | select(.name == "test") | .number + 49152')
    # Each prints its number of attempts.
    connections() { /usr/bin/python3 FLOODER connections $address $1 CONNECTIONS; }
    tokens() { /usr/bin/python3 FLOODER tokens $address $1 TOKENS stranger.request; }
    packets() {
        ip netns exec wirestamp-source /usr/bin/python3 FLOODER packets 10.77.2.2 $1 PACKETS \
            5555 $((number + 1)) $open_port 65535
    }
    for kind in connections tokens packets; do
        $kind ALONE > alone.$kind 2> alone.$kind.errors
    done
    for kind in connections tokens packets; do
        $kind SECONDS > flood.$kind 2> flood.$kind.errors &
        flooding="${flooding-} $!"
    done
    for flood in $flooding; do wait $flood; done
    lines > after
    await_settled $(($(date +%s) + 1))
    kill -INT $sending
    wait $sending
    await_last
    ask tasks/sealed/results > sealed
    ask tasks/test/results > test
    curl -sS --cert ann.pem --cacert ann.pem "https://$address/metrics" > metrics
    end
"#;

/// Length of the floods, in seconds: of each alone, and of all at once.
const ALONE: u64 = 4;
const SECONDS: u64 = 15;

const KINDS: [&str; 3] = ["connections", "tokens", "packets"];

/// Attempts of each kind a second, in capitals in the script.
const RATES: [u64; 3] = [10_000, 10_000, 100_000];

#[test]
fn members_lose_nothing_in_floods_of_strangers() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = FLOODS.replace("FLOODER", FLOODER).replace("ALONE", &ALONE.to_string());
    let mut script = script.replace("SECONDS", &SECONDS.to_string());
    for (kind, rate) in KINDS.iter().zip(RATES) {
        script = script.replace(&kind.to_uppercase(), &rate.to_string());
    }
    let (folder, message) = in_mesh(&script);
    let number = |name: &str| -> u64 { read(folder.path(), name).trim().parse().unwrap_or(0) };
    let alone = KINDS.map(|kind| number(&format!("alone.{kind}")) / ALONE);
    let together = KINDS.map(|kind| number(&format!("flood.{kind}")) / SECONDS);
    for (when, [connections, tokens, packets]) in [("alone", alone), ("at once", together)] {
        println!(
            "{when}, in a second: {connections} connections, {tokens} wrong tokens, {packets} forged packets"
        );
    }
    // At most eight of a connection at a time; the others are refused unread.
    assert!(message.contains("the token is unknown"), "no token was checked: {message}");
    // A busy machine has fewer. With none, the floods did not work.
    for (least, reached) in [([2_000, 500, 50_000], alone), ([500, 200, 10_000], together)] {
        let is_reached = least.iter().zip(reached).all(|(least, reached)| reached >= *least);
        assert!(is_reached, "{alone:?} {together:?} {message}");
    }
    for name in ["results", "sealed", "test"] {
        let windows = results(&folder, name, &message);
        let [matched, excluded] = ["matched", "given_up_sent"].map(|key| sum(&windows, key));
        println!("{name}: {matched} packets matched, {excluded} undetermined");
        assert!(matched > 1000, "{name}: {windows:#?}{message}");
        assert_no_window_is_missing(name, &windows);
    }
    let limited = r#"probe="cellar",task="test",end="reflector",why="limited""#;
    let limited = format!("wirestamp_probe_test_refused_packets_total{{{limited}}}");
    let metrics = read(folder.path(), "metrics");
    assert!(value(&metrics, &limited) > Some(0.0), "{metrics}");
    let lines = number("after") - number("before");
    assert!(lines < MAX_LINES, "{lines} lines: {message}");
    assert_eq!(Leftovers::now(), before);
}

fn assert_no_window_is_missing(name: &str, windows: &[Value]) {
    let second = |window: &Value| window["begin_ns"].as_i64().unwrap() / 1_000_000_000;
    let seconds: BTreeSet<_> = windows.iter().map(second).collect();
    let (first, last) = (seconds.first().unwrap(), seconds.last().unwrap());
    let missing: Vec<_> = (*first..*last).filter(|second| !seconds.contains(second)).collect();
    assert!(missing.is_empty(), "{name}: no window at {missing:?}");
}
