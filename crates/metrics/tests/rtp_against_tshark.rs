//! RTP figures compared to those of tshark for the same packets.

use std::fs;
use std::num::NonZeroU32;
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::rtp::{Packet, Stream};
use wirestamp_packet::rtp::StaticPayloadType;

/// Arrival of the first packet.
const BEGINNING: Time<Utc> = Time::from_nanos(1_700_000_000_000_000_000);

/// Parameters of a stream: first number, first timestamp, payload type; and of each packet the lateness in
/// microseconds, and whether it is lost, duplicated, marked, or comfort noise.
#[derive(Clone, Debug)]
struct StreamPlan {
    first_number: u16,
    first_timestamp: u32,
    payload_type: u8,
    packets: Vec<(u32, bool, bool, bool, bool)>,
}

fn plan() -> impl Strategy<Value = StreamPlan> {
    let late = prop_oneof![6 => 0u32..3000, 2 => 0u32..70_000];
    let weighted = |share| prop::bool::weighted(share);
    let packet = (late, weighted(0.03), weighted(0.02), weighted(0.03), weighted(0.02));
    let numbers = prop_oneof![any::<u16>(), Just(65_500u16)];
    let timestamps = prop_oneof![any::<u32>(), Just(u32::MAX - 5000)];
    let payload_types = prop::sample::select(vec![0u8, 8, 18]);
    (numbers, timestamps, payload_types, prop::collection::vec(packet, 30..300)).prop_map(
        |(first_number, first_timestamp, payload_type, packets)| StreamPlan {
            first_number,
            first_timestamp,
            payload_type,
            packets,
        },
    )
}

impl StreamPlan {
    /// Packets in the order of arrival. The first is never late, and none is later than the last.
    fn arrivals(&self) -> Vec<Packet> {
        let mut packets = Vec::new();
        let last = self.packets.len() - 1;
        for (place, &(late, lost, copied, marker, noise)) in self.packets.iter().enumerate() {
            let at_the_edge = place == 0 || place == last;
            let number = u32::try_from(place).expect("few packets");
            let late = if place == 0 { 0 } else { late.max(70_000 * u32::from(place == last)) };
            let payload_type = if noise { 13 } else { self.payload_type };
            let packet = Packet {
                sequence: self
                    .first_number
                    .wrapping_add(u16::try_from(place).expect("few packets")),
                timestamp: self.first_timestamp.wrapping_add(160 * number),
                marker,
                payload_type,
                clock_rate: StaticPayloadType::of(payload_type)
                    .and_then(|it| NonZeroU32::new(it.clock_rate_hz)),
                arrival: BEGINNING + Span::from_micros(i64::from(20_000 * number + late)),
            };
            if at_the_edge || !lost {
                packets.push(packet);
            }
            if copied && !at_the_edge {
                packets.push(Packet { arrival: packet.arrival + Span::from_micros(40), ..packet });
            }
        }
        packets.sort_by_key(|packet| packet.arrival);
        packets
    }
}

/// A capture of these packets: pcap with nanoseconds, Ethernet, IPv4, UDP.
fn capture(streams: &[Vec<Packet>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut all: Vec<_> = (1u8..)
        .zip(streams)
        .flat_map(|(id, packets)| packets.iter().map(move |it| (id, it)))
        .collect();
    all.sort_by_key(|(_, packet)| packet.arrival);
    for (id, packet) in all {
        let frame = frame(id, packet);
        let nanos = packet.arrival.as_nanos();
        let length = i64::try_from(frame.len()).expect("a short frame");
        for word in [nanos / 1_000_000_000, nanos % 1_000_000_000, length, length] {
            file.extend(u32::try_from(word).expect("32 bits").to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn frame(id: u8, packet: &Packet) -> Vec<u8> {
    const PAYLOAD: u16 = 20;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let udp = 8 + 12 + PAYLOAD;
    frame.extend([0x45, 0]);
    frame.extend((20 + udp).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, id]);
    for field in [5004, 5004, udp, 0] {
        frame.extend(field.to_be_bytes());
    }
    frame.extend([0x80, u8::from(packet.marker) << 7 | packet.payload_type]);
    frame.extend(packet.sequence.to_be_bytes());
    frame.extend(packet.timestamp.to_be_bytes());
    frame.extend([0, 0, 0, id]);
    frame.resize(frame.len() + usize::from(PAYLOAD), 0);
    frame
}

/// A row of tshark's table: packets, lost, and as printed the max delta, mean jitter and max jitter, in milliseconds.
type Row = (u64, i64, String, String, String);

/// Rows printed by tshark, in the order of the streams.
fn tshark_rows(capture: &[u8]) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rtp.pcap");
    fs::write(&path, capture).expect("a capture");
    let output = Command::new("tshark")
        .args(["-n", "-d", "udp.port==5004,rtp", "-q", "-z", "rtp,streams", "-r"])
        .arg(&path)
        .output()
        .expect("tshark");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut rows: Vec<_> = text.lines().filter_map(row).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Source and figures of a row; `None` for headings. Payload names contain spaces, so columns are counted from the
/// share of losses, "(1.2%)".
fn row(line: &str) -> Option<(String, Row)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let source = words.iter().find(|word| word.starts_with("0x"))?;
    let share = words.iter().position(|word| word.ends_with("%)"))?;
    let figure = |column: usize| words[share + column].to_owned();
    let packets = words[share - 2].parse().expect("packets");
    let lost = words[share - 1].parse().expect("losses");
    Some(((*source).to_owned(), (packets, lost, figure(3), figure(5), figure(6))))
}

fn own_row(packets: &[Packet]) -> Row {
    let mut stream = Stream::default();
    for packet in packets {
        stream.record(packet);
    }
    let figures = stream.wireshark;
    let millis = |nanos: f64| format!("{:.3}", nanos / 1e6);
    let max_delta = i32::try_from(figures.max_delta.as_nanos()).expect("below two seconds");
    (
        packets.len() as u64,
        stream.sequence.lost(),
        millis(max_delta.into()),
        millis(figures.mean_jitter),
        millis(figures.max_jitter),
    )
}

#[test]
fn loss_jitter_and_delta_match_tshark() {
    let mut runner = TestRunner::deterministic();
    let streams: Vec<_> = (0..200)
        .map(|_| plan().new_tree(&mut runner).expect("a plan").current().arrivals())
        .collect();
    let tshark = tshark_rows(&capture(&streams));
    assert_eq!(tshark.len(), streams.len());
    let mut lost = 0;
    for (mut tshark, packets) in tshark.into_iter().zip(&streams) {
        let own = own_row(packets);
        if wraps(packets) {
            // tshark counts nonexistent cycles for packets out of order across the wrap.
            tshark.1 = (tshark.1 + 32_768).rem_euclid(65_536) - 32_768;
        }
        // tshark counts losses up to the last packet, which has the highest number.
        assert_eq!(own, tshark);
        lost += own.1;
    }
    assert!(lost > 0, "nothing was lost in any stream");
}

fn wraps(packets: &[Packet]) -> bool {
    packets.first().map(|it| it.sequence) > packets.last().map(|it| it.sequence)
}
