//! `capture --list -i`, and the refusal of what an interface cannot do.

use std::fs;

use crate::common::{Leftovers, is_root, json, run, stderr, tool};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_wirestamp");

fn row<'a>(list: &'a Value, method: &str, stamp: &str) -> &'a Value {
    let mut rows = list.as_array().unwrap().iter();
    rows.find(|row| row["method"] == method && row["stamp"] == stamp).unwrap()
}

#[test]
fn list_shows_the_interfaces_capabilities() {
    if !is_root() {
        return;
    }
    let list = json(&["capture", "--list", "-i", "lo", "--json"]);
    let libpcap = row(&list, "libpcap", "raw");
    assert_eq!((&libpcap["possible"], &libpcap["reason"]), (&true.into(), &Value::Null));
    assert!(libpcap["taken"].as_str().unwrap().contains("libpcap returns"), "{libpcap:#}");
    for method in ["ring", "recvmsg", "recvmmsg", "xdp", "xdp-pass"] {
        let by_card = row(&list, method, "hardware");
        assert_eq!(by_card["possible"], false);
        assert_eq!(by_card["reason"], "its network card stamps no packets");
    }
    // The kernel may have the function, as with its module.
    let raw = row(&list, "xdp-pass", "raw");
    if raw["possible"] == false {
        assert!(raw["reason"].as_str().unwrap().contains("load the module wirestamp"), "{raw:#}");
    } else {
        assert!(raw["taken"].as_str().unwrap().contains("network stack"), "{raw:#}");
    }
    let traced = row(&list, "trace-pass", "trace");
    assert_eq!((&traced["possible"], &traced["reason"]), (&true.into(), &Value::Null));
    assert!(traced["taken"].as_str().unwrap().contains("tracepoint"), "{traced:#}");
    assert!(traced["limits"].as_str().unwrap().contains("counted"), "{traced:#}");
    let text = tool(BINARY, &["capture", "--list", "-i", "lo"]);
    assert!(text.starts_with("lo: up, no driver, no XDP in the driver"), "{text}");
    let rows = list.as_array().unwrap();
    assert_eq!(text.lines().count(), 2 + rows.len(), "{text}");
    let plain = json(&["capture", "--list", "--json"]);
    assert_eq!(plain.as_array().unwrap().len(), rows.len());
    assert_eq!(plain[0].get("possible"), None);

    let missing = run(&["capture", "--list", "-i", "no-such-if"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("ip link"), "{}", stderr(&missing));
}

#[test]
fn unsupported_method_lists_the_supported_ones() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    // Once the first capture has printed a line, its XDP program is attached and excludes other XDP programs.
    let script = r#"
        mkfifo "$1/message"
        "$0" capture -i tap-b@wirestamp-sink --method xdp-pass > /dev/null 2> "$1/message" &
        exec 3< "$1/message"
        read -r line <&3
        "$0" capture -i tap-b@wirestamp-sink --method xdp-pass 2> "$1/refused"
        echo $? > "$1/code"
        "$0" capture --list -i tap-b@wirestamp-sink --json > "$1/list"
        kill -INT $!
        wait $!
    "#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    run(&["lab", "run", "sh", "-c", script, BINARY, path]);
    assert_eq!(Leftovers::now(), before);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let refused = read("refused");
    assert_eq!(read("code").trim(), "2", "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
    assert!(refused.contains("XDP program") && refused.contains("ring (kernel, raw)"), "{refused}");
    let list: Value = serde_json::from_str(&read("list")).unwrap();
    let taken = row(&list, "xdp-pass", "xdp");
    assert_eq!(taken["possible"], false);
    assert!(taken["reason"].as_str().unwrap().contains("XDP program"), "{taken:#}");
    assert_eq!(row(&list, "ring", "kernel")["possible"], true);
}
