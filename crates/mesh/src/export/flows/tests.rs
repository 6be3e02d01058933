use crate::protocol::ipfix::{Record, Session, Transport, Unread};

use crate::protocol::ipfix::element::{DESTINATION_IPV6_ADDRESS, SOURCE_IPV4_ADDRESS};

use super::*;
use crate::export::Ipfix;
use crate::task::{TaskRecord, Tasks};

pub(super) const PLAIN: &str = r#"{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":6,"protocol":1,
    "packets":1,"bytes":60,"first_ns":1700000000000000000,"last_ns":1700000000001000000,"trains":1}"#;
const TCP: &str = r#"{"src":"2001:db8::1","dst":"2001:db8::2","sport":80,"dport":9,"protocol":6,
    "packets":7,"bytes":700,"first_ns":1,"last_ns":20,"lost":2,"reordered":3,"trains":1,
    "retransmitted":2,"handshake_ns":30,
    "rtt_ns":{"count":2,"min":5,"mean":7.6,"stddev":0.0,"p50":5,"p90":5,"p99":5,"p999":5,"max":9}}"#;
const TEST: &str = r#"{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":5201,"protocol":17,
    "packets":8,"bytes":800,"first_ns":1,"last_ns":20,"lost":2,"duplicated":1,"reordered":4,
    "trains":1,"iperf3":{"sent":9,"lost":2,"out_of_order":1,"jitter_ms":0.25,"capture_lost":6,
    "lost_uncertainty":0,"counter_bits":32}}"#;

pub(super) fn report(text: &str) -> FlowReport {
    serde_json::from_str(text).unwrap()
}

/// An RTP stream, with or without optional values.
pub(super) fn rtp(jitter_ms: Option<f64>, mos: Option<f64>) -> FlowReport {
    let mut value: serde_json::Value = serde_json::from_str(PLAIN).unwrap();
    let of_rtp = serde_json::json!({
        "lost": 3, "duplicated": 0, "reordered": 0, "ssrc": 258, "payload_type": 8,
        "codec": "PCMA", "expected": 4, "cumulative_lost": 3, "capture_lost": 5,
        "lost_uncertainty": 0, "late": 0, "stray": 0, "restarts": 0, "loss_periods": 1,
        "burst_ratio": 1.0, "jitter_ms": jitter_ms, "max_delta_ms": 0.0, "mos": mos,
        "interval_ms": 1000.0, "mos_over_time": [], "loss_over_time": [], "jitter_ms_over_time": [],
    });
    for (key, of_rtp) in of_rtp.as_object().unwrap() {
        value[key] = of_rtp.clone();
    }
    let report: FlowReport = serde_json::from_value(value).unwrap();
    assert!(report.rtp.is_some());
    report
}

fn tasks() -> Tasks {
    let task = serde_json::from_str(r#"{"name":"f","measure":"flows","at":"roof/eth0"}"#).unwrap();
    let made = "2026-11-22T00:00:00Z".parse().unwrap();
    Tasks::from([(7, TaskRecord { task, made, ended: None })])
}

fn text<'a>(record: &Record<'a>, element: Element) -> &'a str {
    str::from_utf8(record.get(element).unwrap()).unwrap()
}

