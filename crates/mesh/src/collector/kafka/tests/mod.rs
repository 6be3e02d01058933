//! Probes, a log that loses, repeats and delays records, and collectors between which tasks move, all of which restart at
//! any time: the stored results are those of a direct delivery to one collector.

mod moves;
mod shards;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::Value;
use tokio::sync::watch;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId, Shard};

use super::intake::Intake;
use super::positions::Positions;
use crate::collector::{Collector, Results, SpoolOrigin, TaskEpochs};
use crate::controller::SimulatedPlacement;
use crate::kafka::partition;
use crate::kafka::v1::record::What;
use crate::kafka::v1::{Answer, Dropped, Inquiry, Part, Record};
use crate::probe::kafka::{Outbox, Reaction};
use crate::probe::{ChannelName, SharedSpool};
use crate::protocol::{Count, Counts, MachineClock, ObservationBatch};
use crate::spool::{Batch, Spool};
use crate::task::{Task, TaskRecord, Tasks};

const SECOND: i64 = 1_000_000_000;
const BEGIN: i64 = 1_700_000_000 * SECOND;

/// A packet every 50 ms for six seconds, in batches of 250 ms. Batches without packets follow.
const PACKETS: i64 = 120;
const EACH: i64 = 50_000_000;
const BATCH: i64 = 250_000_000;
const BATCHES: usize = 48;

/// The spools of the second point have dropped this batch.
const DROPPED: (u32, usize) = (1, 10);

/// The first packet that the capture of the second point misses. Before it, packets are lost on the path. No packet can
/// be one of both.
const FIRST_MISSED: i64 = 90;
const LAST_LOST: i64 = 50;

const PARTITIONS: u32 = 2;
const NAMES: [&str; 2] = ["roof", "cellar"];

/// Number of the task that counts. The others are the shards of the task that measures delay.
const VOLUME: u64 = 2;

/// Numbers of the shards of the task that measures delay.
fn shards(count: u16) -> impl Iterator<Item = u64> {
    (0..count).map(|shard| if shard == 0 { 1 } else { u64::from(shard) + VOLUME })
}

/// Probes and their channels.
fn channels(count: u16) -> Vec<(usize, ChannelName)> {
    let point = |task, point| (point as usize, ChannelName { task, point });
    let delay = shards(count).flat_map(|task| [point(task, 0), point(task, 1)]);
    delay.chain([point(VOLUME, 0)]).collect()
}

fn tasks(count: u16) -> watch::Receiver<Arc<Tasks>> {
    let delay = r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0","shards":N}"#;
    let delay = delay.replace('N', &count.to_string());
    let volume = r#"{"name":"v","measure":"volume","at":"roof/eth0"}"#;
    let record = |text: &str, shard| {
        let mut task: Task = serde_json::from_str(text).unwrap();
        task.shard = shard;
        TaskRecord { task, made: Timestamp::UNIX_EPOCH, ended: None }
    };
    let delay = shards(count).zip(0..).map(|(number, shard)| (number, record(&delay, shard)));
    let tasks: Tasks = delay.chain([(VOLUME, record(volume, 0))]).collect();
    // A receiver keeps the last value.
    watch::channel(Arc::new(tasks)).1
}

