//! What the kernel drops is told while the capture runs, with the time in which it was dropped, and
//! stands in the file.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::SystemTime;

use wirestamp_capture::file::{Provenance, Reader, Writer};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Config, Cores, Error, Ledger, Pair, Sink};
use wirestamp_clock::{Time, Utc};

use crate::bed::{self, Wire, assert_accounted, config, frame, pairs, shareable_pairs};

/// More than the smallest ring or queue of any method takes, libpcap's with several lanes included.
const ROUND: u32 = 20_000;
const ROUNDS: u32 = 3;

/// Takes the first packet of each round only when all of it was sent, and says when it has taken
/// what there is of it.
struct Rounds {
    /// Hangs up when all rounds were sent.
    sent: Receiver<()>,
    taken: Sender<()>,
    in_round: bool,
    /// The numbers of the packets, and the latest stamp of any.
    numbers: Vec<u32>,
    latest: Time<Utc>,
    told: Vec<CaptureLoss>,
    /// Packets that were handed over before drops that lie before their stamps.
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
        self.told.push(*missed);
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

/// When a frame was sent: after the first and before the second.
type Sent = (Time<Utc>, Time<Utc>);

fn now() -> Time<Utc> {
    SystemTime::now().try_into().unwrap()
}

fn send(sender: &mut bed::Sender, number: u32) -> Sent {
    let before = now();
    sender.send(&frame(number));
    (before, now())
}

/// What came of a capture that was overloaded several times.
struct Overload {
    ledger: Ledger,
    sent: Vec<Sent>,
    /// Which of the frames were captured.
    captured: Vec<bool>,
    told: Vec<CaptureLoss>,
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
        told: Vec::new(),
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
    let Rounds { numbers, told, too_early, writer, .. } = rounds;
    writer.finish(&ledger).unwrap();
    let mut captured = vec![false; sent.len()];
    numbers.iter().for_each(|&number| captured[number as usize] = true);
    Overload { ledger, sent, captured, told, too_early, in_file: read(&path) }
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
    /// When the frames were sent that were not captured.
    fn lost(&self) -> Vec<Sent> {
        let sent = self.sent.iter().zip(&self.captured);
        sent.filter(|(_, captured)| !**captured).map(|(&sent, _)| sent).collect()
    }

    fn check(&self, name: &str) {
        let Self { ledger, told, .. } = self;
        let lost = self.lost();
        let packets: u64 = told.iter().map(|missed| missed.packets).sum();
        assert_eq!(packets, ledger.kernel_dropped + ledger.left_behind, "{name}: {ledger:?}");
        assert!(packets > 0 && ledger.delivered > 0, "{name}: {ledger:?}");
        assert_eq!(lost.len() as u64, packets, "{name}");
        for sent in &lost {
            assert!(told.iter().any(|missed| covers(missed, sent)), "{name}: {sent:?}");
        }
        for missed in told {
            let covered = lost.iter().filter(|sent| covers(missed, sent)).count() as u64;
            assert!(
                covered >= missed.packets && missed.packets > 0,
                "{name}: {covered} {missed:?}"
            );
        }
        assert_eq!(self.in_file, *told, "{name}");
    }
}

fn small(pair: &Pair, lanes: usize) -> Config {
    let lanes = vec![Cores::default(); lanes];
    Config { ring_bytes: lanes.len() * (64 << 10), lanes, ..config(pair) }
}

#[test]
fn every_drop_is_told_once_with_a_time_that_covers_it() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in pairs() {
        let mut overload = overload(&mut wire, small(pair, 1));
        let name = format!("{} {}", pair.method, pair.stamp);
        overload.check(&name);
        overload.ledger.interface_dropped = 0; // a veth counts what AF_XDP had no room for too
        assert_accounted(&name, wire.sender.sent, &overload.ledger);
        assert_eq!(overload.too_early, 0, "{name}: {:?}", overload.told);
    }
}

#[test]
fn every_lane_tells_its_own_drops() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in shareable_pairs() {
        let overload = overload(&mut wire, small(pair, 3));
        let name = format!("{} {}", pair.method, pair.stamp);
        overload.check(&name);
        assert_accounted(&name, wire.sender.sent, &overload.ledger);
    }
}
