//! Every pair of method and stamp on real packets, across a path of network namespaces.

mod bed;
mod complete;
mod directions;
mod joined;
mod lanes;
mod sizes;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Cores, Direction, Error, Limit, Method, Pair, Sink,
    StampSource, Stop, Wait,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Netns, PathLab, SINK_V4, TAP_B};

use bed::{KeptPackets, PORT, capture, config, lab, now, pairs, raw_domain, send};

#[test]
fn every_pair_captures_and_stamps_sent_packets() {
    let Some(lab) = lab() else { return };
    let count: u32 = 500;
    for pair in pairs() {
        let mut kept = KeptPackets::default();
        let before = now();
        let config = config(pair.method, pair.stamp, Some(count.into()));
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| send(&lab, count));
        let after = now();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap();
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (count.into(), 0), "{name}");
        for ((stamp, bytes, length), number) in kept.0.iter().zip(0_u32..) {
            assert_eq!(*length, 14 + 20 + 8 + 204, "{name}");
            assert_eq!(bytes[42..46], number.to_be_bytes(), "{name}");
            assert_eq!(stamp.raw.domain, raw_domain(pair.stamp), "{name}");
            let utc = stamp.utc.as_nanos();
            let error = stamp.error.as_nanos();
            assert!(before <= utc + error && utc - error <= after, "{name}: {stamp:?}");
        }
        let raw: Vec<_> = kept.0.iter().map(|(stamp, ..)| stamp.raw.value).collect();
        // A late kernel stamp is taken when the packet is read, after the next one's arrival.
        let late = ledger.stamped_late > 0 || pair.method == Method::LibPcap; // it is not reported
        assert!(raw.is_sorted() || late, "{name}");
    }
}

#[test]
fn spinning_thread_finds_every_packet() {
    let Some(lab) = lab() else { return };
    for pair in pairs() {
        let mut kept = KeptPackets::default();
        let config = Config { wait: Wait::Spin, ..config(pair.method, pair.stamp, Some(50)) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| send(&lab, 50));
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (50, 0), "{name}");
    }
}

/// Blocks at the first packet until all were sent.
struct SlowSink(mpsc::Receiver<()>, bool);
impl Sink for SlowSink {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        if !self.1 {
            self.0.recv().unwrap();
            self.1 = true;
        }
        Ok(())
    }
}

#[test]
fn captured_packets_survive_the_file() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.pcapng");
    let clock = ClockService::start(Counter::select()).unwrap();
    let stop = Stop::new().unwrap();
    let config = config(Method::Ring, StampSource::Raw, Some(50));
    let capture = lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap();
    let mut writer =
        Writer::create(&path, capture.facts(), Provenance::of(capture.facts(), 0)).unwrap();
    let (ledger, outcome) = thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(&clock, &stop, &mut writer));
        send(&lab, 50);
        capturing.join().unwrap()
    });
    outcome.unwrap();
    writer.finish(&ledger).unwrap();

    let mut reader = Reader::open(&path).unwrap();
    let mut number = 0_u32;
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!(packet.bytes[42..46], number.to_be_bytes());
        number += 1;
    }
    assert_eq!(number, 50);
    let provenance = reader.interfaces()[0].provenance.as_ref().unwrap();
    assert_eq!((&*provenance.method, &*provenance.stamp), ("ring", "raw"));
    assert!(provenance.error_ns > 0);
}

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

#[test]
fn unusable_core_is_refused_before_opening() {
    let clock = ClockService::start(Counter::select()).unwrap();
    let cores = Cores { acquire: Some(1_000_000), ..Cores::default() };
    let config =
        Config { lanes: vec![cores], ..Config::new("none", Method::Ring, StampSource::Kernel) };
    let error = Capture::open(config, &clock).err().unwrap();
    assert!(matches!(error, Error::NoSuchCore { core: 1_000_000, .. }), "{error}");
}

