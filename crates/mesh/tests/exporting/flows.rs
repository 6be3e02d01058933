//! Flows that a probe has followed.

use wirestamp_clock::Time;
use wirestamp_mesh::probe::ChannelName;
use wirestamp_mesh::protocol::Flows;
use wirestamp_mesh::protocol::ipfix::element::{LAYER2_OCTET_TOTAL_COUNT, PACKET_TOTAL_COUNT};
use wirestamp_mesh::spool::Batch;

use super::super::common::{BEGIN, MILLISECOND, now};
use super::*;

/// A flow report.
fn report(packets: u64, last: i64, rest: &str) -> String {
    let (first, last, bytes) = (BEGIN, BEGIN + last * MILLISECOND, 100 * packets);
    format!(
        r#"{{"packets":{packets},"bytes":{bytes},"first_ns":{first},"last_ns":{last},"trains":1,{rest}}}"#
    )
}

const RTP: &str = r#""src":"192.0.2.1","dst":"192.0.2.2","sport":4000,"dport":5004,"protocol":17,
    "lost":3,"duplicated":0,"reordered":0,"ssrc":258,"payload_type":8,"codec":"PCMA","expected":93,
    "cumulative_lost":3,"capture_lost":0,"lost_uncertainty":0,"late":0,"stray":0,"restarts":0,
    "loss_periods":1,"burst_ratio":1.0,"jitter_ms":1.5,"max_delta_ms":0.0,"mos":4.25,
    "interval_ms":1000.0,"mos_over_time":[],"loss_over_time":[],"jitter_ms_over_time":[]"#;
const TCP: &str = r#""src":"2001:db8::1","dst":"2001:db8::2","sport":4001,"dport":443,"protocol":6,
    "lost":2,"reordered":0,"retransmitted":2"#;

fn batch(reports: Vec<String>, until: i64) -> Batch {
    let complete_until = Time::from_nanos(BEGIN + until * MILLISECOND);
    let body = Flows { reports, complete_until }.encode();
    Batch { items: 1, times: BEGIN..=complete_until.as_nanos(), body }
}

/// Exported messages of two flows; one of them continues.
pub(super) fn exported() -> Vec<Vec<u8>> {
    let (folder, mesh) = mesh();
    let task = r#"{"name":"f","measure":"flows","at":"roof/eth0"}"#;
    mesh.plan.enter(&serde_json::from_str(task).unwrap(), now()).unwrap();
    let mut receiver = Receiver::of(&mesh);
    let mut receive = || receiver.sums(2, [PACKET_TOTAL_COUNT, LAYER2_OCTET_TOTAL_COUNT]);
    assert_eq!(receive(), [0, 0]);
    let probe = Probe::let_in(&mesh.runtime, folder.path(), mesh.address, "roof", 0);
    let probe = Arc::new(Probe { channel: ChannelName { task: 2, point: 0 }, ..probe });
    mesh.runtime.spawn(Arc::clone(&probe).deliver(mesh.address));
    probe.hold([batch(vec![report(7, 3000, TCP), report(80, 5001, RTP)], 5000)]);
    assert_eq!(next(&mut receive), [87, 8700]);
    probe.hold([batch(vec![report(90, 6000, RTP)], 10_000)]);
    assert_eq!(next(&mut receive), [90, 9000]);
    receiver.messages()
}

/// Templates may come in between.
fn next(receive: &mut impl FnMut() -> [u64; 2]) -> [u64; 2] {
    loop {
        let sums = receive();
        if sums != [0, 0] {
            return sums;
        }
    }
}

#[test]
fn tshark_accepts_flow_records() {
    let printed = dissected(&exported());
    for expected in [
        "SrcAddr: 192.0.2.1",
        "DstAddr: 2001:db8::2",
        "DstPort: 5004",
        "EndTime: Nov 14, 2023 22:13:26.000000000 UTC",
        "Permanent Packets: 90",
        "Dropped Total Packets: 3",
        // A codec, PCMA.
        "Type 46: Value (hex bytes): 50 43 4d 41",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

const PRIMITIVES: &str = "\
name=task_name field_type=32473:1 len=vlen semantics=str
name=total field_type=86 len=8 semantics=u_int
name=octets field_type=353 len=8 semantics=u_int
name=jitter field_type=32473:47 len=8 semantics=u_int
name=codec_name field_type=32473:46 len=vlen semantics=str
";

#[test]
fn nfacctd_accepts_flow_records() {
    let keys = "task_name, src_host, dst_host, dst_port, proto, total, octets, jitter, codec_name";
    let mut records = printed(&exported(), keys, PRIMITIVES, 3);
    records.sort_by_key(|it| (it["ip_dst"].to_string(), it["total"].to_string()));
    let [before, rtp, tcp] = records.as_slice() else { panic!("{records:?}") };
    for (name, value) in
        [("task_name", "f"), ("octets", "9000"), ("jitter", "1500000"), ("codec_name", "PCMA")]
    {
        assert_eq!(rtp[name], value, "{rtp}");
    }
    assert_eq!((&rtp["ip_src"], &rtp["port_dst"]), (&"192.0.2.1".into(), &5004.into()), "{rtp}");
    assert_eq!((&tcp["ip_dst"], &tcp["ip_proto"]), (&"2001:db8::2".into(), &"tcp".into()), "{tcp}");
    assert_eq!(before["total"], "80", "{before}");
    assert_eq!((&rtp["total"], &tcp["total"]), (&"90".into(), &"7".into()), "{rtp} {tcp}");
}
