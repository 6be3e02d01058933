//! Requests to a broker that the client library does not have.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Keys of the requests (Kafka protocol guide).
const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const DELETE_TOPICS: i16 = 20;
const CREATE_PARTITIONS: i16 = 37;

/// Timeout of a request, in milliseconds.
const TIMEOUT: [u8; 4] = 10_000_i32.to_be_bytes();

/// Sends a request. Returns the answer without its length and the number of the request.
fn ask(broker: SocketAddr, (request, version): (i16, i16), body: &[u8]) -> Vec<u8> {
    let request = [
        &request.to_be_bytes()[..],
        &version.to_be_bytes(),
        // The number of this request, and the client.
        &1_i32.to_be_bytes(),
        &text("admin"),
        body,
    ];
    let mut connection = TcpStream::connect(broker).unwrap();
    connection.write_all(&bytes(&request.concat())).unwrap();
    let mut length = [0; 4];
    connection.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
    connection.read_exact(&mut answer).unwrap();
    answer.split_off(4)
}

fn text(text: &str) -> Vec<u8> {
    [&i16::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    [&i32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// An array of one element.
fn one(element: &[u8]) -> Vec<u8> {
    [&1_i32.to_be_bytes(), element].concat()
}

/// Raises the number of partitions of a topic.
pub(crate) fn raise_partitions(broker: SocketAddr, topic: &str, count: i32) {
    // No assignment to brokers, and not only a check.
    let none = (-1_i32).to_be_bytes();
    let topic = one(&[&text(topic)[..], &count.to_be_bytes(), &none].concat());
    let answer = ask(broker, (CREATE_PARTITIONS, 0), &[&topic[..], &TIMEOUT, &[0]].concat());
    // The error is followed by no message.
    assert!(answer.ends_with(&[0, 0, 0xff, 0xff]), "{answer:?}");
}

/// Deletes a topic.
pub(crate) fn delete_topic(broker: SocketAddr, topic: &str) {
    let answer = ask(broker, (DELETE_TOPICS, 1), &[&one(&text(topic))[..], &TIMEOUT].concat());
    assert!(answer.ends_with(&[0, 0]), "{answer:?}");
}

/// Appends a record with this key, value and time, in milliseconds since 1970, to a partition of a topic.
pub(crate) fn append(
    broker: SocketAddr,
    (topic, partition): (&str, i32),
    (key, value, time): (&[u8], &[u8], i64),
) {
    let records = bytes(&batch(key, value, time));
    let partition = one(&[&partition.to_be_bytes()[..], &records].concat());
    let topic = one(&[&text(topic)[..], &partition].concat());
    // No transaction; all replicas answer.
    let all = (-1_i16).to_be_bytes();
    let answer = ask(broker, (PRODUCE, 3), &[&all[..], &all, &TIMEOUT, &topic].concat());
    // Error, offset, time, throttling.
    let error = &answer[answer.len() - 22..][..2];
    assert_eq!(error, [0, 0], "{answer:?}");
}

/// The first megabyte of a partition, undecoded.
pub(crate) fn fetch(broker: SocketAddr, topic: &str, partition: i32) -> Vec<u8> {
    let most = (1_i32 << 20).to_be_bytes();
    let from = 0_i64.to_be_bytes();
    let partition = one(&[&partition.to_be_bytes()[..], &from, &most].concat());
    let topic = one(&[&text(topic)[..], &partition].concat());
    // No replica, no wait; all records.
    let body = [&(-1_i32).to_be_bytes()[..], &[0; 4], &[0; 4], &most, &[0], &topic].concat();
    ask(broker, (FETCH, 4), &body)
}

/// A batch of one record ("Record Batch" of Kafka's documentation, version 2).
fn batch(key: &[u8], value: &[u8], time: i64) -> Vec<u8> {
    let number = |it: usize| u8::try_from(2 * it).ok().filter(|it| *it < 128).unwrap();
    // Attributes, differences of time and offset; no headers.
    let lengths = (number(key.len()), number(value.len()));
    let record = [&[0, 0, 0, lengths.0], key, &[lengths.1], value, &[0]].concat();
    let checked = [
        // Attributes, last offset.
        &[0; 6][..],
        &time.to_be_bytes(),
        &time.to_be_bytes(),
        // No producer, epoch and sequence.
        &[0xff; 14],
        &1_i32.to_be_bytes(),
        &[number(record.len())],
        &record,
    ]
    .concat();
    // Epoch of the leader, version.
    let rest = [&[0, 0, 0, 0, 2][..], &crc32c(&checked).to_be_bytes(), &checked].concat();
    [&0_i64.to_be_bytes()[..], &bytes(&rest)].concat()
}

/// CRC-32C (RFC 3720 appendix B.4).
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82f6_3b78 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
