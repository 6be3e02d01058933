//! Probes, a log that loses, repeats and delays records, and collectors between which tasks move, all of which restart at
//! any time: the stored results are those of a direct delivery to one collector.

mod moves;
mod shards;
mod world;

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
use world::{Running, Store, World};

const SECOND: i64 = 1_000_000_000;
/// Six seconds before the end of an hour.
const BEGIN: i64 = 1_700_002_794 * SECOND;

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

/// A batch of a channel: packets take 5 to 7 ms, and every tenth of the first and last ones is not observed at the second
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
    let delay = |id: &i64| 5_000_000 + id % 7 * 321_987;
    let time = |id: &i64| BEGIN + EACH * id + i64::from(name.point) * delay(id);
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
