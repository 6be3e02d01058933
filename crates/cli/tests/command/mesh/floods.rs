//! Strangers who burden all nodes at once: members lose no window and no packet, and the log stays short.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::nodes::in_mesh;
use crate::mesh::{read, results, sum};

/// Program of the strangers.
pub(super) const FLOODER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/flooder.py");

/// Max lines that all nodes together write during the floods, which take less than a minute.
const MAX_LINES: u64 = 100;

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
    flood() { # KIND ADDRESS [SESSION OR REQUEST]
        kind=$1
        shift
        $run /usr/bin/python3 FLOODER $kind $1 SECONDS ${2-} > flood.$kind 2> flood.$kind.errors &
        flooding="${flooding-} $!"
    }
    run= flood connections $address
    run= flood tokens $address stranger.request
    run="ip netns exec wirestamp-source" flood tests 10.77.2.2:5555 $((number + 1))
    for flood in $flooding; do wait $flood; done
    lines > after
    await_settled $(($(date +%s) + 1))
    kill -INT $sending
    wait $sending
    await_last
    ask tasks/sealed/results > sealed
    curl -sS --cert ann.pem --cacert ann.pem "https://$address/metrics" > metrics
    end
"#;

/// Length of the floods, in seconds.
const SECONDS: u64 = 15;

#[test]
fn members_lose_nothing_in_floods_of_strangers() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let script = FLOODS.replace("FLOODER", FLOODER).replace("SECONDS", &SECONDS.to_string());
    let (folder, message) = in_mesh(&script);
    let number = |name: &str| -> u64 { read(folder.path(), name).trim().parse().unwrap_or(0) };
    let [connections, tokens, tests] =
        ["connections", "tokens", "tests"].map(|kind| number(&format!("flood.{kind}")) / SECONDS);
    println!(
        "in a second: {connections} connections, {tokens} wrong tokens, {tests} forged packets"
    );
    // A busy machine has fewer. With none, the floods did not work.
    assert!(connections > 500 && tokens > 100 && tests > 5_000, "{message}");
    let path = results(&folder, "results", &message);
    let sealed = results(&folder, "sealed", &message);
    for (name, windows) in [("path", &path), ("sealed", &sealed)] {
        assert!(sum(windows, "matched") > 1000, "{name}: {windows:#?}{message}");
        assert_no_window_is_missing(name, windows);
    }
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
