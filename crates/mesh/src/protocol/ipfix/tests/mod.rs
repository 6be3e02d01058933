use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use wirestamp_clock::{Span, Time, Utc};

use super::*;
use crate::protocol::{MachineClock, ObservationBatch};

mod appendix;
mod hostile;
mod reports;

/// An empty session for datagrams.
fn fresh() -> Session {
    Session::new(Transport::Datagrams)
}

fn message(domain: u32, sequence: u32, sets: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (id, bytes) in sets {
        body.extend(id.to_be_bytes());
        body.extend(u16::try_from(SET_HEADER + bytes.len()).unwrap().to_be_bytes());
        body.extend(*bytes);
    }
    let length = u16::try_from(HEADER + body.len()).unwrap();
    let mut message = [VERSION.to_be_bytes(), length.to_be_bytes()].concat();
    for number in [1_700_000_000, sequence, domain] {
        message.extend(number.to_be_bytes());
    }
    message.extend(body);
    message
}

/// Encoded form of a value.
fn bytes_of(value: Value<'_>) -> Vec<u8> {
    match value {
        Value::U8(value) => value.to_be_bytes().to_vec(),
        Value::U16(value) => value.to_be_bytes().to_vec(),
        Value::U32(value) => value.to_be_bytes().to_vec(),
        Value::U64(value) => value.to_be_bytes().to_vec(),
        Value::I64(value) => value.to_be_bytes().to_vec(),
        Value::F64(value) => value.to_be_bytes().to_vec(),
        Value::Address(IpAddr::V4(address)) => address.octets().to_vec(),
        Value::Address(IpAddr::V6(address)) => address.octets().to_vec(),
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Time(_) => unreachable!("times are compared as times"),
    }
}

fn value<'a>(kind: u8, number: u64, text: &'a str) -> Value<'a> {
    match kind % 9 {
        0 => Value::U8(number.to_be_bytes()[7]),
        1 => Value::U16(u16::try_from(number >> 48).unwrap()),
        2 => Value::U32(u32::try_from(number >> 32).unwrap()),
        3 => Value::U64(number),
        4 => Value::I64(number.cast_signed()),
        5 => Value::F64(f64::from_bits(number)),
        6 => Value::Address(Ipv4Addr::from(u32::try_from(number >> 32).unwrap()).into()),
        7 => Value::Address(Ipv6Addr::from(u128::from(number)).into()),
        _ => Value::Text(text),
    }
}

proptest! {
    #[test]
    fn records_round_trip(
        fields in prop::collection::vec((0..9_u8, any::<u32>(), 0..1_u16 << 15), 1..12),
        numbers in prop::collection::vec((any::<u64>(), ".{0,80}"), 1..40),
        scope: prop::sample::Index, has_scope: bool, domain: u32, most in 100..2000_usize,
    ) {
        let row = |(number, text): &'_ (u64, String)| -> Vec<(Element, Vec<u8>)> {
            let one = |(kind, enterprise, id): &(u8, u32, u16)| {
                let element = Element { enterprise: *enterprise, number: *id };
                (element, bytes_of(value(*kind, *number, text)))
            };
            fields.iter().map(one).collect()
        };
        let scope = if has_scope { 1 + scope.index(fields.len()) } else { 0 };
        let rows = numbers.iter().map(|(number, text)| {
            let field = |(kind, enterprise, id): &(u8, u32, u16)| {
                let element = Element { enterprise: *enterprise, number: *id };
                (element, value(*kind, *number, text))
            };
            Row(fields.iter().map(field).collect())
        });
        let rows: Vec<_> = rows.collect();
        let template = rows[0].template(300, u16::try_from(scope).unwrap()).unwrap();
        let parts = std::iter::once(template.part()).chain(rows.iter().map(|it| it.part(300)));
        let messages = Export::new(domain, most).messages(7, &parts.collect::<Vec<_>>());
        let mut session = fresh();
        let mut read = Vec::new();
        for (nth, bytes) in messages.iter().enumerate() {
            let message = session.read(bytes).unwrap();
            let order = if nth == 0 { Order::First } else { Order::Missed(0) };
            prop_assert_eq!((message.second, message.domain, message.order), (7, domain, order));
            for record in &message.records {
                prop_assert_eq!(record.template(), &template);
                let values = record.values().map(|(element, value)| (element, value.to_vec()));
                read.push(values.collect::<Vec<_>>());
            }
        }
        prop_assert_eq!(read, numbers.iter().map(row).collect::<Vec<_>>());
        prop_assert_eq!(session.unread(), Unread::default());
    }

    #[test]
    fn times_round_trip(nanos in -60_000_000_000_000_000..4_200_000_000_000_000_000_i64) {
        let time: Time<Utc> = Time::from_nanos(nanos);
        let row = Row(vec![(element::OBSERVATION_TIME_NANOSECONDS, Value::Time(time))]);
        let parts = [row.template(256, 0).unwrap().part(), row.part(256)];
        let messages = Export::new(1, 1400).messages(0, &parts);
        let mut session = fresh();
        let message = session.read(&messages[0]).unwrap();
        prop_assert_eq!(message.records[0].time(element::OBSERVATION_TIME_NANOSECONDS), Some(time));
    }

    #[test]
    fn arbitrary_messages_do_not_panic(
        messages in prop::collection::vec(
            prop::collection::vec((prop_oneof![0..5_u16, 255..260_u16], any::<Vec<u8>>()), 0..6), 0..6),
        is_stream: bool,
    ) {
        let transport = if is_stream { Transport::Stream } else { Transport::Datagrams };
        let mut session = Session::new(transport);
        for (sequence, sets) in (0..).zip(messages) {
            let sets: Vec<_> = sets.iter().map(|(id, bytes)| (*id, &**bytes)).collect();
            let bytes = message(1, sequence, &sets);
            let read = session.read(&bytes).unwrap();
            for record in &read.records {
                prop_assert_eq!(record.values().count(), record.template().fields().len());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let mut session = fresh();
        let is_message = session.read(&bytes).is_ok();
        prop_assert_eq!(session.unread().messages, u64::from(!is_message));
    }
}

#[test]
fn message_length_is_limited() {
    let row = |text| Row(vec![(element::METERING_PROCESS_ID, Value::Text(text))]);
    let template = row("").template(256, 0).unwrap().part();
    let long = "x".repeat(900);
    let parts: Vec<_> = ["a", "b", &long, "c", &long, &long].map(|it| row(it).part(256)).into();
    let mut export = Export::new(9, 1000);
    let lengths = |messages: Vec<Vec<u8>>| messages.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(export.messages(0, &[vec![template], parts].concat())), [941, 923, 923]);
    // A longer part gets a message of its own, and text is truncated at a character boundary.
    let over = "ä".repeat(2000);
    let longer = export.messages(0, &[row("a").part(256), row(&over).part(256)]);
    assert_eq!(lengths(longer), [22, 1047]);
    assert_eq!(lengths(export.messages(0, &[])), Vec::<usize>::new());
}
