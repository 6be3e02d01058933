//! Kernel drops are reported during the capture, with their time interval, and are in the file.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::SystemTime;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Config, Cores, Error, Ledger, Pair, Sink};
use wirestamp_clock::{Time, Utc};

use crate::bed::{self, Wire, assert_accounted, config, frame, pairs, shareable_pairs};

/// More than fits into the smallest ring or queue of any method, including libpcap's with several lanes.
const ROUND: u32 = 20_000;
const ROUNDS: u32 = 3;

/// Takes the first packet of each round only when the whole round was sent, and signals the end of a round.
struct Rounds {
    /// Closed when all rounds were sent.
    sent: Receiver<()>,
    taken: Sender<()>,
    in_round: bool,
    /// The packet numbers, and the latest stamp.
    numbers: Vec<u32>,
    latest: Time<Utc>,
    reported: Vec<CaptureLoss>,
    /// Drops reported after packets with later stamps.
    too_early: u64,
    writer: Writer,
}

impl Sink for Rounds {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        if !self.in_round {
            self.in_round = true;
            let _ = self.sent.recv();
        }
        self.numbers.push(u32::from_be_bytes(*packet.bytes[42..].first_chunk().unwrap()));
        self.latest = self.latest.max(packet.stamp.utc);
        self.writer.packet(packet)
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.too_early += u64::from(missed.until < self.latest);
        self.reported.push(*missed);
        self.writer.missed(missed)
    }

    fn pause(&mut self) -> Result<(), Error> {
        if self.in_round {
            self.in_round = false;
            let _ = self.taken.send(());
        }
        self.writer.pause()
    }
}

/// Time at which a frame was sent: after the first and before the second.
type Sent = (Time<Utc>, Time<Utc>);

fn now() -> Time<Utc> {
    SystemTime::now().try_into().unwrap()
}

fn send(sender: &mut bed::Sender, number: u32) -> Sent {
    let before = now();
    sender.send(&frame(number));
    (before, now())
}

/// Result of a capture that was overloaded several times.
struct Overload {
    ledger: Ledger,
    sent: Vec<Sent>,
    /// Whether each frame was captured.
    captured: Vec<bool>,
    reported: Vec<CaptureLoss>,
    too_early: u64,
    in_file: Vec<CaptureLoss>,
}

fn overload(wire: &mut Wire, config: Config) -> Overload {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let capture = wire.open(config);
    let facts = capture.facts().clone();
    let (all_sent, sent) = mpsc::channel();
    let (taken, all_taken) = mpsc::channel();
    let mut rounds = Rounds {
        sent,
        taken,
        in_round: false,
        numbers: Vec::new(),
        latest: Time::from_nanos(0),
        reported: Vec::new(),
        too_early: 0,
        writer: Writer::create(&path, &facts, Provenance::of(&facts, 0)).unwrap(),
    };
    let mut sent = Vec::new();
    let ledger = wire.while_sending(capture, &mut rounds, |sender| {
        for round in 0..ROUNDS {
            let numbers = round * ROUND..(round + 1) * ROUND;
            sent.extend(numbers.map(|number| send(sender, number)));
            all_sent.send(()).unwrap();
            all_taken.recv().unwrap();
        }
        drop(all_sent);
    });
    let Rounds { numbers, reported, too_early, writer, .. } = rounds;
    writer.finish(&ledger).unwrap();
    let mut captured = vec![false; sent.len()];
    numbers.iter().for_each(|&number| captured[number as usize] = true);
    Overload { ledger, sent, captured, reported, too_early, in_file: read(&path) }
}

fn read(path: &Path) -> Vec<CaptureLoss> {
    let mut reader = Reader::open(path).unwrap();
    let mut missed = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        missed.extend(packet.missed);
    }
    missed.extend(reader.take_missed());
    missed
}

fn covers(missed: &CaptureLoss, &(before, after): &Sent) -> bool {
    missed.from <= after && before <= missed.until
}

impl Overload {
    /// Send times of the frames that were not captured.
    fn lost(&self) -> Vec<Sent> {
        let sent = self.sent.iter().zip(&self.captured);
        sent.filter(|(_, captured)| !**captured).map(|(&sent, _)| sent).collect()
    }

    fn check(&self, name: &str) {
        let Self { ledger, reported, .. } = self;
        let lost = self.lost();
        let packets: u64 = reported.iter().map(|missed| missed.packets).sum();
        assert_eq!(packets, ledger.kernel_dropped + ledger.left_behind, "{name}: {ledger:?}");
        assert!(packets > 0 && ledger.delivered > 0, "{name}: {ledger:?}");
        assert_eq!(lost.len() as u64, packets, "{name}");
        for sent in &lost {
            assert!(reported.iter().any(|missed| covers(missed, sent)), "{name}: {sent:?}");
        }
        for missed in reported {
            let covered = lost.iter().filter(|sent| covers(missed, sent)).count() as u64;
            assert!(
                covered >= missed.packets && missed.packets > 0,
                "{name}: {covered} {missed:?}"
            );
        }
        assert_eq!(self.in_file, *reported, "{name}");
    }
}

fn small(pair: &Pair, lanes: usize) -> Config {
    let lanes = vec![Cores::default(); lanes];
    Config { ring_bytes: lanes.len() * (64 << 10), lanes, ..config(pair) }
}

#[test]
fn every_drop_is_reported_once_in_its_interval() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in pairs() {
        let mut overload = overload(&mut wire, small(pair, 1));
        let name = format!("{} {}", pair.method, pair.stamp);
        overload.check(&name);
        overload.ledger.interface_dropped = 0; // a veth also counts AF_XDP drops
        assert_accounted(&name, wire.sender.sent, &overload.ledger);
        assert_eq!(overload.too_early, 0, "{name}: {:?}", overload.reported);
    }
}

#[test]
fn every_lane_reports_its_own_drops() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in shareable_pairs() {
        let overload = overload(&mut wire, small(pair, 3));
        let name = format!("{} {}", pair.method, pair.stamp);
        overload.check(&name);
        assert_accounted(&name, wire.sender.sent, &overload.ledger);
    }
}
