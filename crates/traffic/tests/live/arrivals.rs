//! Live frames arrive complete, once, and stamped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Ledger, Limit as CaptureLimit, Method,
    Sink as CaptureSink, StampSource, Stop,
};
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::{PathLab, SOURCE_INTERFACE, TAP_A, TAP_B};
use wirestamp_traffic::live::{Direction, Limit, LiveFrames, LiveReport, Pace, Template};
use wirestamp_traffic::{Payload, ServiceClock, Sink, SinkReport};

use crate::{RUNNING, TEST_TIMEOUT, frames, incoming, lab, outgoing, tool};

/// A frame captured with `xdp-pass`.
struct ReceivedFrame {
    sequence: u64,
    source_port: u16,
    /// Capture stamp minus the time in the frame, and the errors of both.
    delay: Span,
    error: Span,
}

struct FrameList<'a> {
    clock: &'a ClockService,
    frames: Vec<ReceivedFrame>,
}

impl CaptureSink for FrameList<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let payload = Payload::decode(&packet.bytes[42..]).unwrap();
        let sent = payload.sent_monotonic().unwrap();
        let sent = self.clock.timeline(sent.domain).convert(sent.value);
        self.frames.push(ReceivedFrame {
            sequence: payload.sequence,
            source_port: u16::from_be_bytes([packet.bytes[34], packet.bytes[35]]),
            delay: packet.stamp.utc - sent.utc,
            error: packet.stamp.error + sent.error,
        });
        Ok(())
    }
}

/// Sends from the source while tap A is captured with `xdp-pass`.
fn exchange(
    lab: &PathLab,
    template: Template,
    pace: Pace,
    limit: Limit,
) -> (LiveReport, Ledger, Vec<ReceivedFrame>) {
    let service = ClockService::start(Counter::select()).unwrap();
    let config = Config {
        snaplen: 128, // so that the ring has room for all frames of a run
        limit: CaptureLimit { packets: limit.frames, duration: None },
        ..Config::new(TAP_A, Method::XdpPass, StampSource::Xdp)
    };
    let capture = lab.router().run(|| Capture::open(config, &service)).unwrap().unwrap();
    let (stop, mut frames) =
        (Stop::new().unwrap(), FrameList { clock: &service, frames: Vec::new() });
    let live_ledger = capture.live_ledger();
    let (report, ledger) = thread::scope(|scope| {
        let capturing = scope.spawn(|| capture.run(&service, &stop, &mut frames));
        let send = || {
            let mut live =
                LiveFrames::open(SOURCE_INTERFACE, template, Direction::Transmit).unwrap();
            live.run(&ServiceClock::new(&service), pace, limit, &RUNNING).unwrap()
        };
        let report = lab.source().run(send).unwrap();
        // On a busy machine the last frames may arrive later.
        let deadline = Instant::now() + TEST_TIMEOUT;
        let all_arrived = || live_ledger.snapshot().seen >= report.sent - report.dropped;
        while !capturing.is_finished() && !all_arrived() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        stop.request();
        let (ledger, outcome) = capturing.join().unwrap();
        outcome.unwrap();
        (report, ledger)
    });
    (report, ledger, frames.frames)
}

#[test]
fn full_speed_frames_arrive_stamped_or_counted_as_lost() {
    let Some(lab) = lab() else { return };
    for frame_bytes in [60, 74, 1514, 1518] {
        let (report, ledger, received) =
            exchange(&lab, outgoing(frame_bytes), Pace::full_speed(), frames(100_000));
        let name = format!("{frame_bytes}: {report:?} {ledger:?}");
        assert_eq!((report.sent, report.stopped), (100_000, false), "{name}");
        assert_eq!(report.bytes, 100_000 * u64::from(frame_bytes), "{name}");
        assert!(ledger.balances(), "{name}");
        assert_eq!(received.len() as u64 + ledger.lost() + report.dropped, 100_000, "{name}");
        assert!(received.is_sorted_by(|a, b| a.sequence < b.sequence), "{name}");
        for frame in &received {
            assert!(frame.delay + frame.error >= Span::ZERO && frame.sequence < 100_000, "{name}");
            assert_eq!(u64::from(frame.source_port), 7000 + frame.sequence % 8, "{name}");
        }
        // The number of arrivals depends on the load of the machine.
        assert!(received.len() > 1_000, "{name}");
    }
}

