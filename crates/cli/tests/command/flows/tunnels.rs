//! Flows inside of tunnels, of compressed files, and of captures on all interfaces.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{json, run};
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
        let tunnel = serde_json::json!({"layers": [{"kind": "gtp-u", "id": 1}], "packets": 50});
        assert_eq!(
            flow["encapsulations"],
            serde_json::json!({"kinds": [tunnel], "others": 0}),
            "{file}"
        );
        let ends = [A, B].map(|it| it.map(|byte| byte.to_string()).join("."));
        assert_eq!(
            (&flow["src"], &flow["dst"]),
            (&ends[0].as_str().into(), &ends[1].as_str().into())
        );
    }
}

/// A capture of an Ethernet with datagrams of one flow: 30 in VLAN 42 of provider VLAN 100, 10 in VLAN 7, 5 without one.
fn tagged() -> Classic {
    let mut capture = Classic::of_link(1);
    let tags = [(30, &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 42][..]), (10, &[0x81, 0, 0, 7]), (5, &[])];
    let tags = tags.into_iter().flat_map(|(packets, tag)| std::iter::repeat_n(tag, packets));
    for (number, tag) in (0..).zip(tags) {
        let mut datagram = Classic(Vec::new());
        datagram.udp(0, 4000, 9000, b"no stream");
        let frame = &datagram.0[16..];
        capture.frame(sent(number), &[&frame[..12], tag, &frame[12..]].concat());
    }
    capture
}

#[test]
fn vlans_of_a_flow_are_shown_with_their_packets() {
    let folder = tempfile::tempdir().unwrap();
    let [file, csv] = ["tagged.pcap", "flows.csv"].map(|name| folder.path().join(name));
    fs::write(&file, tagged().0).unwrap();
    let [file, csv] = [&file, &csv].map(|path| path.to_str().unwrap());
    let found = json(&["flows", file, "--json", "--csv", csv]);
    let flow = only_flow(&found);
    let kinds = flow["encapsulations"]["kinds"].as_array().unwrap();
    let packets: Vec<_> = kinds.iter().map(|kind| kind["packets"].as_u64().unwrap()).collect();
    assert_eq!((&packets[..], &flow["packets"]), (&[30, 10][..], &45.into()), "{flow:#}");
    let rows = fs::read_to_string(csv).unwrap();
    assert!(rows.contains("100.42,\"vlan 100, vlan 42\""), "{rows}");
    let text = String::from_utf8(run(&["flows", file, "-v"]).stdout).unwrap();
    assert!(text.lines().any(|line| line.contains("vlan 7") && line.ends_with("10")), "{text}");
}
