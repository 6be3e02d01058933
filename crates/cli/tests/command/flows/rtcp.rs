//! Reports of the far ends by RTCP, beside tshark.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{json as run_json, run, tool};

pub(super) type Ends = ([u8; 4], u16, [u8; 4], u16);

const THERE: Ends = ([10, 0, 0, 1], 4000, [10, 0, 0, 2], 5004);
const BACK: Ends = ([10, 0, 0, 2], 5004, [10, 0, 0, 1], 4000);
const RTCP_THERE: Ends = ([10, 0, 0, 1], 4001, [10, 0, 0, 2], 5005);
const RTCP_BACK: Ends = ([10, 0, 0, 2], 5005, [10, 0, 0, 1], 4001);

/// SSRCs of both streams.
const CALLER: u32 = 0x11;
const CALLEE: u32 = 0x22;

const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

/// Time in nanoseconds, and an IPv4 packet.
pub(super) type Packet = (u64, Vec<u8>);

pub(super) fn udp(
    time: u64,
    (source, source_port, destination, port): Ends,
    payload: &[u8],
) -> Packet {
    let length = u16::try_from(payload.len()).unwrap();
    let [high, low] = (28 + length).to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0];
    let fields = [source_port, port, 8 + length, 0].map(u16::to_be_bytes);
    (time, [&header[..], &source, &destination, fields.as_flattened(), payload].concat())
}

/// Packets of PCMU, one each 20 ms, without some.
fn voice(ends: Ends, ssrc: u32, is_lost: impl Fn(u16) -> bool) -> impl Iterator<Item = Packet> {
    (0..1100).filter(move |number| !is_lost(*number)).map(move |number: u16| {
        let [high, low] = number.to_be_bytes();
        let timestamp = (u32::from(number) * 160).to_be_bytes();
        let head = [[0x80, 0, high, low], timestamp, ssrc.to_be_bytes()];
        let payload = [head.as_flattened(), &[0xff; 160]].concat();
        udp(20 * MILLISECOND * u64::from(number), ends, &payload)
    })
}

/// A packet of RTCP (RFC 3550 section 6.4.1).
fn rtcp(count: u8, packet_type: u8, content: &[u32]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    let words = content.iter().flat_map(|word| word.to_be_bytes());
    [0x80 | count, packet_type, high, low].into_iter().chain(words).collect()
}

/// An SR with one block, and an SDES.
fn sender_report(ssrc: u32, ntp_middle: u32, block: [u32; 6]) -> Vec<u8> {
    let info = [ssrc, 0xe000_0000 | ntp_middle >> 16, ntp_middle << 16, 0, 0, 0];
    let report = rtcp(1, 200, &[info, block].concat());
    [report, rtcp(1, 202, &[ssrc, 0x0101_6100])].concat()
}

/// Four rounds: the caller reports each 5 s, and the callee 1 s after it has received that. Its answers pass 1041, 1042, 1043
/// and 1044 ms after the report; the caller answers the one before in its next report, after 3.75 s.
fn reports() -> Vec<Packet> {
    let mut packets = Vec::new();
    for round in 1..=4u32 {
        let [caller, callee] = [0x8000, 0xc000].map(|fraction| round << 16 | fraction);
        let start = 5 * SECOND * u64::from(round);
        let number = 250 * round + 48;
        // The callee lost what is missing here, which is one of 100 packets, and 4 a round.
        let lost = (number + 50) / 100 + 4 * round;
        let (last, wait) = if round == 1 { (0, 0) } else { (callee - 0x1_0000, 15 << 14) };
        // Two duplicates: -2 lost, in 24 bits.
        let block = [CALLEE, 0x00ff_fffe, number - 50, 16 * round, last, wait];
        packets.push(udp(start, RTCP_THERE, &sender_report(CALLER, caller, block)));
        let block = [CALLER, round << 26 | lost, number, 240 - 40 * round, caller, 1 << 16];
        let mut answer = sender_report(CALLEE, callee, block);
        if round == 4 {
            let metrics =
                [CALLER, 0x1008_0000, 0, 0, 0x7f7f_7f10, 0x5d7f_2928, 0xb000_003c, 0x0064_00c8];
            answer.extend(rtcp(0, 207, &[&[CALLEE, 0x0700_0008][..], &metrics].concat()));
        }
        let answered = start + SECOND + (40 + u64::from(round)) * MILLISECOND;
        packets.push(udp(answered, RTCP_BACK, &answer));
    }
    let stranger = rtcp(1, 201, &[0x33, 0x44, 0, 0, 0, 0, 0]);
    packets.push(udp(21 * SECOND, RTCP_BACK, &stranger));
    packets
}

/// A file of classic pcap with stamps in nanoseconds and raw IP (link type 101).
pub(super) fn write(path: &Path, mut packets: Vec<Packet>) {
    packets.sort_by_key(|(time, _)| *time);
    let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes);
    let mut bytes = header.as_flattened().to_vec();
    for (time, packet) in packets {
        let length = u64::try_from(packet.len()).unwrap();
        let record = [1_700_000_000 + time / SECOND, time % SECOND, length, length];
        let record = record.map(|field| u32::try_from(field).unwrap().to_le_bytes());
        bytes.extend(record.as_flattened());
        bytes.extend(packet);
    }
    fs::write(path, bytes).unwrap();
}