/// Runs `ip` in a namespace.
fn ip(namespace: &Netns, arguments: &str) {
    let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

#[test]
fn removed_interface_ends_the_capture_with_error() {
    let (sleeps, spins) = (Wait::Block { realtime: false }, Wait::Spin);
    let (down, del) = ("link set tap-b down", "link del tap-b");
    let cases = [(down, sleeps), (del, sleeps), (down, spins), (del, spins)];
    for (pair, (removal, wait)) in pairs().flat_map(|pair| cases.map(|case| (pair, case))) {
        let Some(lab) = lab() else { return };
        let mut kept = KeptPackets::default();
        let config = Config { wait, ..config(pair.method, pair.stamp, None) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| {
            send(&lab, 5);
            ip(lab.sink(), removal);
        });
        let name = format!("{} {} {removal} {wait:?}: {ledger:?}", pair.method, pair.stamp);
        assert!(matches!(outcome, Err(Error::Unusable { .. })), "{name}: {outcome:?}");
        assert_eq!((kept.0.len(), ledger.delivered, ledger.balances()), (5, 5, true), "{name}");
    }
}

#[test]
fn capture_continues_after_the_interface_was_down_if_it_is_to_wait() {
    for pair in pairs() {
        let Some(lab) = lab() else { return };
        let mut kept = KeptPackets::default();
        let config =
            Config { wait_for_interface: true, ..config(pair.method, pair.stamp, Some(6)) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |stop| {
            send(&lab, 5);
            ip(lab.sink(), "link set tap-b down");
            ip(lab.sink(), "link set tap-b up");
            // Packets pass again some time after the link is up.
            let until = Instant::now() + Duration::from_secs(20);
            while !stop.is_requested() && Instant::now() < until {
                send(&lab, 1);
                thread::sleep(Duration::from_millis(10));
            }
            stop.request();
        });
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((kept.0.len(), ledger.balances()), (6, true), "{name}");
    }
}

#[test]
fn interface_that_is_down_or_without_ethernet_header_is_refused() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    ip(lab.source(), "tuntap add dev tun0 mode tun");
    ip(lab.source(), "link set tun0 up");
    ip(lab.sink(), "link set tap-b down");
    for pair in pairs() {
        let refused = |namespace: &Netns, interface: &str| {
            let config = Config::new(interface, pair.method, pair.stamp);
            namespace.run(|| Capture::open(config, &clock).err()).unwrap().unwrap()
        };
        let down = refused(lab.sink(), TAP_B);
        assert!(down.to_string().contains("tap-b is down"), "{down}");
        use Method::{TcPass, TracePass, Xdp, XdpPass};
        if matches!(pair.method, TcPass | TracePass | Xdp | XdpPass) {
            let tun = refused(lab.source(), "tun0");
            assert!(tun.to_string().contains("no Ethernet header"), "{tun}");
        }
    }
}

#[test]
fn loopback_packets_count_once() {
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let clock = ClockService::start(Counter::select()).unwrap();
    for pair in pairs() {
        let stop = Stop::new().unwrap();
        let config = Config {
            filter: Some(format!("udp port {PORT}")),
            ..Config::new("lo", pair.method, pair.stamp)
        };
        let capture = lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap();
        let socket = lab.sink().run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
        for _ in 0..10 {
            // Refused, because the port is closed.
            let _ = socket.send_to(b"once", (Ipv4Addr::LOCALHOST, PORT));
        }
        stop.request();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut KeptPackets::default());
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert_eq!((ledger.seen - ledger.filtered, ledger.delivered), (10, 10), "{name}");
    }
}

/// A UDP datagram of 100 bytes in VLAN 7, from the lab's source to its router.
fn tagged_frame() -> Vec<u8> {
    let mut frame = vec![2, 0x77, 0, 0, 1, 2, 2, 0x77, 0, 0, 1, 1, 0x81, 0, 0, 7, 0x08, 0];
    frame.extend([0x45, 0, 0, 128, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 1, 2]);
    frame.extend([0x13, 0x88, 0x13, 0x88, 0, 108, 0, 0]);
    frame.extend([7; 100]);
    frame
}

