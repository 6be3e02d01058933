//! The sink's counts equal the kernel's, over a path that loses, duplicates and reorders.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::{
    Impairments, PathLab, SINK_V4, SINK_V6, SOURCE_INTERFACE, Selector, check_privilege,
};
use wirestamp_traffic::{
    Pattern, SEQUENCE_LOW_BYTE_OFFSET, SendReport, Sender, ServiceClock, Sink, SinkReport, Stream,
    StreamPlan,
};

const PORT: u16 = 5000;
/// Max time for the queue to empty.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Every sixteenth packet, by the low byte of its sequence number.
const fn sixteenth(value: u8) -> Option<Selector> {
    Some(Selector { port: PORT, offset: SEQUENCE_LOW_BYTE_OFFSET, mask: 0x0f, value })
}

/// Waits until every one of `offered` packets has left the bottleneck or been dropped by it.
fn release_complete(lab: &PathLab, offered: u64) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < TEST_TIMEOUT {
        let counters = lab.bottleneck().unwrap();
        if counters.sent_packets + counters.dropped_packets == offered {
            return true;
        }
    }
    false
}

/// Sends bursts that overfill the queue from the source of `lab` to its sink.
fn overfill(lab: &PathLab, address: IpAddr) -> (SendReport, SinkReport) {
    let sink = lab.sink().run(|| Sink::bind((address, PORT).into())).unwrap().unwrap();
    let pattern = Pattern::new("burst", 1000, Span::from_millis(50)).unwrap();
    let pattern = pattern.with_burst(80, Span::from_nanos(10_000)).unwrap();
    let plan = StreamPlan { pattern, start: Span::ZERO, packets: 320 };
    let mut stream = Stream::new(3, plan, (address, PORT).into());
    stream.interface = Some(SOURCE_INTERFACE.into());
    let sender = lab.source().run(|| Sender::open(vec![stream])).unwrap().unwrap();
    let service = ClockService::start(Counter::select()).unwrap();
    let (running, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| sink.run(&done).unwrap());
        let sent = sender.run(&mut ServiceClock::new(&service), &running, |_| {});
        let settled = release_complete(lab, sent.sent() + 20); // every sixteenth of 320 once more
        done.store(true, Ordering::Release);
        let arrived = receiver.join().unwrap();
        assert!(settled, "{sent:?} {arrived:?} {:?}", lab.bottleneck());
        (sent, arrived)
    })
}

#[test]
fn sink_counts_the_packets_that_pass_the_bottleneck() {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return;
    }
    for address in [IpAddr::V4(SINK_V4), IpAddr::V6(SINK_V6)] {
        let impairments = Impairments {
            duplicate: sixteenth(3),
            expedite: sixteenth(9),
            ..Impairments::bottleneck(10_000_000, 40_000)
        };
        let lab = PathLab::new(&impairments).unwrap();
        let (sent, arrived) = overfill(&lab, address);
        let counters = lab.bottleneck().unwrap();
        assert_eq!((sent.sent(), lab.duplicated().unwrap()), (320, 20));
        assert!(arrived.is_complete() && arrived.foreign == 0, "{arrived:?}");
        let stream = arrived.streams[&3];
        assert_eq!(stream.received, counters.sent_packets);
        assert!(counters.dropped_packets > 0, "the queue was overfilled");
        assert!(stream.duplicated > 0 && stream.reordered > 0, "{stream:?}");
        assert!(stream.distinct < sent.sent());
    }
}