fn observation(id: i64, nanos: i64) -> Observation {
    let port = 5004 + u16::try_from(id % 7).unwrap();
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], port));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// A batch of a channel: packets take 5 ms, and every tenth of the first and last ones is not observed at the second
/// point.
fn batch(name: ChannelName, nth: usize, shards: u16) -> Batch {
    let from = BEGIN + i64::try_from(nth).unwrap() * BATCH;
    let until = from + BATCH;
    let complete_until = Time::from_nanos(until);
    if name.task == VOLUME {
        let begin = Time::from_nanos(from).interval_begin(Span::from_secs(60));
        let count =
            Count { begin, packets: 3, bytes: 300, missed: 0, watched: Span::from_nanos(BATCH) };
        let body = Counts { counts: vec![count], complete_until }.encode();
        return Batch { items: 1, times: from..=until, body };
    }
    let time = |id: &i64| BEGIN + EACH * id + i64::from(name.point) * 5_000_000;
    let passes = |id: &i64| (from..until).contains(&time(id));
    let is_absent =
        |id: &i64| name.point == 1 && id % 10 == 0 && !(LAST_LOST..FIRST_MISSED).contains(id);
    let shard = Shard::new(u16::try_from(name.task.saturating_sub(VOLUME)).unwrap(), shards);
    let is_of_it = |it: &Observation| shard.unwrap().has(it.flow.shard_hash());
    let observations = (0..PACKETS).filter(|id| passes(id) && !is_absent(id));
    let observations: Vec<_> =
        observations.map(|id| observation(id, time(&id))).filter(is_of_it).collect();
    // Captures do not know the flows of what they missed.
    let missed = (FIRST_MISSED..PACKETS).filter(|id| passes(id) && is_absent(id)).count() as u64;
    let [begin, end] = [from, until].map(Time::from_nanos);
    let missed = CaptureLoss { from: begin, until: end, packets: missed };
    let items = observations.len() as u64;
    let seen = ObservationBatch {
        observations,
        missed: Some(missed).into_iter().filter(|it| it.packets > 0).collect(),
        complete_until,
        begin: (nth == 0).then_some(Time::from_nanos(from - SECOND)),
        clock: MachineClock { machine: [7; 16], error: None },
        answers: None,
    };
    Batch { items, times: from..=until, body: seen.encode() }
}

/// Rows of all result tables.
fn rows(file: &Path) -> Vec<String> {
    let database = Connection::open(file).unwrap();
    let mut rows = Vec::new();
    for table in ["window", "histogram", "count", "task"] {
        let mut statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let values: Vec<Value> = (0..columns).map(|it| row.get(it).unwrap()).collect();
            Ok(format!("{table} {values:?}"))
        };
        rows.extend(statement.query_map([], row).unwrap().map(Result::unwrap));
    }
    rows
}

