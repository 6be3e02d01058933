use crate::protocol::ipfix::element::{SOURCE_IPV4_ADDRESS, SOURCE_IPV6_ADDRESS};
use crate::protocol::ipfix::{Message, Order, Session, Transport, Unread};
use proptest::prelude::*;
use wirestamp_metrics::Counts;

use super::*;
use crate::task::TaskRecord;

const BEGIN: i64 = 1_700_000_000_000_000_000;

fn tasks() -> Tasks {
    let task = |text| TaskRecord {
        task: serde_json::from_str(text).unwrap(),
        made: "2026-11-22T00:00:00Z".parse().unwrap(),
        ended: None,
    };
    let path = r#"{"name":"path","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth1","share":0.25}"#;
    let volume = r#"{"name":"v","measure":"volume","at":"roof/eth0"}"#;
    Tasks::from([(7, task(path)), (8, task(volume))])
}

fn text<'a>(record: &crate::protocol::ipfix::Record<'a>, element: Element) -> &'a str {
    str::from_utf8(record.get(element).unwrap()).unwrap()
}

fn signed(record: &crate::protocol::ipfix::Record<'_>, element: Element) -> Option<i64> {
    record.unsigned(element).map(u64::cast_signed)
}

fn summary_of(least: i64) -> Spread {
    let mean = f64::from(i32::try_from(least).unwrap()) + 1.4;
    let [p50, p90, p99, p999, max] = [2, 3, 4, 5, 6].map(|more| least + more);
    let [p50, p90, p99, p999] = [p50, p90, p99, p999].map(Some);
    Spread { count: 9, min: least, mean, stddev: 0.6, p50, p90, p99, p999, max }
}

/// Decodes all messages in order.
fn read<'a>(session: &mut Session, messages: &'a [Vec<u8>]) -> Vec<Message<'a>> {
    messages
        .iter()
        .map(|message| {
            assert!(message.len() <= MAX_MESSAGE_BYTES, "{}", message.len());
            session.read(message).unwrap()
        })
        .collect()
}

#[test]
fn task_description_contains_its_points() {
    let (mut ipfix, mut session) = (Ipfix::default(), Session::new(Transport::Datagrams));
    let messages = ipfix.descriptions(&tasks(), 1);
    let records: Vec<_> =
        read(&mut session, &messages).into_iter().flat_map(|it| it.records).collect();
    let [task] = records.as_slice() else { panic!("one task measures delay: {records:?}") };
    assert_eq!(task.template().scope(), 1);
    assert_eq!(task.unsigned(METERING_PROCESS_ID), Some(7));
    assert_eq!(text(task, element::FIRST_POINT_NAME), "roof/eth0");
    assert_eq!(text(task, element::SECOND_POINT_NAME), "cellar/eth1");
    assert_eq!(task.get(SAMPLING_PROBABILITY), Some(&0.25_f64.to_be_bytes()[..]));
}