#[test]
fn vlan_filter_works_with_every_method() {
    let Some(lab) = lab() else { return };
    let mut wire =
        lab.source().run(|| pcap::Capture::from_device("out").unwrap().open().unwrap()).unwrap();
    let clock = ClockService::start(Counter::select()).unwrap();
    for pair in pairs() {
        let config = Config {
            filter: Some("vlan 7 and udp".into()),
            snaplen: 60,
            limit: Limit { packets: Some(5), duration: None },
            ..Config::new("tap-a", pair.method, pair.stamp)
        };
        let stop = Stop::new().unwrap();
        let capture = lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap();
        send(&lab, 3); // without a tag
        for _ in 0..5 {
            wire.sendpacket(tagged_frame()).unwrap();
        }
        let mut kept = KeptPackets::default();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut kept);
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        for (_, bytes, length) in &kept.0 {
            assert_eq!((&bytes[12..16], bytes.len()), (&[0x81, 0, 0, 7][..], 60), "{name}");
            assert_eq!(*length, 14 + 4 + 20 + 8 + 100, "{name}");
        }
    }
}

/// Captures the `count` packets of `traffic` with each of `pairs` at once, at tap A. Packets are sorted by their
/// bytes: packets that the kernel handles on two cores have no other order.
fn with_each_of(
    lab: &PathLab,
    pairs: &[Pair],
    count: u64,
    traffic: impl FnOnce(),
) -> Vec<KeptPackets> {
    let clock = ClockService::start(Counter::select()).unwrap();
    let open = |pair: &Pair| {
        let config = Config {
            limit: Limit { packets: Some(count), duration: None },
            direction: Direction::In, // ICMP port unreachable, which not every method sees
            ..Config::new("tap-a", pair.method, pair.stamp)
        };
        lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap()
    };
    let captures: Vec<_> = pairs.iter().map(open).collect();
    traffic();
    let run = |capture: Capture| {
        let mut kept = KeptPackets::default();
        let (ledger, outcome) = capture.run(&clock, &Stop::new().unwrap(), &mut kept);
        outcome.unwrap();
        assert!(ledger.balances() && ledger.lost() == 0, "{ledger:?}");
        kept.0.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
        kept
    };
    captures.into_iter().map(run).collect()
}

#[test]
fn every_pair_captures_the_same_packets() {
    let Some(lab) = lab() else { return };
    let mut wire =
        lab.source().run(|| pcap::Capture::from_device("out").unwrap().open().unwrap()).unwrap();
    let mut traffic = || {
        for number in 0..30 {
            let mut frame = tagged_frame();
            frame.extend(vec![number; 40 * usize::from(number)]);
            wire.sendpacket(&*frame).unwrap();
            frame.drain(12..16); // the tag
            wire.sendpacket(frame).unwrap();
        }
    };
    // Packets of `xdp` go to no other receiver, and an interface has only one XDP program.
    let (mut shared, mut alone): (Vec<Pair>, Vec<Pair>) =
        pairs().partition(|pair| match pair.method {
            Method::Xdp => false,
            Method::XdpPass => pair.stamp == StampSource::Xdp,
            _ => true,
        });
    // It can have any number of tc programs.
    shared.extend(pairs().filter(|pair| matches!(pair.method, Method::TcPass | Method::TracePass)));
    let mut all = with_each_of(&lab, &shared, 60, &mut traffic);
    for pair in &alone {
        all.extend(with_each_of(&lab, &[*pair], 60, &mut traffic));
    }
    let packets = |kept: &KeptPackets| -> Vec<_> {
        kept.0.iter().map(|(_, bytes, length)| (bytes.clone(), *length)).collect()
    };
    let stamps = |kept: &KeptPackets| -> Vec<_> {
        kept.0.iter().map(|(stamp, ..)| stamp.raw.value).collect()
    };
    let mut pairs = shared;
    pairs.append(&mut alone);
    for (pair, kept) in pairs.iter().zip(&all) {
        let name = format!("{} {}", pair.method, pair.stamp);
        assert!(packets(kept) == packets(&all[0]), "{name}");
        if pair.stamp == StampSource::Kernel {
            assert_eq!(stamps(kept), stamps(&all[0]), "{name}");
        }
    }
}