/// Decoded records of these flows.
fn exported(reports: &[FlowReport], check: impl FnOnce(&[Record<'_>])) {
    let (mut ipfix, mut session) = (Ipfix::default(), Session::new(Transport::Datagrams));
    let descriptions = ipfix.descriptions(&tasks(), 1);
    let messages =
        descriptions.into_iter().chain(ipfix.flows((7, "f"), reports, 2)).collect::<Vec<_>>();
    let read = messages.iter().flat_map(|it| session.read(it).unwrap().records);
    let records: Vec<_> = read.collect();
    let Some((task, flows)) = records.split_first() else { panic!("nothing") };
    assert_eq!(text(task, element::FIRST_POINT_NAME), "roof/eth0");
    assert_eq!(text(task, element::SECOND_POINT_NAME), "");
    check(flows);
    assert_eq!(session.unread(), Unread::default());
}

#[test]
fn record_contains_known_values() {
    let reports = [report(PLAIN), report(TCP), report(TEST), rtp(Some(1.5), Some(4.25))];
    exported(&reports, |records| {
        let [plain, tcp, test, rtp] = records else { panic!("{records:?}") };
        assert_eq!(
            (plain.unsigned(METERING_PROCESS_ID), text(plain, element::TASK_NAME)),
            (Some(7), "f")
        );
        assert_eq!(plain.address(SOURCE_IPV4_ADDRESS), Some([192, 0, 2, 1].into()));
        assert_eq!(plain.unsigned(DESTINATION_TRANSPORT_PORT), Some(6));
        let times = [FLOW_START_NANOSECONDS, FLOW_END_NANOSECONDS].map(|it| plain.time(it));
        assert_eq!(times, [0, 1_000_000].map(|it| Some(Time::from_nanos(BEGIN + it))));
        assert_eq!(plain.unsigned(FLOW_END_MILLISECONDS), Some(1_700_000_000_001));
        assert_eq!(plain.get(element::REORDERED_TOTAL), None);
        let grown = [PACKET_DELTA_COUNT, LAYER2_OCTET_DELTA_COUNT, DROPPED_PACKET_DELTA_COUNT];
        assert_eq!(grown.map(|it| rtp.unsigned(it)), [Some(1), Some(60), Some(3)]);
        assert_eq!(grown.map(|it| tcp.unsigned(it)), [Some(7), Some(700), None]);
        assert_eq!(tcp.address(DESTINATION_IPV6_ADDRESS), "2001:db8::2".parse().ok());
        let of_tcp =
            [element::RETRANSMITTED_TOTAL, element::REORDERED_TOTAL, element::ROUND_TRIP_MEAN];
        assert_eq!(of_tcp.map(|it| tcp.unsigned(it)), [Some(2), Some(3), Some(8)]);
        assert_eq!(tcp.get(DROPPED_PACKET_TOTAL_COUNT), None);
        let of_test = [DROPPED_PACKET_TOTAL_COUNT, element::MISSED_TOTAL, element::JITTER];
        assert_eq!(of_test.map(|it| test.unsigned(it)), [Some(2), Some(6), Some(250_000)]);
        let of_rtp = [DROPPED_PACKET_TOTAL_COUNT, element::SOURCE_OF_RTP, element::JITTER];
        assert_eq!(of_rtp.map(|it| rtp.unsigned(it)), [Some(3), Some(258), Some(1_500_000)]);
        assert_eq!(rtp.get(element::MOS), Some(&4.25_f64.to_be_bytes()[..]));
        assert_eq!(text(rtp, element::CODEC_NAME), "PCMA");
    });
}

const BEGIN: i64 = 1_700_000_000_000_000_000;

#[test]
fn every_combination_has_a_template() {
    let no_trips = FlowReport {
        tcp: report(TCP).tcp.map(|it| wirestamp_metrics::flow::TcpReport { rtt_ns: None, ..it }),
        ..report(TCP)
    };
    let mut reports = vec![report(PLAIN), report(TCP), report(TEST), no_trips];
    for jitter in [None, Some(1.0)] {
        reports.extend([None, Some(4.0)].map(|mos| rtp(jitter, mos)));
    }
    // A probe may report ends of two families, although that is wrong.
    let others =
        reports.clone().into_iter().map(|it| FlowReport { dst: "::1".parse().unwrap(), ..it });
    reports.extend(others);
    exported(&reports, |records| assert_eq!(records.len(), reports.len()));
}

#[test]
fn element_occurs_once_per_record() {
    for template in templates() {
        let mut elements: Vec<_> = template.fields().iter().map(|it| it.element).collect();
        elements.sort_unstable();
        assert!(elements.array_windows().all(|[one, next]| one < next), "{elements:?}");
    }
    assert_eq!(templates().count(), 2 * KINDS.len());
}
