//! A capture of many streams: calls, videos, downloads with their acknowledgments, and queries, each from a
//! new port.

use std::path::Path;

use wirestamp_capture::file::{Provenance, Writer};
use wirestamp_capture::{CapturedPacket, Facts, Ledger, Sink};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};

const CALLS: u16 = 500;
const VIDEOS: u16 = 20;
const DOWNLOADS: u16 = 200;
const QUERIES: u16 = 20;
/// Packets of a video in a tick.
const OF_VIDEO: u32 = 8;
/// One packet of each call.
const TICK_NS: i64 = 20_000_000;
/// 14 November 2023.
const FIRST_NS: i64 = 1_700_000_000_000_000_000;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Time within the tick in nanoseconds, and frame.
type Frame = (i64, Vec<u8>);

/// Writes a capture of about this size in bytes; returns the number of packets.
pub(crate) fn write(path: &Path, bytes: u64) -> anyhow::Result<u64> {
    let mut writer = writer(path)?;
    let (mut written, mut packets) = (0, 0);
    for tick in 0.. {
        let mut frames = frames(tick);
        frames.sort_by_key(|(after, _)| *after);
        for (after, frame) in &frames {
            written += record(&mut writer, FIRST_NS + i64::from(tick) * TICK_NS + after, frame)?;
            packets += 1;
        }
        if written >= bytes {
            break;
        }
    }
    writer.finish(&Ledger::default())?;
    Ok(packets)
}

/// Writes a capture of datagrams, one each microsecond, which belong to `flows` flows in turn.
pub(crate) fn write_flows(path: &Path, packets: u32, flows: u32) -> anyhow::Result<()> {
    let mut writer = writer(path)?;
    for number in 0..packets {
        let [high, middle, low] = [16, 8, 0].map(|bits| ((number % flows) >> bits) & 0xff);
        let [host, port] = [(high << 8) | middle, 1024 + low].map(u16::try_from);
        let frame = udp((18, host?), (19, 0), port?, b"no content at all");
        record(&mut writer, FIRST_NS + 1000 * i64::from(number), &frame)?;
    }
    Ok(writer.finish(&Ledger::default())?)
}

/// Writes a packet; returns its length in the file.
fn record(writer: &mut Writer, nanos: i64, frame: &[u8]) -> anyhow::Result<u64> {
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    let stamp = Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(1) };
    let length = u32::try_from(frame.len())?;
    writer.packet(&CapturedPacket { stamp, kernel: None, bytes: frame, length })?;
    Ok(u64::from(length) + 32)
}

fn writer(path: &Path) -> anyhow::Result<Writer> {
    let facts = Facts {
        link: wirestamp_packet::LinkType::Ethernet,
        interface: "made".into(),
        method: "none",
        stamp: "none",
        taken: "nowhere",
        clock: "none".into(),
        granularity_ns: 1,
        snaplen: 262_144,
        cores: Vec::new(),
        filter: None,
        notes: Vec::new(),
    };
    Ok(Writer::create(path, &facts, Provenance::of(&facts, 1))?)
}

fn frames(tick: u32) -> Vec<Frame> {
    let calls = (0..CALLS).filter_map(|number| call(number, tick));
    let videos = (0..VIDEOS).flat_map(|number| (0..OF_VIDEO).map(move |n| video(number, tick, n)));
    let downloads = (0..DOWNLOADS).flat_map(|number| download(number, tick));
    let queries = (0..QUERIES).map(|number| query(number, tick));
    calls.chain(videos).chain(downloads).chain(queries).collect()
}

/// A packet of a call, of which one in 200 is lost, and which jitters by up to 3 ms.
fn call(number: u16, tick: u32) -> Option<Frame> {
    let chance = tick.wrapping_add(7919 * u32::from(number)).wrapping_mul(2_654_435_761) >> 8;
    let payload =
        rtp(if number.is_multiple_of(2) { 0 } else { 8 }, tick, tick * 160, number, &[0xd5; 160]);
    let after = i64::from(number) * 30_000 + i64::from(chance % 3_000_000);
    (!chance.is_multiple_of(200))
        .then(|| (after, udp((10, number), (11, number), 10_000, &payload)))
}

fn video(number: u16, tick: u32, place: u32) -> Frame {
    let sequence = tick * OF_VIDEO + place;
    let payload = rtp(33, sequence, sequence * 225, CALLS + number, &[0x47; 1316]);
    let after = i64::from(place) * TICK_NS / i64::from(OF_VIDEO) + i64::from(number) * 1000;
    (after, udp((12, number), (13, number), 5004, &payload))
}

/// A segment, and its acknowledgment 5 ms later.
fn download(number: u16, tick: u32) -> [Frame; 2] {
    let (sequence, length) = (tick * 1448, 1448);
    let after = i64::from(number) * 1000;
    let there = tcp((14, number), (15, number), [sequence, 1], length);
    let back = tcp((15, number), (14, number), [1, sequence + 1448], 0);
    [(after, there), (after + 5_000_000, back)]
}

fn query(number: u16, tick: u32) -> Frame {
    let id = tick.wrapping_mul(40_503).to_be_bytes();
    let payload = [&id[2..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, b'a', b'b', b'c', 0, 0, 1, 0, 1]];
    let [.., high, low] = tick.to_be_bytes();
    let port = 1024 + u16::from_be_bytes([high, low]) % 60_000;
    (i64::from(number) * 100_000, udp((16, number), (17, 0), port, &payload.concat()))
}

fn rtp(payload_type: u8, sequence: u32, timestamp: u32, source: u16, media: &[u8]) -> Vec<u8> {
    let [.., high, low] = sequence.to_be_bytes();
    let head = [0x80, payload_type, high, low];
    [&head[..], &timestamp.to_be_bytes(), &u32::from(source).to_be_bytes(), media].concat()
}

fn udp(from: (u8, u16), to: (u8, u16), port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap_or(u16::MAX);
    let head = [port, port, length, 0].map(u16::to_be_bytes);
    ethernet(UDP, from, to, &[head.as_flattened(), payload].concat())
}

fn tcp(from: (u8, u16), to: (u8, u16), numbers: [u32; 2], payload: usize) -> Vec<u8> {
    let numbers = numbers.map(u32::to_be_bytes);
    let head = [&[0x1f, 0x90, 0x1f, 0x90], numbers.as_flattened(), &[0x50, 0x10, 1, 0, 0, 0, 0, 0]];
    ethernet(TCP, from, to, &[&head.concat()[..], &vec![b'x'; payload]].concat())
}

/// A frame of Ethernet and IPv4 between hosts of two networks.
fn ethernet(protocol: u8, from: (u8, u16), to: (u8, u16), body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + body.len()).unwrap_or(u16::MAX).to_be_bytes();
    let host = |(network, number): (u8, u16)| {
        let [high, low] = number.to_be_bytes();
        [10, network, high, low]
    };
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(length);
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(host(from));
    frame.extend(host(to));
    frame.extend(body);
    frame
}
