//! Snap lengths: of whole frames by default, or shorter.

use std::net::{Ipv4Addr, UdpSocket};

use wirestamp_capture::{Capture, Config, Limit, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Netns, SINK_V4, TAP_B};

use super::bed::{KeptPackets, PORT, capture, config, lab, pairs, send};

/// Captures one packet of `payload` bytes, sent to `address` from namespace `from`, at `interface` of namespace
/// `at`, with raw stamps and all defaults. Returns the snap length in the facts, the packet and its length.
fn one_packet(
    [from, at]: [&Netns; 2],
    interface: &str,
    address: Ipv4Addr,
    payload: usize,
) -> (u32, Vec<u8>, u32) {
    let clock = ClockService::start(Counter::select()).unwrap();
    let stop = Stop::new().unwrap();
    let config = Config {
        filter: Some(format!("udp port {PORT}")),
        limit: Limit { packets: Some(1), duration: None },
        ..Config::new(interface, Method::Ring, StampSource::Raw)
    };
    let capture = at.run(|| Capture::open(config, &clock)).unwrap().unwrap();
    let claimed = capture.facts().snaplen;
    let socket = from.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    socket.send_to(&vec![7; payload], (address, PORT)).unwrap();
    let mut kept = KeptPackets::default();
    let (_, outcome) = capture.run(&clock, &stop, &mut kept);
    outcome.unwrap();
    let (_, bytes, length) = kept.0.remove(0);
    (claimed, bytes, length)
}

#[test]
fn full_frame_is_captured_with_defaults() {
    let Some(lab) = lab() else { return };
    let path = [lab.source(), lab.sink()];
    let (claimed, bytes, length) = one_packet(path, TAP_B, SINK_V4, 1400);
    assert_eq!(claimed, 14 + 4 + 1500);
    assert_eq!((bytes.len(), length), (14 + 20 + 8 + 1400, 14 + 20 + 8 + 1400));
    assert!(bytes[42..].iter().all(|&byte| byte == 7));
}

#[test]
fn jumbo_frames_get_large_slots() {
    let Some(lab) = lab() else { return };
    let up = lab.sink().command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(up.success());
    let sink = [lab.sink(); 2];
    let (claimed, bytes, length) = one_packet(sink, "lo", Ipv4Addr::LOCALHOST, 60_000);
    assert_eq!(claimed, 14 + 4 + 65_536);
    assert_eq!((bytes.len(), length), (14 + 20 + 8 + 60_000, 14 + 20 + 8 + 60_000));
}

#[test]
fn short_snap_length_is_respected() {
    let Some(lab) = lab() else { return };
    for pair in pairs() {
        let mut kept = KeptPackets::default();
        let config = Config { snaplen: 60, ..config(pair.method, pair.stamp, Some(1)) };
        let (_, outcome) = capture(&lab, config, &mut kept, |_| send(&lab, 1));
        outcome.unwrap();
        let (_, bytes, length) = &kept.0[0];
        assert_eq!((bytes.len(), *length), (60, 246), "{} {}", pair.method, pair.stamp);
    }
}