#[test]
fn packets_of_one_call_share_their_raw_stamp() {
    /// Keeps both stamps. Packets that arrived before the kernel enabled stamping have no kernel stamp.
    struct BothStamps(Vec<(u64, Option<i64>)>);
    impl Sink for BothStamps {
        fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
            self.0.push((packet.stamp.raw.value, packet.kernel.map(|time| time.as_nanos())));
            Ok(())
        }
    }
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let clock = ClockService::start(Counter::select()).unwrap();
    let bind = |port| lab.sink().run(|| UdpSocket::bind(("127.0.0.1", port)).unwrap()).unwrap();
    let (sender, receiver) = (bind(0), bind(PORT));
    let open = |method, count| {
        let config = config(method, StampSource::Raw, Some(count));
        let config = Config { interface: "lo".to_owned(), ..config };
        lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap()
    };
    let captured = |method, count| {
        let capture = open(method, count);
        for _ in 0..count {
            sender.send_to(b"before the capture looks", (Ipv4Addr::LOCALHOST, PORT)).unwrap();
            receiver.recv(&mut [0; 64]).unwrap();
        }
        let mut both = BothStamps(Vec::new());
        capture.run(&clock, &Stop::new().unwrap(), &mut both).1.unwrap();
        both.0.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
    };
    // Makes the kernel keep its stamping enabled.
    let _stamping = open(Method::Ring, 1);
    while captured(Method::Recvmsg, 1).1 == [None] {}
    for (method, expected) in [(Method::Recvmsg, 40), (Method::Recvmmsg, 1)] {
        let (mut raw, kernel) = captured(method, 40);
        raw.dedup();
        assert_eq!(raw.len(), expected, "{method}");
        let kernel: Vec<i64> = kernel.into_iter().flatten().collect();
        assert_eq!(kernel.len(), 40, "{method}");
        assert!(kernel.is_sorted_by(|a, b| a < b), "{method}: {kernel:?}");
    }
}

#[test]
fn packets_without_buffer_wait_in_the_queue() {
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let sender = lab.sink().run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
    let sockets = |pair: &&Pair| matches!(pair.method, Method::Recvmsg | Method::Recvmmsg);
    for pair in pairs().filter(sockets) {
        let (all_sent, wait) = mpsc::channel();
        // One buffer, because the interface's packets may have 64 KiB.
        let config = Config {
            interface: "lo".to_owned(),
            ring_bytes: 128 << 10,
            ..config(pair.method, pair.stamp, Some(20))
        };
        let begun = Instant::now();
        let (ledger, outcome) = capture(&lab, config, &mut SlowSink(wait, false), |_| {
            for _ in 0..20 {
                sender.send_to(b"one at a time", (Ipv4Addr::LOCALHOST, PORT)).unwrap();
            }
            all_sent.send(()).unwrap();
        });
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        assert_eq!((ledger.delivered, ledger.lost()), (20, 0), "{name}");
        // A thread that missed waiting packets would sleep one second for each.
        assert!(begun.elapsed() < Duration::from_secs(10), "{name}");
    }
}

#[test]
fn stalled_sink_loses_nothing_at_the_end() {
    /// Takes longer for its first packet than the capture waits for the kernel's last packet.
    struct StallingSink(bool);
    impl Sink for StallingSink {
        fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
            if !std::mem::replace(&mut self.0, true) {
                thread::sleep(Duration::from_millis(1300));
            }
            Ok(())
        }
    }
    let Some(lab) = lab() else { return };
    for pair in pairs() {
        let config = Config { ring_bytes: 64 << 10, ..config(pair.method, pair.stamp, None) };
        let (ledger, outcome) = capture(&lab, config, &mut StallingSink(false), |stop| {
            send(&lab, 2000);
            stop.request();
        });
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap();
        assert!(ledger.balances() && ledger.left_behind == 0, "{name}");
        assert_eq!(ledger.delivered + ledger.kernel_dropped, 2000, "{name}");
    }
}