#[test]
fn frames_rejected_by_the_peer_are_counted_as_dropped() {
    let Some(lab) = lab() else { return };
    // The peer polls, but its MTU is too small for the first run.
    tool(lab.router(), "ethtool -K tap-a gro on");
    tool(lab.router(), "ip link set tap-a mtu 1000");
    let service = ClockService::start(Counter::select()).unwrap();
    let send = |frame_bytes| {
        let send = || {
            let template = outgoing(frame_bytes);
            let mut live = LiveFrames::open(SOURCE_INTERFACE, template, Direction::Transmit)?;
            let clock = ServiceClock::new(&service);
            live.run(&clock, Pace::full_speed(), frames(1_000), &RUNNING)
        };
        let report = lab.source().run(send).unwrap().unwrap();
        (report.sent, report.dropped)
    };
    assert_eq!(send(1514), (1_000, 1_000));
    assert_eq!(send(1000), (1_000, 0));
}

#[test]
fn paced_run_keeps_rate_and_duration_limit() {
    let Some(lab) = lab() else { return };
    let pace = Pace::rate(20_000).unwrap();
    assert_eq!(pace.burst(), 4);
    let (report, ..) = exchange(&lab, outgoing(200), pace, frames(4_000));
    // The last burst is due 4 frames before 200 ms, and none may be early.
    assert_eq!(report.sent, 4_000);
    assert!(report.elapsed >= Span::from_nanos(199_800_000), "{report:?}");

    let limit = Limit { frames: None, duration: Some(Span::from_millis(50)) };
    let (report, ..) = exchange(&lab, outgoing(200), pace, limit);
    assert!((1..=1_000).contains(&report.sent) && !report.stopped, "{report:?}");
}

/// Injects frames at the sink's interface while its socket counts them.
fn inject(
    lab: &PathLab,
    template: Template,
    direction: Direction,
    pace: Pace,
) -> (LiveReport, SinkReport) {
    let service = ClockService::start(Counter::select()).unwrap();
    let address = template.destination.address;
    let sink = lab.sink().run(|| Sink::bind(address)).unwrap().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| sink.run(&done).unwrap());
        let send = || {
            let mut live = LiveFrames::open(TAP_B, template, direction).unwrap();
            live.run(&ServiceClock::new(&service), pace, frames(5_000), &RUNNING).unwrap()
        };
        let report = lab.sink().run(send).unwrap();
        done.store(true, Ordering::Release);
        (report, receiver.join().unwrap())
    })
}

#[test]
fn injected_frames_reach_the_sockets_with_valid_checksums() {
    let Some(lab) = lab() else { return };
    // The short form has no stream number. Odd lengths: the checksum pads them.
    let frames = [(false, 61, 0), (false, 1501, 3), (true, 81, 0), (true, 1501, 3)];
    // On this core, and on the last core, which may be the same.
    let core = u32::try_from(thread::available_parallelism().unwrap().get() - 1).unwrap();
    let directions = [Direction::Receive, Direction::ReceiveOn(core)];
    for (direction, (ipv6, frame_bytes, stream)) in
        directions.into_iter().flat_map(|direction| frames.map(|frame| (direction, frame)))
    {
        let (report, arrived) =
            inject(&lab, incoming(ipv6, frame_bytes), direction, Pace::rate(100_000).unwrap());
        let name = format!("{direction:?} {ipv6} {frame_bytes}: {report:?} {arrived:?}");
        assert_eq!((report.sent, report.dropped), (5_000, 0), "{name}");
        assert!(arrived.is_complete() && arrived.foreign == 0, "{name}");
        let truth = arrived.streams[&stream];
        assert_eq!((truth.received, truth.distinct), (5_000, 5_000), "{name}");
    }
}

#[test]
fn longest_frame_of_a_page_arrives() {
    let Some(lab) = lab() else { return };
    tool(lab.sink(), "ip link set tap-b mtu 9000");
    let (template, pace) = (incoming(true, 3072), Pace::rate(100_000).unwrap());
    let (report, arrived) = inject(&lab, template, Direction::Receive, pace);
    assert_eq!((report.sent, arrived.streams[&3].distinct), (5_000, 5_000), "{arrived:?}");
}
