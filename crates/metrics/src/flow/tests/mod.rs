//! Tests of the flow monitor with complete packets.

mod codecs;
mod ended_streams;
mod fragments;
mod iperf3;
mod media_delivery;
mod missed;
mod other_traffic;
mod rtcp;
mod rtp;
mod tcp;
mod video;
mod wirestamp;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{LinkType, Packet};

use super::*;

/// Addresses and ports of most packets here.
const ENDS: ([u8; 4], u16, [u8; 4], u16) = ([10, 0, 0, 1], 4000, [10, 0, 0, 2], 5004);

const fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(millis * 1_000_000)
}

fn ip(protocol: u8, ends: ([u8; 4], u16, [u8; 4], u16), rest: &[u8]) -> Vec<u8> {
    let (source, source_port, destination, destination_port) = ends;
    let length = u16::try_from(24 + rest.len()).expect("a short packet");
    let [high, low] = length.to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let ports = [source_port, destination_port].map(u16::to_be_bytes);
    [&header[..], &source, &destination, ports.as_flattened(), rest].concat()
}

fn udp(ends: ([u8; 4], u16, [u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("a short packet").to_be_bytes();
    ip(17, ends, &[&length[..], &[0, 0], payload].concat())
}

/// A packet of 20 ms of PCMU, or of another payload type at the same rate.
fn voice(ssrc: u32, payload_type: u8, number: u16) -> Vec<u8> {
    let timestamp = u32::from(number) * 160;
    let [high, low] = number.to_be_bytes();
    let head = [0x80, payload_type, high, low];
    [&head[..], &timestamp.to_be_bytes(), &ssrc.to_be_bytes(), &[0xff; 160]].concat()
}

/// A packet of RTP with seven packets of an MPEG transport stream, one such packet each 10 ms.
fn transport_stream(number: u16) -> Vec<u8> {
    let head = [[0x80, 33], number.to_be_bytes()];
    let timestamp = (u32::from(number) * 900).to_be_bytes();
    [head.as_flattened(), &timestamp, &[0, 0, 0, 9], &[0x47; 1316]].concat()
}

fn observe(monitor: &mut FlowMonitor, bytes: &[u8], time: Time<Utc>) {
    let packet = Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
    let length = u32::try_from(bytes.len()).expect("a short packet");
    monitor.observe(&FlowPacket { packet: &packet, length, time, encapsulation: None });
}

fn reports(monitor: &mut FlowMonitor) -> Vec<FlowReport> {
    let mut reports: Vec<_> = monitor.flows().collect();
    reports.sort_by(FlowReport::worst_first);
    reports
}

fn monitor() -> FlowMonitor {
    FlowMonitor::new(FlowConfig::default())
}

#[test]
fn reported_and_evicted_packets_add_up() {
    let mut monitor = FlowMonitor::new(FlowConfig { flows: 3, ..FlowConfig::default() });
    let (mut packets, mut bytes) = (0, 0);
    for number in 0..200u16 {
        let ends = ([10, 0, 0, 1], 4000 + number % 7, [10, 0, 0, 2], 5004);
        let payload = voice((number % 7).into(), 0, number / 7);
        let payload = if number % 11 == 0 { vec![7; 30] } else { payload };
        let packet = udp(ends, &payload);
        observe(&mut monitor, &packet, at(i64::from(number)));
        packets += 1;
        bytes += packet.len() as u64;
    }
    let reports = reports(&mut monitor);
    let evicted = monitor.evicted;
    assert!(evicted.flows > 0 && reports.len() <= 6);
    assert_eq!(reports.iter().map(|it| it.packets).sum::<u64>() + evicted.packets, packets);
    assert_eq!(reports.iter().map(|it| it.bytes).sum::<u64>() + evicted.bytes, bytes);
    assert_eq!((monitor.packets(), monitor.bytes()), (packets, bytes));
}

#[test]
fn a_report_has_the_keys_of_the_contract() {
    let mut monitor = monitor();
    for number in 0..10 {
        observe(&mut monitor, &udp(ENDS, &voice(9, 0, number)), at(20 * i64::from(number)));
    }
    let json = serde_json::to_value(&reports(&mut monitor)[0]).expect("JSON");
    for key in [
        "src",
        "dst",
        "sport",
        "dport",
        "protocol",
        "packets",
        "bytes",
        "lost",
        "duplicated",
        "reordered",
        "ssrc",
        "payload_type",
        "jitter_ms",
        "mean_jitter_ms",
        "max_delta_ms",
        "mos",
        "r_factor",
    ] {
        assert!(json.get(key).is_some_and(|value| !value.is_null()), "{key} in {json}");
    }
    assert_eq!((&json["src"], &json["dport"]), (&"10.0.0.1".into(), &5004.into()));
}

#[test]
fn report_round_trips_through_json() {
    let mut monitor = monitor();
    for number in 0..10 {
        observe(&mut monitor, &udp(ENDS, &voice(9, 0, number)), at(20 * i64::from(number)));
        observe(&mut monitor, &udp(ENDS, &[0; 20]), at(20 * i64::from(number)));
        observe(&mut monitor, &ip(6, ENDS, &[0; 16]), at(20 * i64::from(number)));
    }
    let reports = reports(&mut monitor);
    assert_eq!(reports.iter().filter(|it| it.rtp.is_some()).count(), 1);
    assert_eq!(reports.iter().filter(|it| it.tcp.is_some()).count(), 1);
    assert_eq!(reports.len(), 3);
    for report in &reports {
        let text = serde_json::to_string(report).expect("JSON");
        let read: FlowReport = serde_json::from_str(&text).expect("a report");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        assert_eq!((read.rtp.is_some(), read.flow()), (report.rtp.is_some(), report.flow()));
    }
}