/// The last value of each field of RTCP for each stream, as tshark prints them: SSRC, share, lost, number, jitter.
fn of_tshark(path: &str, ssrc: u32) -> Vec<String> {
    let names = ["identifier", "fraction", "cum_nr", "ext_high", "jitter"];
    let fields = names.map(|name| format!("rtcp.ssrc.{name}"));
    let mut arguments = vec![
        "-n",
        "-r",
        path,
        "-d",
        "udp.port==4001,rtcp",
        "-Y",
        "rtcp.ssrc.jitter",
        "-T",
        "fields",
    ];
    for field in &fields {
        arguments.extend(["-e", field.as_str()]);
    }
    let text = tool("tshark", &arguments);
    // A VoIP metrics block has some of the fields, too.
    let first = |cell: &str| cell.split(',').next().unwrap_or(cell).to_owned();
    let rows = text.lines().map(|line| line.split('\t').map(first).collect::<Vec<_>>());
    let id = format!("0x{ssrc:08x}");
    let mut rows = rows.filter(|row| row[0] == id).collect::<Vec<_>>();
    assert_eq!(rows.len(), 4, "{text}");
    rows.pop().unwrap()
}

#[test]
fn reports_of_the_far_ends_are_beside_their_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("call.pcap");
    let there = voice(THERE, CALLER, |number| number % 100 == 50);
    let back = voice(BACK, CALLEE, |_| false);
    write(&path, there.chain(back).chain(reports()).collect());
    let path = path.to_str().unwrap();
    let found = run_json(&["flows", path, "--json"]);
    assert_eq!(found["rtcp_unmatched_reports"], 1, "{found:#}");
    let flows = found["flows"].as_array().unwrap();
    let stream = |ssrc: u32| flows.iter().find(|flow| flow["ssrc"] == ssrc).unwrap();
    assert_eq!((&stream(CALLER)["lost"], &stream(CALLEE)["lost"]), (&11.into(), &0.into()));
    let [caller, callee] = [CALLER, CALLEE].map(|ssrc| &stream(ssrc)["rtcp"]);
    let plain = flows.iter().filter(|flow| flow["ssrc"].is_null());
    assert!(plain.clone().count() == 2 && plain.clone().all(|flow| flow["rtcp"].is_null()));

    let trip = |count: u64, [last, min, max]: [u64; 3]| {
        let [last, min, max] = [last, min, max].map(|it| it * MILLISECOND);
        json!({"count": count, "last_ns": last, "min_ns": min, "max_ns": max, "error_ns": 15_259})
    };
    let (to_callee, to_caller) = (trip(4, [44, 41, 44]), trip(3, [207, 207, 209]));
    for (key, value) in [
        ("sender_reports", json!(4)),
        ("receiver_reports", json!(4)),
        ("mismatched_reports", json!(0)),
        ("unreadable_packets", json!(0)),
        ("reporter_ssrc", json!(CALLEE)),
        ("fraction_lost", json!(0.0625)),
        ("max_fraction_lost", json!(0.0625)),
        ("cumulative_lost", json!(26)),
        ("max_cumulative_lost", json!(26)),
        ("extended_highest_sequence", json!(1048)),
        ("jitter_ns", json!(10 * MILLISECOND)),
        ("min_jitter_ns", json!(10 * MILLISECOND)),
        ("max_jitter_ns", json!(25 * MILLISECOND)),
        ("round_trip_to_receiver", to_callee.clone()),
        ("round_trip_to_sender", to_caller.clone()),
    ] {
        assert_eq!(caller[key], value, "{key}: {caller:#}");
    }
    let comparison =
        json!({"expected": 750, "lost_here": 7, "lost_at_receiver": 19, "lost_beyond": 12});
    assert_eq!(caller["loss_comparison"], comparison);
    let voip = &caller["voip_metrics"];
    assert_eq!((&voip["mos_lq"], &voip["mos_cq"]), (&json!(4.1), &json!(4.0)));
    assert_eq!((&voip["r_factor"], &voip["external_r_factor"]), (&json!(93), &Value::Null));

    assert_eq!((&callee["cumulative_lost"], &callee["voip_metrics"]), (&json!(-2), &Value::Null));
    assert_eq!(callee["round_trip_to_receiver"], to_caller);
    assert_eq!(callee["round_trip_to_sender"], to_callee);
    assert_eq!(callee["loss_comparison"]["lost_beyond"], 0, "{callee:#}");

    for (ssrc, ours) in [(CALLER, caller), (CALLEE, callee)] {
        let share = ours["fraction_lost"].as_f64().unwrap() * 256.0;
        let jitter = ours["jitter_ns"].as_u64().unwrap() * 8000 / SECOND;
        let (lost, number) = (&ours["cumulative_lost"], &ours["extended_highest_sequence"]);
        let expected =
            [share.to_string(), lost.to_string(), number.to_string(), jitter.to_string()];
        assert_eq!(of_tshark(path, ssrc)[1..], expected);
    }

    let text = String::from_utf8(run(&["flows", path, "-v"]).stdout).unwrap();
    for part in ["RTCP of stream", "12 of 750", "LQ 4.1 CQ 4.0", "1 report by RTCP is about no"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let row =
        text.lines().find(|line| line.contains(" 0x00000011  ") && line.contains("12 of 750"));
    let cells: Vec<_> =
        row.unwrap().split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
    // Reports, then what was lost here and there.
    assert_eq!(cells[1..4], ["4", "11", "26"], "{text}");
    // Jitter here and there.
    assert_eq!(cells[6..8], ["0 ns", "10.0 ms"], "{text}");
    let text = String::from_utf8(run(&["flows", path]).stdout).unwrap();
    assert!(!text.contains("RTCP"), "{text}");
}
