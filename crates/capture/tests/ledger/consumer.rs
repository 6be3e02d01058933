//! Packets that were captured and not written: the consumer failed, or its limit was reached.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::thread;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{CapturedPacket, Config, Cores, Error, Limit, Sink};

use crate::bed::{Wire, assert_accounted, config, limited, pairs, shareable_pairs};

const COUNT: u32 = 1000;

/// Fails at packet number `at`, counted from 0, and reports `lost` earlier packets as lost.
struct Failing {
    at: u64,
    taken: u64,
    lost: u64,
}

impl Sink for Failing {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        if self.taken == self.at {
            return Err(Error::NoSuchInterface("the disk".to_owned()));
        }
        self.taken += 1;
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

#[test]
fn packets_after_and_before_a_failure_are_counted() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in pairs() {
        let capture = wire.open(config(pair));
        wire.sender.send_numbered(COUNT);
        let (ledger, outcome) = wire.run(capture, &mut Failing { at: 300, taken: 0, lost: 20 });
        let name = format!("{} {}", pair.method, pair.stamp);
        assert!(outcome.is_err(), "{name}");
        assert_accounted(&name, wire.sender.sent, &ledger);
        assert_eq!((ledger.delivered, ledger.consumer_dropped), (280, 720), "{name}: {ledger:?}");
    }
}

#[test]
fn packets_after_the_limit_are_counted() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in pairs() {
        let capture = wire.open(limited(pair, 300));
        wire.sender.send_numbered(COUNT);
        let (ledger, outcome) = wire.run(capture, &mut Failing { at: 300, taken: 0, lost: 0 });
        outcome.unwrap();
        let name = format!("{} {}", pair.method, pair.stamp);
        assert_accounted(&name, wire.sender.sent, &ledger);
        assert_eq!((ledger.delivered, ledger.surplus), (300, 700), "{name}: {ledger:?}");
    }
}

#[test]
fn several_lanes_have_one_ledger() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in shareable_pairs() {
        for (at, packets) in [(300, None), (COUNT.into(), Some(300))] {
            let lanes = vec![Cores::default(); 3];
            let limit = Limit { packets, duration: None };
            let capture = wire.open(Config { lanes, limit, ..config(pair) });
            wire.sender.send_numbered(COUNT);
            let (ledger, outcome) = wire.run(capture, &mut Failing { at, taken: 0, lost: 0 });
            let name = format!("{} {}", pair.method, pair.stamp);
            assert_eq!(outcome.is_err(), packets.is_none(), "{name}: {outcome:?}");
            assert_accounted(&name, wire.sender.sent, &ledger);
            assert_eq!(ledger.delivered, 300, "{name}: {ledger:?}");
        }
    }
}

/// Reads the start of a FIFO, and closes it.
fn read_some(path: &Path) -> Vec<u8> {
    let mut some = vec![0; 20_000];
    std::fs::File::open(path).unwrap().read_exact(&mut some).unwrap();
    some
}

#[test]
fn packets_that_cannot_be_written_are_counted() {
    let Some(mut wire) = Wire::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    for pair in pairs() {
        let name = format!("{} {}", pair.method, pair.stamp);
        let path = folder.path().join(&name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let capture = wire.open(config(pair));
        wire.sender.send_numbered(COUNT);
        let facts = capture.facts().clone();
        let (ledger, outcome, some) = thread::scope(|scope| {
            let reading = scope.spawn(|| read_some(&path));
            let provenance = Provenance::of(&facts, 0);
            let mut writer = Writer::create(&path, &facts, provenance).unwrap();
            let (ledger, outcome) = wire.run(capture, &mut writer);
            (ledger, outcome, reading.join().unwrap())
        });
        assert!(matches!(outcome, Err(Error::Write { .. })), "{name}: {outcome:?}");
        assert_accounted(&name, wire.sender.sent, &ledger);
        assert!(ledger.consumer_dropped > 0, "{name}: {ledger:?}");
        // Packets that were read count as delivered.
        let begun = folder.path().join(format!("{name} begun"));
        std::fs::write(&begun, some).unwrap();
        let mut reader = Reader::open(&begun).unwrap();
        let mut read = 0;
        while let Ok(Some(_)) = reader.next_packet() {
            read += 1;
        }
        assert!(0 < read && read <= ledger.delivered, "{name}: {read} {ledger:?}");
    }
}
