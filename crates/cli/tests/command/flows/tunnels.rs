//! Flows inside of tunnels, of compressed files, and of captures on all interfaces.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::json;
use crate::delay::{A, B, Classic, sent};

const GTP_U: u16 = 2152;

/// A capture on all interfaces (`tcpdump -i any`) of a call in GTP-U.
fn capture() -> Classic {
    let mut capture = Classic::of_link(276);
    for number in 0..50_u32 {
        let mut call = Classic(Vec::new());
        let [.., high, low] = number.to_be_bytes();
        let rtp =
            [&[0x80, 0, high, low][..], &(number * 160).to_be_bytes(), &[1, 2, 3, 4]].concat();
        call.udp(0, 5004, 5004, &[rtp, vec![0; 160]].concat());
        // Behind the record's head and the Ethernet header.
        let call = &call.0[16 + 14..];
        let mut tunnel = Classic(Vec::new());
        tunnel.udp(0, GTP_U, GTP_U, &[&[0x30, 255, 0, 0, 0, 0, 0, 1], call].concat());
        capture.frame(sent(number), &[&[8, 0], &[0; 18][..], &tunnel.0[16 + 14..]].concat());
    }
    capture
}

fn only_flow(found: &Value) -> &Value {
    assert_eq!(found["flows"].as_array().unwrap().len(), 1, "{found:#}");
    &found["flows"][0]
}

#[test]
fn flows_are_those_of_the_tunnel_or_of_its_packets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any.pcap");
    fs::write(&file, capture().0).unwrap();
    for program in ["gzip", "xz"] {
        let compressed = Command::new(program).arg("-k").arg(&file).stdin(Stdio::null()).status();
        assert!(compressed.unwrap().success());
    }
    for ending in ["", ".gz", ".xz"] {
        let file = &format!("{}{ending}", file.to_str().unwrap());
        let found = json(&["flows", file, "--json"]);
        assert_eq!(only_flow(&found)["dport"], GTP_U, "{file}");
        let found = json(&["flows", file, "--json", "--outer", "--inner"]);
        let flow = only_flow(&found);
        assert_eq!((&flow["dport"], &flow["ssrc"]), (&5004.into(), &0x0102_0304.into()), "{file}");
        assert_eq!((&flow["packets"], &flow["lost"]), (&50.into(), &0.into()), "{file}");
        let ends = [A, B].map(|it| it.map(|byte| byte.to_string()).join("."));
        assert_eq!(
            (&flow["src"], &flow["dst"]),
            (&ends[0].as_str().into(), &ends[1].as_str().into())
        );
    }
}
