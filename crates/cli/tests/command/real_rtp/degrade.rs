//! Simulates a bad network in a capture: the same packets, some lost, some late.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use wirestamp_capture::file::Reader;
use wirestamp_packet::{FlowKey, Packet};

/// Packets at both ends of a flow that are not changed, so that its length is known.
const EDGE: usize = 6;
/// How late a packet is that others overtake: more than the 40 ms between two pictures.
const LATE_NS: i64 = 47_000_000;

/// Copies a capture into classic pcap in nanoseconds, with single losses, loss bursts and late packets in
/// every flow that is long enough.
pub(crate) fn copy(from: &Path, to: &Path) {
    let frames = frames(from);
    let mut lengths: HashMap<FlowKey, usize> = HashMap::new();
    frames.iter().for_each(|(_, flow, _)| *lengths.entry(*flow).or_default() += 1);
    let mut places: HashMap<FlowKey, usize> = HashMap::new();
    let mut kept = Vec::new();
    for (time, flow, bytes) in frames {
        let place = places.entry(flow).or_default();
        let number = *place;
        *place += 1;
        let alone = number < EDGE || number + EDGE >= lengths[&flow];
        match number % 43 {
            7 | 19 | 20 | 21 if !alone => {}
            31 if !alone => kept.push((time + LATE_NS, bytes)),
            _ => kept.push((time, bytes)),
        }
    }
    kept.sort_by_key(|(time, _)| *time);
    fs::write(to, pcap(&kept)).unwrap();
}

fn frames(path: &Path) -> Vec<(i64, FlowKey, Vec<u8>)> {
    let mut reader = Reader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let flow = Packet::parse(packet.link, &packet.bytes).unwrap().flow();
        frames.push((packet.time.as_nanos(), flow, packet.bytes.into_owned()));
    }
    frames
}

/// Classic pcap of Ethernet frames, in nanoseconds.
fn pcap(frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let word = |file: &mut Vec<u8>, value: i64| {
        file.extend(u32::try_from(value).unwrap().to_le_bytes());
    };
    for value in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1] {
        word(&mut file, value);
    }
    for (nanos, bytes) in frames {
        let length = i64::try_from(bytes.len()).unwrap();
        for value in [nanos / 1_000_000_000, nanos % 1_000_000_000, length, length] {
            word(&mut file, value);
        }
        file.extend(bytes);
    }
    file
}
