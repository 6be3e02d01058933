//! The impairment stage with real packets.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_clock::Span;
use wirestamp_lab::check_privilege;
use wirestamp_lab::wire::{SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, Wire};
use wirestamp_stage::{
    ImpairmentPlan, PlannedDelivery, ReferenceCapture, ReferenceReport, Stage, StageReport,
};

const PORT: u16 = 5000;
const PACKETS: u32 = 2000;
/// Max packets in flight, so that the sink's socket has room for all of them.
const MAX_IN_FLIGHT: u32 = 30;
/// Max wait for a packet.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const PLAN: ImpairmentPlan = ImpairmentPlan {
    seed: 7,
    delay: Span::from_millis(2),
    jitter: Span::from_millis(1),
    loss: 0.1,
    duplicate: 0.1,
    reorder: 0.1,
    reorder_delay: Span::from_millis(5),
};

fn is_root() -> bool {
    let permitted = check_privilege().is_ok();
    if !permitted {
        eprintln!("skipped: needs root");
    }
    permitted
}

/// The number at the start of a test packet's UDP payload.
fn number_of(frame: &[u8]) -> Option<u64> {
    let udp = match frame.get(12..14)? {
        [0x08, 0x00] if frame.get(23) == Some(&17) => 34,
        [0x86, 0xdd] if frame.get(20) == Some(&17) => 54,
        _ => return None,
    };
    let port = u16::from_be_bytes(*frame.get(udp + 2..)?.first_chunk()?);
    let number = u32::from_be_bytes(*frame.get(udp + 8..)?.first_chunk()?);
    (port == PORT).then_some(number.into())
}

/// Sets a flag when dropped, so that no thread waits for it after a test has failed.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until `counter` reaches `count`.
fn await_count(counter: &AtomicU64, count: u64) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while counter.load(Ordering::Acquire) < count {
        assert!(Instant::now() < deadline, "{counter:?} of {count}");
        thread::yield_now();
    }
}

/// Number of packets that leave the stage for one packet.
fn copies(planned: PlannedDelivery) -> u64 {
    planned.delays().into_iter().flatten().count() as u64
}

/// Runs `work` while the stage forwards packets, with the numbers of packets that have arrived at the
/// stage and left it.
fn staged<T>(
    wire: &Wire,
    work: impl FnOnce(&AtomicU64, &AtomicU64) -> T,
) -> (T, StageReport, ReferenceReport) {
    let (stage, capture) =
        (Stage::open(wire, PLAN).unwrap(), ReferenceCapture::open(wire).unwrap());
    let (ended, all_out) = (AtomicBool::new(false), AtomicBool::new(false));
    let (arrived, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let watching = scope.spawn(|| capture.run(&number_of, &all_out, &seen).unwrap());
        let passing = scope.spawn(|| Stage::run(stage, &number_of, &ended, &arrived).unwrap());
        let all_out = SetOnDrop(&all_out);
        let done = {
            let _ended = SetOnDrop(&ended);
            work(&arrived, &seen)
        };
        let stage = passing.join().unwrap();
        let out = stage.packets.iter().map(|packet| copies(packet.planned));
        await_count(&seen, out.sum());
        drop(all_out);
        (done, stage, watching.join().unwrap())
    })
}

/// Sends the test packets. Returns how often the sink's socket received each, and the reports.
fn send_all(
    wire: &Wire,
    source: IpAddr,
    sink: IpAddr,
) -> (HashMap<u64, usize>, StageReport, ReferenceReport) {
    let receiver = wire.sink.run(|| UdpSocket::bind((sink, PORT)).unwrap()).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let sender = wire.source.run(|| UdpSocket::bind((source, PORT)).unwrap()).unwrap();
    let mut received = HashMap::new();
    let mut collect = || {
        let mut payload = [0; 8];
        while let Ok(length) = receiver.recv(&mut payload) {
            let number = u32::from_be_bytes(*payload[..length].first_chunk().unwrap());
            *received.entry(u64::from(number)).or_default() += 1;
        }
    };
    let ((), stage, reference) = staged(wire, |arrived, seen| {
        let mut out = 0;
        for number in 0..PACKETS {
            sender.send_to(&number.to_be_bytes(), (sink, PORT)).unwrap();
            if let Some(earlier) = number.checked_sub(MAX_IN_FLIGHT) {
                out += copies(PLAN.delivery(earlier.into()));
                await_count(seen, out);
            }
            collect();
        }
        await_count(arrived, PACKETS.into());
    });
    collect();
    (received, stage, reference)
}

#[test]
fn each_packet_is_delivered_as_planned() {
    if !is_root() {
        return;
    }
    let versions: [(IpAddr, IpAddr); 2] =
        [(SOURCE_V4.into(), SINK_V4.into()), (SOURCE_V6.into(), SINK_V6.into())];
    for (source, sink) in versions {
        let wire = Wire::new().unwrap();
        let (received, stage, reference) = send_all(&wire, source, sink);
        assert_eq!((stage.missed, stage.unstamped, stage.others), (0, 0, 0));
        assert_eq!((reference.missed, reference.unstamped), (0, 0));
        assert_eq!(stage.packets.len(), usize::try_from(PACKETS).unwrap());
        for (packet, number) in stage.packets.iter().zip(0..) {
            assert_eq!((packet.number, packet.planned), (number, PLAN.delivery(number)));
            let delays: Vec<_> = packet.planned.delays().into_iter().flatten().collect();
            let seen: Vec<_> =
                reference.arrivals.iter().filter(|seen| seen.number == number).collect();
            assert_eq!(seen.len(), delays.len(), "{packet:?}");
            // The sink's socket drops packets with wrong checksums.
            assert_eq!(received.get(&number).copied().unwrap_or(0), delays.len(), "{packet:?}");
            for (delay, sent) in delays.iter().zip(packet.sent.into_iter().flatten()) {
                assert!(sent.before >= packet.arrived + *delay && sent.before <= sent.after);
                let is_it = |stamp| (sent.before..=sent.after).contains(&stamp);
                assert!(seen.iter().any(|seen| is_it(seen.stamp)), "{sent:?} {seen:?}");
            }
        }
        let planned = stage.packets.iter().map(|packet| packet.planned);
        assert!(planned.clone().any(|planned| planned == PlannedDelivery::Lost));
        assert!(planned.clone().any(|planned| matches!(planned, PlannedDelivery::Twice(..))));
        assert!(!reference.arrivals.is_sorted_by_key(|seen| seen.number), "some are overtaken");
    }
}

#[test]
fn other_frames_pass_unchanged_in_both_directions() {
    if !is_root() {
        return;
    }
    let wire = Wire::new().unwrap();
    let listener = wire.sink.run(|| TcpListener::bind((SINK_V4, 80)).unwrap()).unwrap();
    // More than a segment, so that the kernel offloads segmentation and checksums.
    let asked = vec![0x55; 200_000];
    let (answered, stage, _) = staged(&wire, |_, _| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = vec![0; 200_000];
                stream.read_exact(&mut asked).unwrap();
                stream.write_all(&asked).unwrap();
            });
            let mut stream =
                wire.source.run(|| TcpStream::connect((SINK_V4, 80)).unwrap()).unwrap();
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            stream.write_all(&asked).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            answer
        })
    });
    assert!(answered == asked, "{} of {} bytes", answered.len(), asked.len());
    assert!(stage.others > 0 && stage.packets.is_empty());
}
