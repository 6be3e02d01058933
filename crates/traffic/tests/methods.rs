//! Every send method, over a path of network namespaces.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::{
    Impairments, PathLab, SINK_V4, SINK_V6, SOURCE_INTERFACE, SOURCE_V4, SOURCE_V6, check_privilege,
};
use wirestamp_traffic::{
    MacAddress, Pattern, Payload, SendError, SendMethod, SendOptions, SendReport, Sender,
    SentPacket, ServiceClock, Stream, StreamPlan,
};

const PORT: u16 = 5000;
/// The methods with transmit stamps.
const STAMPED: [SendMethod; 3] = [SendMethod::Udp, SendMethod::Packet, SendMethod::Ring];
const ENDS: [(IpAddr, IpAddr); 2] =
    [(IpAddr::V4(SOURCE_V4), IpAddr::V4(SINK_V4)), (IpAddr::V6(SOURCE_V6), IpAddr::V6(SINK_V6))];
/// The router's end of the source's link.
const ROUTER: MacAddress = MacAddress([0x02, 0x77, 0, 0, 0x01, 0x02]);

fn lab() -> Option<PathLab> {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

fn by(method: SendMethod) -> SendOptions {
    SendOptions { method, ..SendOptions::default() }
}

fn stream(packets: u64, interval: Span, to: IpAddr) -> Stream {
    let plan = StreamPlan {
        pattern: Pattern::new("free", 301, interval).unwrap(),
        start: Span::ZERO,
        packets,
    };
    let interface = Some(SOURCE_INTERFACE.to_owned());
    Stream { interface, dscp: 46, ..Stream::new(9, plan, (to, PORT).into()) }
}

fn open(lab: &PathLab, stream: Stream, by: &SendOptions) -> Result<Sender, SendError> {
    lab.source().run(|| Sender::open_with(vec![stream], by)).unwrap()
}

fn send(sender: Sender) -> (SendReport, Vec<SentPacket>) {
    let service = ClockService::start(Counter::select()).unwrap();
    let (running, mut sent) = (AtomicBool::new(false), Vec::new());
    let report = sender.run(&mut ServiceClock::new(&service), &running, |s| sent.push(*s));
    (report, sent)
}

/// A socket at the sink. It drops packets with wrong checksums.
fn receiver(lab: &PathLab, at: IpAddr) -> UdpSocket {
    let socket = lab.sink().run(|| UdpSocket::bind((at, PORT))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn every_method_sends_the_same_packets() {
    let Some(lab) = lab() else { return };
    for (source, sink) in ENDS {
        let receiver = receiver(&lab, sink);
        for method in SendMethod::ALL {
            for mac in [None, Some(ROUTER)] {
                let by = SendOptions { mac, ..by(method) };
                let stream = stream(100, Span::from_micros(100), sink);
                let length =
                    stream.plan.pattern.frame_bytes() - if sink.is_ipv6() { 62 } else { 42 };
                let (report, sent) = send(open(&lab, stream, &by).unwrap());
                assert_eq!(
                    (report.sent(), report.streams[0].bytes),
                    (100, 100 * 301),
                    "{method:?}"
                );
                assert_eq!(sent.len(), 100);
                for sent in sent {
                    assert!(sent.pacing_error >= Span::ZERO && sent.actual >= sent.intended);
                    let SentPacket { stream, sequence, intended, actual, .. } = sent;
                    let mut expected = vec![0; length.into()];
                    Payload { stream, sequence, intended, actual }.encode(&mut expected);
                    let mut buffer = [0; 2048];
                    let got = receiver.recv_from(&mut buffer);
                    let (length, from) =
                        got.unwrap_or_else(|e| panic!("{method:?} {mac:?} {sequence}: {e}"));
                    assert_eq!(
                        (from.ip(), &buffer[..length]),
                        (source, &expected[..]),
                        "{method:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_packet_has_sched_and_software_stamps() {
    let Some(lab) = lab() else { return };
    // The first interval leaves time to read stamps between packets, the second none.
    for (interval, packets) in [(Span::from_micros(200), 300), (Span::ZERO, 10_000)] {
        for ((_, sink), method) in ENDS.into_iter().flat_map(|ends| STAMPED.map(|m| (ends, m))) {
            let by = SendOptions { tx_stamps: true, ..by(method) };
            let sender = open(&lab, stream(packets, interval, sink), &by).unwrap();
            let unavailable = sender.unavailable_stamps().unwrap().clone();
            assert_eq!((unavailable.sched, unavailable.software), (None, None));
            assert!(unavailable.hardware.unwrap().contains("ethtool -T out"));
            let (report, sent) = send(sender);
            assert_eq!((report.sent(), sent.len() as u64), (packets, packets), "{method:?}");
            for (sequence, sent) in (0..).zip(sent) {
                assert_eq!(sent.sequence, sequence);
                let (sched, software) = (sent.stamps.sched.unwrap(), sent.stamps.software.unwrap());
                // Two readings of UTC differ by a few microseconds.
                assert!(sched >= sent.actual - Span::from_millis(1), "{method:?}: {sent:?}");
                assert!(
                    software >= sched && sent.stamps.hardware.is_none(),
                    "{method:?}: {sent:?}"
                );
            }
        }
    }
}

#[test]
fn stamp_belongs_to_its_packet() {
    let Some(lab) = lab() else { return };
    for method in STAMPED {
        let by = SendOptions { tx_stamps: true, ..by(method) };
        let interval = Span::from_millis(5);
        let sender = open(&lab, stream(400, interval, ENDS[0].1), &by).unwrap();
        let (_, sent) = send(sender);
        // Late packets may be sent together, and the sender may be interrupted before the kernel has a packet. Stamps of
        // other packets would be an interval away.
        let is_on_time = |sent: &SentPacket| {
            let delay = sent.stamps.software.unwrap() - sent.actual;
            sent.pacing_error < Span::from_millis(1) && delay < Span::from_millis(1)
        };
        let on_time = |pair: &&[SentPacket]| pair.iter().all(is_on_time);
        let pairs: Vec<_> = sent.windows(2).filter(on_time).collect();
        assert!(pairs.len() > 10, "{method:?}: nearly every packet is late");
        for pair in pairs {
            let [before, after] = [&pair[0], &pair[1]].map(|sent| sent.stamps.software.unwrap());
            assert!(before < pair[1].actual && pair[1].intended < after, "{method:?}: {pair:?}");
        }
    }
}

#[test]
fn bypassing_the_queue_gives_no_sched_stamps() {
    let Some(lab) = lab() else { return };
    for method in [SendMethod::Packet, SendMethod::Ring] {
        let by = SendOptions { tx_stamps: true, bypass_queue: true, ..by(method) };
        let sender = open(&lab, stream(100, Span::from_micros(100), ENDS[0].1), &by).unwrap();
        assert!(sender.unavailable_stamps().unwrap().sched.is_some());
        let (report, sent) = send(sender);
        assert_eq!(report.sent(), 100);
        let only_software =
            |s: &SentPacket| s.stamps.sched.is_none() && s.stamps.software.is_some();
        assert!(sent.iter().all(only_software), "{method:?}");
    }
}

#[test]
fn unsupported_streams_are_rejected_with_next_step() {
    let Some(lab) = lab() else { return };
    let fails = |change: fn(&mut Stream)| {
        let mut stream = stream(1, Span::ZERO, ENDS[0].1);
        change(&mut stream);
        open(&lab, stream, &by(SendMethod::Packet)).unwrap_err()
    };
    assert!(matches!(fails(|s| s.interface = None), SendError::NoInterface(SendMethod::Packet)));
    let unknown = fails(|s| s.interface = Some("nonesuch0".into()));
    assert!(unknown.to_string().contains("`nonesuch0`"), "{unknown}");
    lab.source().command("ip").args(["link", "set", "out", "mtu", "1280"]).status().unwrap();
    let long = fails(|s| s.plan.pattern = Pattern::hd_video());
    assert!(long.to_string().contains("up to 1294"), "{long}");
}

#[test]
fn frames_refused_by_the_kernel_are_counted() {
    let Some(lab) = lab() else { return };
    for method in [SendMethod::Packet, SendMethod::Ring, SendMethod::Xdp] {
        let by = SendOptions { tx_stamps: method != SendMethod::Xdp, ..by(method) };
        let sender = open(&lab, stream(200, Span::ZERO, ENDS[0].1), &by).unwrap();
        lab.source().command("ip").args(["link", "set", "out", "down"]).status().unwrap();
        let (report, sent) = send(sender);
        lab.source().command("ip").args(["link", "set", "out", "up"]).status().unwrap();
        let stream = &report.streams[0];
        assert_eq!((stream.sent, stream.bytes, stream.failed), (0, 0, 200), "{method:?}");
        assert!(stream.first_error.as_ref().unwrap().contains("down"), "{report:?}");
        assert!(sent.is_empty(), "{method:?}: {sent:?}");
    }
}

#[test]
fn frames_dropped_at_full_queue_are_counted_without_stamps() {
    let Some(lab) = lab() else { return };
    let queue = "qdisc add dev out root tbf rate 4mbit burst 2000 limit 3000".split(' ');
    assert!(lab.source().command("tc").args(queue).status().unwrap().success());
    let receiver = receiver(&lab, ENDS[0].1);
    for method in [SendMethod::Packet, SendMethod::Ring] {
        let by = SendOptions { tx_stamps: true, ..by(method) };
        let sender = open(&lab, stream(100, Span::ZERO, ENDS[0].1), &by).unwrap();
        let (report, sent) = send(sender);
        let stream = &report.streams[0];
        assert_eq!(stream.sent + stream.failed, 100, "{report:?}");
        let arrived = || {
            let mut buffer = [0; 2048];
            let length = receiver.recv(&mut buffer).unwrap();
            Payload::decode(&buffer[..length]).unwrap().sequence
        };
        let mut arrived: Vec<_> = (0..stream.sent).map(|_| arrived()).collect();
        // Two cores empty the queue, the sender's and that of its timer, so that neighbours may change places.
        arrived.sort_unstable();
        assert!(arrived.is_sorted_by(|a, b| a < b), "{method:?}: {arrived:?}");
        let software: Vec<_> = sent.iter().map_while(|sent| sent.stamps.software).collect();
        // A stamp of another packet would be out of order, or earlier than its own send time.
        assert!(software.is_sorted() && software.len() < 100, "{method:?}: {software:?}");
        assert!(sent.iter().skip(software.len()).all(|sent| sent.stamps.software.is_none()));
    }
}

#[test]
fn xdp_counts_frames_without_carrier_as_refused() {
    let Some(lab) = lab() else { return };
    let sender = open(&lab, stream(200, Span::ZERO, ENDS[0].1), &by(SendMethod::Xdp)).unwrap();
    assert_eq!(sender.mode(), Some("copy"));
    lab.router().command("ip").args(["link", "set", "tap-a", "down"]).status().unwrap();
    let (report, _) = send(sender);
    let stream = &report.streams[0];
    assert_eq!((stream.sent, stream.bytes, stream.failed), (0, 0, 200), "{report:?}");
    assert!(stream.first_error.as_ref().unwrap().contains("no carrier"), "{report:?}");
}

#[test]
fn xdp_sends_more_frames_than_its_memory_holds() {
    let Some(lab) = lab() else { return };
    let before = counted(&lab);
    let sender = open(&lab, stream(50_000, Span::ZERO, ENDS[0].1), &by(SendMethod::Xdp)).unwrap();
    let (report, _) = send(sender);
    let stream = &report.streams[0];
    assert_eq!(stream.sent + stream.failed, 50_000, "{report:?}");
    assert_eq!(stream.bytes, stream.sent * 301, "{report:?}");
    assert!(stream.sent > 25_000, "{report:?}");
    // Exactly the frames counted as sent have passed the interface.
    assert_eq!(counted(&lab) - before, stream.sent, "{report:?}");
}

/// Packets that the source's interface has sent, by its own counter: the tenth number of its line
/// (proc_net(5)).
fn counted(lab: &PathLab) -> u64 {
    let output = lab.source().command("cat").arg("/proc/net/dev").output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("out:")).unwrap();
    line.split_whitespace().nth(9).unwrap().parse().unwrap()
}

#[test]
fn unsupported_xdp_options_are_rejected_with_next_step() {
    let Some(lab) = lab() else { return };
    let fails = |by: &SendOptions| {
        open(&lab, stream(1, Span::ZERO, ENDS[0].1), by).unwrap_err().to_string()
    };
    let error = fails(&SendOptions { queue: 999, ..by(SendMethod::Xdp) });
    assert!(error.contains("queue 999 of out") && error.contains("`ethtool -l out`"), "{error}");
    let error = fails(&SendOptions { tx_stamps: true, ..by(SendMethod::Xdp) });
    assert!(error.contains("use udp, packet or ring"), "{error}");
}
