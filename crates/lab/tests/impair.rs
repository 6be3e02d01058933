//! Real packets through the impairment stage.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_clock::Span;
use wirestamp_lab::check_privilege;
use wirestamp_lab::impair::{
    Account, Fate, Plan, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, Stage, Testimony, Wire,
};

const PORT: u16 = 5000;
const PACKETS: u32 = 2000;
/// How many packets may be under way, so that the sink's socket has room for all of them.
const UNDER_WAY: u32 = 30;
/// How long a packet may take before the test counts as failed.
const FAILED_AFTER: Duration = Duration::from_secs(20);
const PLAN: Plan = Plan {
    seed: 7,
    delay: Span::from_millis(2),
    jitter: Span::from_millis(1),
    loss: 0.1,
    duplicate: 0.1,
    reorder: 0.1,
    held_back: Span::from_millis(5),
};

fn is_root() -> bool {
    let permitted = check_privilege().is_ok();
    if !permitted {
        eprintln!("skipped: needs root");
    }
    permitted
}

/// The number that a test packet begins with, behind Ethernet, IP and UDP headers.
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

/// Sets a flag in any case, so that nobody waits for it when a test has failed.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until `counter` has come to `count`.
fn await_count(counter: &AtomicU64, count: u64) {
    let deadline = Instant::now() + FAILED_AFTER;
    while counter.load(Ordering::Acquire) < count {
        assert!(Instant::now() < deadline, "{counter:?} of {count}");
        thread::yield_now();
    }
}

/// How many packets come out of one.
fn copies(fate: Fate) -> u64 {
    fate.delays().into_iter().flatten().count() as u64
}

/// Runs `work` while the stage passes packets on; it can see how many have arrived at the stage, and
/// come out of it.
fn staged<T>(
    wire: &Wire,
    work: impl FnOnce(&AtomicU64, &AtomicU64) -> T,
) -> (T, Account, Testimony) {
    let (stage, witness) = (wire.stage(PLAN).unwrap(), wire.witness().unwrap());
    let (ended, all_out) = (AtomicBool::new(false), AtomicBool::new(false));
    let (arrived, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let watching = scope.spawn(|| witness.run(&number_of, &all_out, &seen).unwrap());
        let passing = scope.spawn(|| Stage::run(stage, &number_of, &ended, &arrived).unwrap());
        let all_out = SetAtEnd(&all_out);
        let done = {
            let _ended = SetAtEnd(&ended);
            work(&arrived, &seen)
        };
        let account = passing.join().unwrap();
        let out = account.passages.iter().map(|passage| copies(passage.fate));
        await_count(&seen, out.sum());
        drop(all_out);
        (done, account, watching.join().unwrap())
    })
}

/// Sends the packets of the test, and says which ones the sink's socket was given how often.
fn send_all(
    wire: &Wire,
    source: IpAddr,
    sink: IpAddr,
) -> (HashMap<u64, usize>, Account, Testimony) {
    let receiver = wire.sink().run(|| UdpSocket::bind((sink, PORT)).unwrap()).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let sender = wire.source().run(|| UdpSocket::bind((source, PORT)).unwrap()).unwrap();
    let mut received = HashMap::new();
    let mut collect = || {
        let mut payload = [0; 8];
        while let Ok(length) = receiver.recv(&mut payload) {
            let number = u32::from_be_bytes(*payload[..length].first_chunk().unwrap());
            *received.entry(u64::from(number)).or_default() += 1;
        }
    };
    let ((), account, testimony) = staged(wire, |arrived, seen| {
        let mut out = 0;
        for number in 0..PACKETS {
            sender.send_to(&number.to_be_bytes(), (sink, PORT)).unwrap();
            if let Some(earlier) = number.checked_sub(UNDER_WAY) {
                out += copies(PLAN.fate(earlier.into()));
                await_count(seen, out);
            }
            collect();
        }
        await_count(arrived, PACKETS.into());
    });
    collect();
    (received, account, testimony)
}

#[test]
fn each_packet_meets_the_fate_of_its_number() {
    if !is_root() {
        return;
    }
    let versions: [(IpAddr, IpAddr); 2] =
        [(SOURCE_V4.into(), SINK_V4.into()), (SOURCE_V6.into(), SINK_V6.into())];
    for (source, sink) in versions {
        let wire = Wire::new().unwrap();
        let (received, account, testimony) = send_all(&wire, source, sink);
        assert_eq!((account.missed, account.unstamped, account.others), (0, 0, 0));
        assert_eq!((testimony.missed, testimony.unstamped), (0, 0));
        assert_eq!(account.passages.len(), usize::try_from(PACKETS).unwrap());
        for (passage, number) in account.passages.iter().zip(0..) {
            assert_eq!((passage.number, passage.fate), (number, PLAN.fate(number)));
            let delays: Vec<_> = passage.fate.delays().into_iter().flatten().collect();
            let seen: Vec<_> =
                testimony.sightings.iter().filter(|seen| seen.number == number).collect();
            assert_eq!(seen.len(), delays.len(), "{passage:?}");
            // The sink's socket takes a packet whose checksum is right only.
            assert_eq!(received.get(&number).copied().unwrap_or(0), delays.len(), "{passage:?}");
            for (delay, sent) in delays.iter().zip(passage.sent.into_iter().flatten()) {
                assert!(sent.before >= passage.arrived + *delay && sent.before <= sent.after);
                let is_it = |stamp| (sent.before..=sent.after).contains(&stamp);
                assert!(seen.iter().any(|seen| is_it(seen.stamp)), "{sent:?} {seen:?}");
            }
        }
        let fates = account.passages.iter().map(|passage| passage.fate);
        assert!(fates.clone().any(|fate| fate == Fate::Lost));
        assert!(fates.clone().any(|fate| matches!(fate, Fate::Twice(..))));
        assert!(!testimony.sightings.is_sorted_by_key(|seen| seen.number), "some are overtaken");
    }
}

#[test]
fn what_has_no_number_passes_whole_and_both_ways() {
    if !is_root() {
        return;
    }
    let wire = Wire::new().unwrap();
    let listener = wire.sink().run(|| TcpListener::bind((SINK_V4, 80)).unwrap()).unwrap();
    // More than a segment, so that it takes whatever the kernel puts off: segments and checksums.
    let asked = vec![0x55; 200_000];
    let (answered, account, _) = staged(&wire, |_, _| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = vec![0; 200_000];
                stream.read_exact(&mut asked).unwrap();
                stream.write_all(&asked).unwrap();
            });
            let mut stream =
                wire.source().run(|| TcpStream::connect((SINK_V4, 80)).unwrap()).unwrap();
            stream.set_read_timeout(Some(FAILED_AFTER)).unwrap();
            stream.write_all(&asked).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            answer
        })
    });
    assert!(answered == asked, "{} of {} bytes", answered.len(), asked.len());
    assert!(account.others > 0 && account.passages.is_empty());
}