/// Number of simulated schedules; `WIRESTAMP_SEEDS` sets more.
fn seeds() -> u64 {
    std::env::var("WIRESTAMP_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(200)
}

fn folder() -> tempfile::TempDir {
    // Databases in memory are fast.
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Stores the results of a direct delivery of tasks with one shard. Returns the times before which those of the tasks
/// are final.
fn deliver_directly(file: &Path) -> [Time<wirestamp_clock::Utc>; 2] {
    let collector = Arc::new(Collector::new(Results::open(file).unwrap(), tasks(1)));
    let channels = channels(1).into_iter().map(|(probe, name)| {
        let origin = SpoolOrigin { spool: 7, first: 1, instance: 9 };
        let probe = NAMES[probe].parse().unwrap();
        (name, collector.open(&probe, (name.task, name.point), origin).unwrap())
    });
    let channels: Vec<_> = channels.collect();
    for nth in 0..BATCHES {
        for (name, channel) in &channels {
            let (number, batch) = (nth as u64 + 1, batch(*name, nth, 1));
            if (name.point, nth) == DROPPED {
                let until = *batch.times.end();
                channel.give_up(&(number..=number), until, batch.items).unwrap();
            } else {
                channel.take(number, &batch.body).unwrap();
            }
        }
    }
    [1, 2].map(|task| collector.settled_until(task).unwrap())
}

/// A partition: the offset of its first record, and the records.
#[derive(Default)]
struct Log {
    first: usize,
    records: Vec<(usize, Record)>,
}

struct Reading {
    intake: Intake,
    next: Option<usize>,
}

struct Store {
    folder: PathBuf,
    /// What the controller sent to it last.
    tasks: watch::Sender<Arc<Tasks>>,
    epochs: watch::Sender<Arc<TaskEpochs>>,
    running: Option<Running>,
}

struct Running {
    collector: Arc<Collector>,
    positions: Positions,
    readings: Vec<Reading>,
}

struct Sender {
    folder: PathBuf,
    spool: Option<SharedSpool>,
    /// The next answer that it reads.
    answer: usize,
}

struct World {
    _folder: tempfile::TempDir,
    rng: Rng,
    now: Instant,
    /// Shards of the task that measures delay.
    shards: u16,
    channels: Vec<(usize, ChannelName)>,
    logs: Vec<Log>,
    answers: Vec<Answer>,
    stores: Vec<Store>,
    controller: SimulatedPlacement,
    senders: Vec<Sender>,
    /// Epochs that the probes use.
    epochs: BTreeMap<ChannelName, u64>,
    sessions: BTreeMap<ChannelName, (u64, Option<Outbox>)>,
    held: BTreeMap<ChannelName, usize>,
}

impl World {
    /// All tasks are at the first collector.
    fn new(seed: u64, collectors: usize, shards: u16) -> Self {
        let folder = folder();
        let store = |at: usize| {
            let all = if at == 0 { tasks(shards).borrow().clone() } else { Arc::default() };
            let folder = folder.path().join(format!("collector{at}"));
            std::fs::create_dir(&folder).unwrap();
            let (tasks, epochs) = (watch::Sender::new(all), watch::Sender::default());
            Store { folder, tasks, epochs, running: None }
        };
        let senders =
            NAMES.map(|name| Sender { folder: folder.path().join(name), spool: None, answer: 0 });
        let channels = channels(shards);
        let all = Arc::clone(&tasks(shards).borrow());
        let controller = SimulatedPlacement::new(folder.path(), all, collectors);
        let mut world = Self {
            shards,
            rng: Rng::with_seed(seed),
            now: Instant::now(),
            logs: (0..PARTITIONS).map(|_| Log::default()).collect(),
            answers: Vec::new(),
            stores: (0..collectors).map(store).collect(),
            controller,
            senders: senders.into(),
            epochs: channels.iter().map(|(_, name)| (*name, 0)).collect(),
            sessions: channels.iter().map(|(_, name)| (*name, (0, None))).collect(),
            held: channels.iter().map(|(_, name)| (*name, 0)).collect(),
            channels,
            _folder: folder,
        };
        (0..collectors).for_each(|at| world.restart_collector(at));
        (0..NAMES.len()).for_each(|probe| world.restart_probe(probe));
        world
    }

    fn restart_collector(&mut self, at: usize) {
        let Store { folder: path, tasks, epochs, running } = &mut self.stores[at];
        *running = None;
        let results = Results::open(&path.join("results.sqlite")).unwrap();
        let collector = Collector::new(results, tasks.subscribe());
        let collector = Arc::new(collector.with_epochs(epochs.subscribe()));
        collector.kafka_stats().count(|it| it.is_reading = true);
        let positions = Positions::open(&path.join("kafka.sqlite")).unwrap();
        let reading = |_| {
            let room = 3000 * usize::from(self.shards);
            let intake = Intake::new(Arc::clone(&collector), room);
            Reading { intake, next: None }
        };
        let readings = (0..PARTITIONS).map(reading).collect();
        *running = Some(Running { collector, positions, readings });
    }

    /// Also with a clock that was set back: the numbers of sessions begin again.
    fn restart_probe(&mut self, probe: usize) {
        let sender = &mut self.senders[probe];
        sender.spool = None;
        sender.spool = Some(SharedSpool::new(Spool::open(&sender.folder, 1 << 30).unwrap()));
        sender.answer = self.answers.len();
        for (_, name) in self.channels.iter().filter(|(of, _)| *of == probe) {
            self.sessions.insert(*name, (0, None));
        }
    }

    fn hold(&mut self, (probe, name): (usize, ChannelName)) {
        let nth = self.held[&name];
        if nth < BATCHES {
            let spool = self.senders[probe].spool.as_ref().unwrap();
            let whole = batch(name, nth, self.shards);
            let stored = if (name.point, nth) == DROPPED { whole.dropped() } else { whole };
            spool.append(&[(name, stored)]).unwrap();
            self.held.insert(name, nth + 1);
        }
    }

    /// Appends what a channel sends. Faults: the answer of the broker is lost, with or without the records, or the
    /// records are appended twice.
    fn send(&mut self, (probe, name): (usize, ChannelName), has_faults: bool) {
        let spool = self.senders[probe].spool.as_ref().unwrap();
        let (newest, outbox) = self.sessions.get_mut(&name).unwrap();
        let outbox = outbox.get_or_insert_with(|| {
            *newest += 1;
            let epoch = (self.stores.len() > 1).then_some(self.epochs[&name]);
            Outbox::open(spool, name, epoch, *newest, self.now).unwrap()
        });
        let records = outbox.pending(spool, self.now).unwrap();
        let log = &mut self.logs[partition(name.task, PARTITIONS) as usize];
        let fault = if has_faults { self.rng.u8(0..20) } else { 9 };
        let copies = match fault {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            log.records.extend(records.iter().map(|it| (probe, it.clone())));
        }
        if fault <= 1 || fault == 3 {
            self.sessions.get_mut(&name).unwrap().1 = None;
        }
    }

    /// A collector reads some records of a partition, and answers.
    fn read(&mut self, at: usize, number: u32, most: usize, has_faults: bool) {
        let log = &self.logs[number as usize];
        let end = log.first + log.records.len();
        let Running { positions, readings, .. } = self.stores[at].running.as_mut().unwrap();
        let Reading { intake, next } = &mut readings[number as usize];
        let stored = || positions.needed(number, PARTITIONS).unwrap();
        let from = next.or_else(|| stored().map(|it| usize::try_from(it).unwrap())).unwrap_or(end);
        // An offset that does not exist any more.
        let from = if from < log.first || from > end { log.first } else { from };
        let until = end.min(from + most);
        for offset in from..until {
            let (probe, record) = log.records[offset - log.first].clone();
            if !intake.is_own(record.task) {
                continue;
            }
            let probe = NAMES[probe].parse().unwrap();
            intake.take(positions, i64::try_from(offset).unwrap(), &probe, record).unwrap();
        }
        *next = Some(until);
        intake.advance_all(positions).unwrap();
        let answers = intake.answers(0);
        match if has_faults { self.rng.u8(0..12) } else { 9 } {
            // Appended, but the collector receives an error; not appended; or appended and lost.
            0 => {
                intake.answer_again();
                self.answers.extend(answers);
            }
            1 => intake.answer_again(),
            2 => {}
            _ => self.answers.extend(answers),
        }
        if !has_faults || self.rng.bool() {
            let needed = intake.needed(i64::try_from(until).unwrap());
            positions.set_needed(number, PARTITIONS, needed).unwrap();
        }
    }

    fn receive(&mut self, probe: usize, most: usize) {
        for _ in 0..most {
            let Some(answer) = self.answers.get(self.senders[probe].answer).cloned() else {
                return;
            };
            self.senders[probe].answer += 1;
            let name = ChannelName { task: answer.task, point: answer.point };
            if !self.channels.contains(&(probe, name)) {
                continue;
            }
            let spool = self.senders[probe].spool.as_ref().unwrap();
            let (newest, outbox) = self.sessions.get_mut(&name).unwrap();
            let Some(session) = outbox else { continue };
            if let Reaction::Restart(above) = session.receive(spool, &answer, self.now).unwrap() {
                (*newest, *outbox) = (above.max(*newest), None);
            }
        }
    }

    /// A random step, or fault.
    fn step(&mut self) {
        let channel = self.channels[self.rng.usize(0..self.channels.len())];
        let number = self.rng.u32(0..PARTITIONS);
        let probe = self.rng.usize(0..NAMES.len());
        let at = self.rng.usize(0..self.stores.len());
        match self.rng.u8(0..100) {
            0..30 => self.hold(channel),
            30..55 => self.send(channel, true),
            55..75 => {
                let most = self.rng.usize(0..20);
                self.read(at, number, most, true);
            }
            75..90 => {
                let most = self.rng.usize(0..20);
                self.receive(probe, most);
            }
            90..93 => self.now += Duration::from_secs(self.rng.u64(1..40)),
            93..95 => self.restart_collector(at),
            95..97 => self.restart_probe(probe),
            // The partition is lost, and begins again.
            97 => self.logs[number as usize] = Log::default(),
            // Its newest records are lost.
            98 => {
                let log = &mut self.logs[number as usize];
                log.records.truncate(self.rng.usize(0..=log.records.len()));
            }
            // Its oldest records are deleted.
            _ => {
                let log = &mut self.logs[number as usize];
                let count = self.rng.usize(0..=log.records.len());
                log.records.drain(..count);
                log.first += count;
            }
        }
    }

    /// A round without faults.
    fn round(&mut self) {
        self.now += Duration::from_secs(1);
        for channel in self.channels.clone() {
            self.hold(channel);
            self.send(channel, false);
        }
        for at in 0..self.stores.len() {
            (0..PARTITIONS).for_each(|it| self.read(at, it, usize::MAX / 2, false));
        }
        (0..NAMES.len()).for_each(|it| self.receive(it, usize::MAX));
    }

    fn rows(&mut self) -> Vec<String> {
        self.stores[0].running = None;
        let rows = rows(&self.stores[0].folder.join("results.sqlite"));
        self.restart_collector(0);
        rows
    }

    fn collector(&self, at: usize) -> &Collector {
        &self.stores[at].running.as_ref().unwrap().collector
    }

    /// Whether the current collectors of the tasks have all results.
    fn is_settled(&self, until: [Time<wirestamp_clock::Utc>; 2]) -> bool {
        let [delay, volume] = until;
        self.histories().into_iter().all(|(task, history)| {
            let current = self.collector(*history.last().unwrap());
            let until = if task == VOLUME { volume } else { delay };
            current.settled_until(task).unwrap() == until
        })
    }

    /// Collectors of each task by epoch.
    fn histories(&self) -> BTreeMap<u64, Vec<usize>> {
        let tasks = self.channels.iter().map(|(_, name)| name.task);
        tasks.map(|task| (task, self.controller.history(task))).collect()
    }
}

#[test]
fn results_are_those_of_direct_delivery_whatever_is_lost() {
    let folder = folder();
    let file = folder.path().join("results.sqlite");
    let until = deliver_directly(&file);
    let expected = rows(&file);
    let mut counted = BTreeMap::new();
    for seed in 0..seeds() {
        let mut world = World::new(seed, 1, 1);
        (0..600).for_each(|_| world.step());
        let mut rounds = 0;
        while !world.is_settled(until) {
            world.round();
            rounds += 1;
            assert!(rounds < 400, "seed {seed}: nothing is settled any more");
        }
        for (what, count) in world.collector(0).kafka_stats().counts() {
            *counted.entry(what).or_insert(0) += count;
        }
        assert_eq!(world.rows(), expected, "seed {seed}");
    }
    // All of it has happened.
    for what in ["taken", "duplicates", "gaps", "deferred", "stale"] {
        assert!(counted[what] > 0, "{what}: {counted:?}");
    }
    println!("{counted:?}");
}

#[test]
fn records_of_others_change_nothing() {
    let mut world = World::new(0, 1, 1);
    let Running { collector, positions, readings } = world.stores[0].running.as_mut().unwrap();
    let intake = &mut readings[1].intake;
    let inquiry = Some(What::Inquiry(Inquiry { sent: 0 }));
    let begun = Record { spool: 5, task: 1, first: 1, instance: 3, ..Record::default() };
    let record = Record { session: 8, what: inquiry, ..begun };
    let mut take = |probe: &str, record: Record| {
        intake.take(positions, 0, &probe.parse().unwrap(), record).unwrap();
        intake.answers(0)
    };
    // Of a probe that observes the other point, and of a task that does not exist.
    assert_eq!(take("cellar", record.clone()), []);
    assert_eq!(take("roof", Record { task: 9, ..record.clone() }), []);
    let counted = |what: &str| {
        let counts = collector.kafka_stats().counts();
        counts.iter().find(|(of, _)| *of == what).unwrap().1
    };
    assert_eq!(counted("refused"), 2);
    let answer = take("roof", record.clone());
    assert_eq!((answer[0].session, answer[0].next, answer[0].restart), (8, 1, false));
    // An earlier session must begin again, above this one.
    let answer = take("roof", Record { session: 7, ..record.clone() });
    assert_eq!((answer[0].session, answer[0].restart), (8, true));
    // Another spool in the same session.
    assert_eq!(take("roof", Record { spool: 6, ..record.clone() }), []);
    // A batch in parts, one of which is missing.
    let part = |number, begin, more, body: &[u8]| {
        let part = Part { number, begin, more, body: body.to_vec() };
        Record { what: Some(What::Part(part)), ..record.clone() }
    };
    let whole = batch(channels(1)[0].1, 0, 1).body;
    let (head, tail) = whole.split_at(9);
    assert_eq!(take("roof", part(1, 0, true, head)), []);
    assert_eq!(take("roof", part(1, 10, false, tail))[0].resend_from, Some(1));
    assert_eq!(take("roof", part(1, 0, true, head)), []);
    assert_eq!(take("roof", part(1, 9, false, tail)), []);
    assert_eq!(take("roof", part(3, 0, false, tail))[0].resend_from, Some(2));
    assert_eq!(take("roof", part(u64::MAX, 0, false, tail)), []);
    assert_eq!(["taken", "gaps", "unreadable"].map(counted), [1, 2, 1]);
}

/// Whatever a probe sends, the collector continues, and the other points are not affected.
#[test]
fn arbitrary_records_do_not_stop_the_collector() {
    let mut rng = Rng::with_seed(7);
    let mut world = World::new(0, 1, 1);
    let Running { positions, readings, .. } = world.stores[0].running.as_mut().unwrap();
    let intake = &mut readings[1].intake;
    let numbers = [0, 1, 2, 3, 100, i64::MAX.cast_unsigned(), u64::MAX];
    for offset in 0..5000 {
        let mut number = || numbers[rng.usize(0..numbers.len())];
        let [first, instance, session, one, other] = std::array::from_fn(|_| number());
        let (spool, point) = (number().cast_signed(), u32::try_from(number() % 3).unwrap());
        let (more, until) = (number() % 2 == 0, number().cast_signed());
        let what = match number() % 4 {
            0 => Some(What::Inquiry(Inquiry { sent: one })),
            1 => Some(What::Part(Part { number: one, begin: other, more, body: vec![9; 3] })),
            2 => Some(What::Dropped(Dropped { first: one, last: other, until, packets: first })),
            _ => None,
        };
        let task = 1 + number() % 2;
        let settled_until = (number() % 2 == 0).then_some(until);
        let (epoch, begin) = (settled_until.map(|_| number() % 2), Some(until));
        let record = Record {
            spool,
            task,
            point,
            first,
            instance,
            session,
            what,
            epoch,
            settled_until,
            begin,
        };
        intake.take(positions, offset, &"roof".parse().unwrap(), record).unwrap();
        intake.advance_all(positions).unwrap();
        intake.answers(0);
        assert!(intake.needed(offset + 1) <= offset + 1);
    }
    // The other point.
    let record = Record { spool: 5, task: 1, point: 1, first: 1, session: 1, ..Record::default() };
    let inquiry = Record { what: Some(What::Inquiry(Inquiry { sent: 0 })), ..record };
    intake.take(positions, 5000, &"cellar".parse().unwrap(), inquiry).unwrap();
    assert_eq!(
        intake.answers(0).iter().map(|it| (it.point, it.next)).collect::<Vec<_>>(),
        [(1, 1)]
    );
}
