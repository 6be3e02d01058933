//! Captures at an interface that does not exist yet (`--wait-for-interface`).

use std::fs;

use crate::capture::folder;
use crate::common::{Leftovers, is_root, run, stderr, tool};

/// Creates the interface while it is waited for, and sends a frame to it. `$0` is the binary, `$1` the folder.
const SCRIPT: &str = r#"
    cd "$1"
    await() { until grep -q "$1" "$2" 2> grepping; do sleep 0.05; done; }
    "$0" capture -i late --wait-for-interface -w x.pcapng -c 1 arp 2> log & capture=$!
    "$0" capture -i never --wait-for-interface 2> never.log & never=$!
    await 'waiting: there is no interface late' log
    await 'waiting: there is no interface never' never.log
    ip link add late type veth peer name other
    ip link set other up
    ip link set late up
    await Ctrl-C log
    python3 -c '
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("other", 0))
sender.send(bytes.fromhex("ffffffffffff0277000001010806") + bytes(46))
'
    wait $capture
    kill -INT $never
    ! wait $never
"#;

#[test]
fn missing_interface_is_captured_once_it_exists() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let (_folder, path) = folder();
    let shell = ["lab", "run", "timeout", "60", "sh", "-euc", SCRIPT];
    let files = [env!("CARGO_BIN_EXE_wirestamp"), &path("")];
    let output = run(&[&shell[..], &files].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let [log, never] = ["log", "never.log"].map(|name| fs::read_to_string(path(name)).unwrap());
    assert_eq!(log.matches("waiting: ").count(), 1, "{log}");
    assert!(log.contains("capturing on late"), "{log}");
    assert_eq!(never.lines().count(), 2, "{never}");
    assert!(never.lines().last().unwrap().contains("there is no interface never"), "{never}");
    let addresses = tool("tshark", &["-r", &path("x.pcapng"), "-T", "fields", "-e", "eth.src"]);
    assert_eq!(addresses.trim(), "02:77:00:00:01:01");
    assert_eq!(Leftovers::now(), before);
}