#[test]
fn record_contains_known_values() {
    let (mut ipfix, mut session) = (Ipfix::default(), Session::new(Transport::Datagrams));
    read(&mut session, &ipfix.descriptions(&tasks(), 1));
    let known = Measured {
        begin_ns: BEGIN,
        counts: Counts { sent: 10, received: 9, lost: 1, matched: 9, ..Counts::default() },
        delay_ns: Some(summary_of(5_000_999)),
        above_minimum_ns: Some(summary_of(0)),
        variation_ns: Some(summary_of(-3)),
        error_ns: Some(80),
        ..Measured::default()
    };
    let below_zero = Measured { delay_ns: Some(summary_of(-1)), ..known.clone() };
    let apart = Measured {
        delay_ns: None,
        error_ns: None,
        not_synchronised: Some(NotSynchronised::Second),
        contradicts_the_clocks: true,
        ..known.clone()
    };
    let empty = Measured { begin_ns: BEGIN, ..Measured::default() };
    let messages = ipfix.results((7, "path"), None, &[known, below_zero, apart, empty], 2);
    let records: Vec<_> =
        read(&mut session, &messages).into_iter().flat_map(|it| it.records).collect();
    let [known, below_zero, apart, empty] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(text(known, element::TASK_NAME), "path");
    assert_eq!(known.time(FLOW_START_NANOSECONDS), Some(Time::from_nanos(BEGIN)));
    assert_eq!(known.time(FLOW_END_NANOSECONDS), Some(Time::from_nanos(BEGIN + 1_000_000_000)));
    let counts = [PACKET_DELTA_COUNT, DROPPED_PACKET_DELTA_COUNT, element::RECEIVED];
    assert_eq!(counts.map(|it| known.unsigned(it)), [Some(10), Some(1), Some(9)]);
    let delays = element::DELAY.map(|it| signed(known, it).map(|it| it - 5_000_999));
    assert_eq!(delays, [0, 1, 1 - 5_000_999, 2, 3, 4, 5, 6].map(Some));
    assert_eq!(known.unsigned(PATH_DELAY_MIN_DELTA_MICROSECONDS), Some(5000));
    assert_eq!(known.unsigned(PATH_DELAY_MEAN_DELTA_MICROSECONDS), Some(5001));
    assert_eq!(known.unsigned(element::DELAY_ERROR), Some(80));
    assert_eq!(signed(known, element::VARIATION[0]), Some(-3));
    assert_eq!(known.unsigned(element::CLOCK_STATE), Some(0));
    assert_eq!(known.unsigned(element::CLOCKS_CONTRADICTED), Some(2));
    // IANA's elements cannot represent this.
    assert_eq!(signed(below_zero, element::DELAY[0]), Some(-1));
    assert_eq!(below_zero.get(PATH_DELAY_MIN_DELTA_MICROSECONDS), None);
    assert_eq!(apart.get(element::DELAY[0]), None);
    assert_eq!(apart.unsigned(element::CLOCK_STATE), Some(2));
    assert_eq!(apart.unsigned(element::CLOCKS_CONTRADICTED), Some(1));
    assert_eq!(signed(apart, element::ABOVE_MINIMUM[7]), Some(6));
    assert_eq!(empty.get(element::VARIATION[0]), None);
    assert_eq!(session.unread(), Unread::default());
}

#[test]
fn element_occurs_once_per_record() {
    let ends = [Ipv4Addr::LOCALHOST.into(); 2];
    let row = row(1, "", (&Measured::default(), ends), ALL | HAS_IPV6);
    let mut elements: Vec<_> = row.0.iter().map(|(element, _)| *element).collect();
    elements.sort_unstable();
    assert!(elements.array_windows().all(|[one, next]| one < next), "{elements:?}");
}

proptest! {
    #[test]
    fn every_record_is_read_and_none_is_missed(
        ends in any::<Option<[IpAddr; 2]>>(),
        windows in prop::collection::vec((0..=ALL, any::<i32>(), any::<i64>()), 1..60), name in "[a-z]{1,63}",
    ) {
        let measured = |(says, least, begin): &(u16, i32, i64)| Measured {
            begin_ns: begin / 10,
            delay_ns: (says & HAS_DELAY != 0).then(|| summary_of((*least).into())),
            above_minimum_ns: (says & HAS_ABOVE_MINIMUM != 0).then(|| summary_of(0)),
            variation_ns: (says & HAS_VARIATION != 0).then(|| summary_of((*least).into())),
            ..Measured::default()
        };
        let windows: Vec<_> = windows.iter().map(measured).collect();
        let (mut ipfix, mut session) = (Ipfix::default(), Session::new(Transport::Datagrams));
        read(&mut session, &ipfix.descriptions(&tasks(), 1));
        let messages = ipfix.results((7, &name), ends, &windows, 2);
        let mut count = 0;
        for message in read(&mut session, &messages) {
            prop_assert_eq!((message.domain, message.order), (DOMAIN, Order::Missed(0)));
            for record in &message.records {
                prop_assert_eq!(text(record, element::TASK_NAME), &name);
                let [v4, v6] = [SOURCE_IPV4_ADDRESS, SOURCE_IPV6_ADDRESS].map(|it| record.address(it));
                prop_assert_eq!(v4.or(v6).map(|it| it.to_canonical()), ends.map(|it| it[0].to_canonical()));
            }
            count += message.records.len();
        }
        prop_assert_eq!(count, windows.len());
        prop_assert_eq!(session.unread(), Unread::default());
    }
}
