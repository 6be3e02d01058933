//! Synthetic captures of the same packets at two points.

mod chain;
mod changed_packets;
mod files;
mod live;
mod media;
mod packet_rows;
mod per_second;
mod sample;
mod segments;
mod tcp;
mod unknown_loss;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::json;

pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;
pub(crate) const BEGIN: i64 = 1_700_000_000 * SECOND;
/// Where packets come from, and where they go.
pub(crate) const A: [u8; 4] = [10, 77, 1, 1];
pub(crate) const B: [u8; 4] = [10, 77, 2, 2];

/// The parts of a classic capture in nanoseconds.
pub(crate) struct Classic(pub(crate) Vec<u8>);

impl Classic {
    pub(crate) fn of_link(link: u32) -> Self {
        let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, link];
        Self(words.into_iter().flat_map(u32::to_ne_bytes).collect())
    }

    pub(crate) fn frame(&mut self, time: i64, frame: &[u8]) {
        let [seconds, nanos] = [time / SECOND, time % SECOND].map(|it| u32::try_from(it).unwrap());
        let length = u32::try_from(frame.len()).unwrap();
        let head = [seconds, nanos, length, length];
        self.0.extend(head.into_iter().flat_map(u32::to_ne_bytes));
        self.0.extend(frame);
    }

    /// A frame of which the capture has the first bytes only.
    pub(crate) fn frame_cut(&mut self, time: i64, frame: &[u8], captured: usize) {
        let before = self.0.len();
        self.frame(time, &frame[..captured]);
        let length = u32::try_from(frame.len()).unwrap();
        self.0[before + 12..before + 16].copy_from_slice(&length.to_ne_bytes());
    }

    /// UDP packets over IPv4, by their number.
    pub(crate) fn packets(packets: impl IntoIterator<Item = (i64, u32)>) -> Self {
        let mut capture = Self::of_link(1);
        for (time, number) in packets {
            let payload = [&number.to_be_bytes()[..], &[0; 8]].concat();
            capture.udp(time, 5000, 5000, &payload);
        }
        capture
    }

    /// A datagram between these ports.
    pub(crate) fn udp(&mut self, time: i64, from: u16, to: u16, payload: &[u8]) {
        let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
        let ports = [from, to].map(u16::to_be_bytes);
        let datagram = [ports.as_flattened(), &length, &[0, 0], payload].concat();
        self.ip(time, 17, [A, B], &datagram);
    }

    /// A packet of this protocol from one host to another.
    pub(crate) fn ip(&mut self, time: i64, protocol: u8, hosts: [[u8; 4]; 2], body: &[u8]) {
        self.ip_with(time, 0, protocol, hosts, body);
    }

    /// The same with an identification.
    pub(crate) fn ip_with(
        &mut self,
        time: i64,
        identification: u16,
        protocol: u8,
        hosts: [[u8; 4]; 2],
        body: &[u8],
    ) {
        let [high, low] = u16::try_from(20 + body.len()).unwrap().to_be_bytes();
        let id = identification.to_be_bytes();
        let header = [0x45, 0, high, low, id[0], id[1], 0x40, 0, 64, protocol, 0, 0];
        self.frame(time, &[&[0; 12], &[8, 0][..], &header, hosts.as_flattened(), body].concat());
    }
}

/// Two captures in a folder.
pub(crate) fn files(a: Classic, b: Classic) -> (TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
    fs::write(&paths[0], a.0).unwrap();
    fs::write(&paths[1], b.0).unwrap();
    (folder, paths.map(|path: PathBuf| path.to_str().unwrap().to_owned()))
}

/// When packet `number` is sent: one every 20 ms.
pub(crate) fn sent(number: u32) -> i64 {
    BEGIN + i64::from(number) * 20_000_000
}

/// How long it takes: 2 ms and up to 1 ms in queues.
pub(crate) fn delay(number: u32) -> i64 {
    2_000_000 + i64::from(number * 7919 % 1000) * 1000
}

pub(crate) fn delayed(arguments: &[&str], files: &[String; 2]) -> Value {
    json(&[&["delay", &files[0], &files[1], "--json"], arguments].concat())
}
