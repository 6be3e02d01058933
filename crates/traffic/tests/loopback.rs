//! Real sockets on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_traffic::{
    Pattern, Payload, SendError, SendReport, Sender, SentPacket, ServiceClock, Sink, SinkReport,
    Stream, StreamArrivals, StreamPlan,
};

const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

fn pattern(interval_nanos: i64) -> Pattern {
    Pattern::new("free", 200, Span::from_nanos(interval_nanos)).unwrap()
}

/// `packets` packets from the start on.
fn plan(pattern: Pattern, packets: u64) -> StreamPlan {
    StreamPlan { pattern, start: Span::ZERO, packets }
}

/// Sends streams to a sink at `address` and returns the reports of both sides.
fn exchange(address: IpAddr, plans: Vec<StreamPlan>) -> (SendReport, Vec<SentPacket>, SinkReport) {
    let sink = Sink::bind((address, 0).into()).unwrap();
    let destination = sink.local_addr().unwrap();
    let streams = (10..).zip(plans).map(|(id, plan)| Stream::new(id, plan, destination)).collect();
    let sender = Sender::open(streams).unwrap();
    let service = ClockService::start(Counter::select()).unwrap();
    let (running, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut sent = Vec::new();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| sink.run(&done).unwrap());
        let report = sender.run(&mut ServiceClock::new(&service), &running, |s| sent.push(*s));
        done.store(true, Ordering::Release);
        (report, sent, receiver.join().unwrap())
    })
}

#[test]
fn all_packets_arrive_once_and_in_order() {
    for address in LOOPBACK {
        let burst = pattern(5_000_000).with_burst(20, Span::ZERO).unwrap();
        let plans = vec![plan(pattern(200_000), 300), plan(burst, 100)];
        let (report, sent, arrived) = exchange(address, plans);
        assert_eq!((report.streams[0].sent, report.streams[0].bytes), (300, 60_000));
        assert_eq!((report.streams[1].sent, report.streams[1].failed), (100, 0));
        assert_eq!((report.sent(), report.stopped), (400, false));
        assert!(arrived.is_complete());
        for (id, packets) in [(10, 300), (11, 100)] {
            let all = StreamArrivals { received: packets, distinct: packets, ..Default::default() };
            assert_eq!(arrived.streams[&id], all);
        }
        assert_eq!(sent.len(), 400);
        assert!(sent.iter().all(|s| s.pacing_error >= Span::ZERO && s.actual >= s.intended));
    }
}

#[test]
fn payload_has_intended_times_one_interval_apart() {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let stream = Stream::new(7, plan(Pattern::voip(), 3), receiver.local_addr().unwrap());
    let sender = Sender::open(vec![stream]).unwrap();
    let service = ClockService::start(Counter::select()).unwrap();
    let mut sent = Vec::new();
    let stop = AtomicBool::new(false);
    sender.run(&mut ServiceClock::new(&service), &stop, |s| sent.push(*s));
    for expected in &sent {
        let mut buffer = [0; 2048];
        let length = receiver.recv(&mut buffer).unwrap();
        let payload = Payload::decode(&buffer[..length]).unwrap();
        assert_eq!((length, payload.stream), (98, 7));
        assert_eq!(payload.sequence, expected.sequence);
        assert_eq!((payload.intended, payload.actual), (expected.intended, expected.actual));
    }
    for pair in sent.windows(2) {
        let apart = (pair[1].intended - pair[0].intended).as_nanos();
        // The system clock may be slewed by 500 ppm, and calibration has just begun: 1 % of 20 ms.
        assert!((apart - 20_000_000).abs() < 200_000, "{apart} ns");
    }
}

#[test]
fn stop_ends_an_endless_stream() {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endless = plan(pattern(100_000), u64::MAX);
    let stream = Stream::new(1, endless, receiver.local_addr().unwrap());
    let service = ClockService::start(Counter::select()).unwrap();
    let stop = AtomicBool::new(false);
    let report =
        Sender::open(vec![stream]).unwrap().run(&mut ServiceClock::new(&service), &stop, |sent| {
            stop.store(sent.sequence == 9, Ordering::Relaxed)
        });
    assert_eq!((report.sent(), report.stopped), (10, true));
}

#[test]
fn packets_refused_by_the_kernel_are_counted() {
    // Port 0 is not a valid destination (RFC 768, udp(7)): EINVAL.
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let stream = Stream::new(1, plan(pattern(1000), 5), nowhere);
    let service = ClockService::start(Counter::select()).unwrap();
    let stop = AtomicBool::new(false);
    let report =
        Sender::open(vec![stream]).unwrap().run(&mut ServiceClock::new(&service), &stop, |_| {});
    assert_eq!((report.sent(), report.streams[0].failed), (0, 5));
    assert!(report.streams[0].first_error.is_some());
}

#[test]
fn invalid_streams_are_rejected_by_name() {
    let open = |change: fn(&mut Stream)| {
        let destination = (Ipv6Addr::LOCALHOST, 5000).into();
        let mut stream = Stream::new(1, plan(pattern(1000), 1), destination);
        change(&mut stream);
        Sender::open(vec![stream]).map(drop)
    };
    assert!(open(|_| {}).is_ok());
    assert!(matches!(open(|s| s.dscp = 64), Err(SendError::Dscp(64))));
    let short = |s: &mut Stream| s.plan.pattern = Pattern::new("s", 80, Span::ZERO).unwrap();
    assert!(matches!(open(short), Err(SendError::Pattern(_))));
    assert!(open(|s| s.interface = Some(String::new())).is_err());
    let error = open(|s| s.interface = Some("nonesuch0".into())).unwrap_err();
    assert!(error.to_string().contains("`nonesuch0`"), "{error}");
}
