//! Transport streams of ffmpeg, and counts that do not use the code under test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::rtcp::{Ends, SECOND, udp, write};
use crate::common::{json, tool};

/// Bitrate of the constant stream.
pub(super) const RATE: u64 = 2_000_000;
/// Packets in a datagram.
const DATAGRAM: usize = 7;
pub(super) const NULL: u16 = 0x1fff;
/// PIDs of ffmpeg's program map, video and audio.
pub(super) const MAP: u16 = 0x1000;
pub(super) const VIDEO: u16 = 0x100;
pub(super) const AUDIO: u16 = 0x101;

const ENDS: Ends = ([10, 0, 0, 1], 4000, [239, 1, 1, 1], 5004);
/// The clock wraps after 33 bits of 90 kHz.
const WRAP: u64 = (1 << 33) * 300;

/// A packet of 188 bytes.
pub(super) type Packet = [u8; 188];

/// 12 s of video and audio, multiplexed with these options.
pub(super) fn multiplex(folder: &Path, options: &[&str]) -> Vec<Packet> {
    let file = folder.join("stream.ts");
    let inputs =
        ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-f", "lavfi", "-i", "sine"];
    let codecs = ["-t", "12", "-c:v", "mpeg2video", "-b:v", "900k", "-maxrate", "900k"];
    let rest = ["-bufsize", "900k", "-c:a", "mp2", "-b:a", "128k", "-f", "mpegts"];
    let end = ["-y", file.to_str().unwrap()];
    tool("ffmpeg", &[&["-v", "error"][..], &inputs, &codecs, &rest, options, &end].concat());
    fs::read(file).unwrap().as_chunks().0.to_vec()
}

/// A stream of constant bitrate.
pub(super) fn constant(folder: &Path) -> Vec<Packet> {
    multiplex(folder, &["-muxrate", &RATE.to_string(), "-pat_period", "0.1"])
}

pub(super) fn pid(packet: &Packet) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// Makes null packets of those for which `is_removed`, so that the others keep their positions.
pub(super) fn blank(packets: &mut [Packet], is_removed: impl Fn(usize, &Packet) -> bool) {
    for (place, packet) in packets.iter_mut().enumerate() {
        if is_removed(place, packet) {
            packet[1..4].copy_from_slice(&[0x1f, 0xff, 0x10]);
        }
    }
}

/// The clock reference of a packet.
pub(super) fn clock(packet: &Packet) -> Option<u64> {
    let has_clock = packet[3] & 0x20 != 0 && packet[4] > 6 && packet[5] & 0x10 != 0;
    let word = packet[6..12].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    has_clock.then(|| (word >> 15) * 300 + (word & 0x1ff))
}

/// Adds ticks of 27 MHz to the clock reference.
pub(super) fn shift_clock(packet: &mut Packet, ticks: u64) {
    let clock = (clock(packet).unwrap() + ticks) % WRAP;
    let [base, extension] = [clock / 300, clock % 300];
    let word = base << 15 | 0x7e00 | extension;
    packet[6..12].copy_from_slice(&word.to_be_bytes()[2..]);
}

/// Datagrams with their times at the constant bitrate.
pub(super) fn datagrams(packets: &[Packet]) -> Vec<(u64, &[Packet])> {
    let time = |number: usize| arrival(number * DATAGRAM);
    packets.chunks(DATAGRAM).enumerate().map(|(number, it)| (time(number), it)).collect()
}

/// Nanoseconds until the datagram of a packet arrives.
pub(super) fn arrival(place: usize) -> u64 {
    let bits = u64::try_from(place / DATAGRAM * DATAGRAM * 188 * 8).unwrap();
    bits * SECOND / RATE
}

pub(super) fn capture(path: &Path, datagrams: &[(u64, &[Packet])]) {
    let packets = datagrams.iter().map(|(time, it)| udp(*time, ENDS, it.as_flattened()));
    write(path, packets.collect());
}

/// `transport_stream` of the flow with these datagrams.
pub(super) fn report(path: &Path, datagrams: &[(u64, &[Packet])], options: &[&str]) -> Value {
    capture(path, datagrams);
    let found = json(&[&["flows", path.to_str().unwrap(), "--json"], options].concat());
    assert_eq!(found["flows"].as_array().unwrap().len(), 1, "{found:#}");
    found["flows"][0]["transport_stream"].clone()
}

/// A break of the continuity counter of a PID.
pub(super) struct Break {
    /// When it shows.
    pub(super) time: u64,
    pub(super) missing: u64,
    pub(super) has_payload: bool,
}

/// The breaks of the continuity counters.
pub(super) fn breaks(datagrams: &[(u64, &[Packet])]) -> Vec<Break> {
    let mut counters = BTreeMap::new();
    let mut found = Vec::new();
    let packets = datagrams.iter().flat_map(|(time, all)| all.iter().map(|it| (*time, it)));
    for (time, packet) in packets {
        if pid(packet) == NULL {
            continue;
        }
        let has_payload = packet[3] & 0x10 != 0;
        let counter = packet[3] & 0x0f;
        if let Some(last) = counters.insert(pid(packet), counter) {
            let missing = (counter + 32 - last - u8::from(has_payload)) % 16;
            if missing > 0 {
                found.push(Break { time, missing: missing.into(), has_payload });
            }
        }
    }
    found
}

/// Intervals of `max` nanoseconds without a packet for which `comes`.
pub(super) fn absences(packets: &[Packet], max: u64, comes: impl Fn(&Packet) -> bool) -> u64 {
    let times: Vec<_> = packets
        .iter()
        .enumerate()
        .filter(|(_, packet)| comes(packet))
        .map(|(place, _)| arrival(place))
        .collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]).div_ceil(max).saturating_sub(1)).sum()
}
