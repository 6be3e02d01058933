//! Every pair of method and stamp on real packets, across a path of network namespaces.

mod bed;
mod complete;
mod directions;
mod interface;
mod joined;
mod lanes;
mod same_packets;
mod sizes;
mod snap_length;
mod socket_calls;

use std::thread;
use std::time::Duration;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Cores, Error, Method, Sink, StampSource, Stop, Wait,
};
use wirestamp_clock::{ClockService, Counter};

use bed::{KeptPackets, capture, config, lab, now, pairs, raw_domain, send};

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

#[test]
fn unusable_core_is_refused_before_opening() {
    let clock = ClockService::start(Counter::select()).unwrap();
    let cores = Cores { acquire: Some(1_000_000), ..Cores::default() };
    let config =
        Config { lanes: vec![cores], ..Config::new("none", Method::Ring, StampSource::Kernel) };
    let error = Capture::open(config, &clock).err().unwrap();
    assert!(matches!(error, Error::NoSuchCore { core: 1_000_000, .. }), "{error}");
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
