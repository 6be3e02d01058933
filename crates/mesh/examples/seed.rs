//! Fills the folder of a controller with a day of results, for tests of the page: what two points would have
//! seen goes through the collector, as if probes had delivered it.
//!
//! Usage: `seed FOLDER [PATHS]`, and then `wirestamp controller --folder FOLDER`. So many more paths have the same day
//! each, in a mesh of eleven sites; a hundred take 1.6 gigabytes.

#![expect(clippy::cast_possible_truncation, reason = "delays are far below 2^52 ns")]
#![expect(clippy::cast_precision_loss, reason = "and so are seconds of a day")]

use std::error::Error;
use std::f64::consts::TAU;
use std::net::SocketAddr;
use std::path::{self, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_mesh::Name;
use wirestamp_mesh::collector::{Collector, Results};
use wirestamp_mesh::controller::{Change, TaskStore};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};
use wirestamp_mesh::task::Task;
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// What is told at once, in seconds: no packet is under way at the end of it.
const BATCH: i64 = 600;

/// Packets a second.
const RATE: i64 = 4;

/// Seconds in which any machine makes all of it.
const MAKING: i64 = 300;

/// The mesh of the paths that are more of the same.
const SITES: usize = 11;

/// A path whose packets are made up.
struct Path {
    name: &'static str,
    /// Its points.
    ends: [&'static str; 2],
    /// How far back its results reach, in seconds.
    age: i64,
    /// Delay without any queue, and what queues add in the mean when it is worst, in nanoseconds.
    least: f64,
    queues: f64,
    /// Whether packets are lost, doubled and overtaken, and a capture loses some.
    is_bad: bool,
    /// How far the second machine's clock may be off, in nanoseconds; none if nobody keeps it.
    error: Option<i64>,
}

const PATHS: [Path; 3] = [
    Path {
        name: "backbone",
        ends: ["roof/eth0", "cellar/eth1"],
        age: DAY,
        least: 8e6,
        queues: 2e6,
        is_bad: true,
        error: Some(40_000),
    },
    Path {
        name: "uplink",
        ends: ["cellar/eth1", "garden/wlan0"],
        age: HOUR / 2,
        least: 2e6,
        queues: 3e5,
        is_bad: false,
        error: None,
    },
    Path {
        name: "ring",
        ends: ["garden/eth0", "roof/eth0"],
        age: HOUR,
        least: 40_000.0,
        queues: 3e3,
        is_bad: false,
        error: Some(90_000),
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: seed FOLDER [PATHS]")?);
    let paths = arguments.next().map_or(Ok(0), |paths| paths.parse())?;
    std::fs::create_dir_all(&folder)?;
    let plan = TaskStore::open(&folder.join("plan.sqlite"))?;
    let mut now = Timestamp::from_second(Timestamp::now().as_second())?;
    if paths > 0 {
        // They take a while to make, and are to be recent when they are looked at.
        now += SignedDuration::from_secs(MAKING);
    }
    let results = Results::open(&folder.join("results.sqlite"))?;
    let collector = Arc::new(Collector::new(results, plan.subscribe()));
    for path in &PATHS {
        let made = now - SignedDuration::from_secs(path.age);
        let [from, to] = path.ends;
        let measured = json!({"name": path.name, "measure": "passive-delay", "from": from, "to": to, "codec": "g711"});
        let task = enter(&plan, made, measured)?;
        fill(&collector, path, task, now.as_second())?;
    }
    enter(&plan, now, json!({"name": "all", "measure": "volume", "at": "roof/eth0"}))?;
    plan.end(&"ring".parse()?, now)?;
    drop(collector);
    let made = now - SignedDuration::from_secs(DAY);
    copy(&folder.join("results.sqlite"), &plan, made, paths)
}

/// Enters more paths, and gives each the results of the first task.
fn copy(
    results: &path::Path,
    plan: &TaskStore,
    made: Timestamp,
    paths: usize,
) -> Result<(), Box<dyn Error>> {
    let database = Connection::open(results)?;
    // Nobody needs it behind a crash.
    database.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         CREATE TEMP TABLE day AS SELECT * FROM window WHERE task = 1;
         CREATE TEMP TABLE shapes AS SELECT * FROM histogram WHERE task = 1;",
    )?;
    let ends = (0..SITES).flat_map(|from| (0..SITES).map(move |to| (from, to)));
    for (from, to) in ends.filter(|(from, to)| from != to).take(paths) {
        let name = format!("site-{from}-to-{to}");
        let [from, to] = [from, to].map(|site| format!("site-{site}/eth0"));
        let path = json!({"name": name, "measure": "passive-delay", "from": from, "to": to});
        let task = enter(plan, made, path)?.cast_signed();
        for (one, all) in [("day", "window"), ("shapes", "histogram")] {
            database.execute(&format!("UPDATE {one} SET task = ?"), [task])?;
            database.execute(&format!("INSERT INTO {all} SELECT * FROM {one}"), [])?;
        }
        // Hours that are over are files already.
        let task_row =
            "INSERT INTO task SELECT ?1, settled_until, late, settled_until / ?2 * ?2 FROM task
                        WHERE number = 1";
        database.execute(task_row, params![task, HOUR * SECOND])?;
    }
    Ok(())
}

fn enter(plan: &TaskStore, made: Timestamp, task: Value) -> Result<u64, Box<dyn Error>> {
    let task: Task = serde_json::from_value(task)?;
    let (Change::Created(number) | Change::Unchanged(number)) = plan.enter(&task, made)?;
    Ok(number)
}

/// Delivers what passed a path until a time, in seconds since 1970.
fn fill(
    collector: &Arc<Collector>,
    path: &Path,
    task: u64,
    until: i64,
) -> Result<(), Box<dyn Error>> {
    let probes = path.ends.map(|end| end.split('/').next().unwrap_or_default().parse::<Name>());
    let [first, second] = probes;
    let first = collector.open(&first?, (task, 0), (1, 1))?;
    let second = collector.open(&second?, (task, 1), (1, 1))?;
    let mut rng = Rng::with_seed(task);
    let begin = until - path.age;
    for (number, from) in (1..).zip((begin..until).step_by(usize::try_from(BATCH)?)) {
        let (sent, received, missed) = passed(path, &mut rng, from);
        let begin = (from == begin).then_some(Time::from_nanos((from - 1) * SECOND));
        let complete_until = Time::from_nanos((from + BATCH) * SECOND);
        let seen = |machine, error: Option<i64>, observations, missed| {
            let clock = MachineClock { machine: [machine; 16], error: error.map(Span::from_nanos) };
            ObservationBatch { observations, missed, complete_until, begin, clock }.encode()
        };
        first.take(number, &seen(1, Some(30_000), sent, Vec::new()))?;
        second.take(number, &seen(2, path.error, received, missed))?;
    }
    Ok(())
}

/// What both points see of a stretch of time, and what the capture at the second loses.
fn passed(
    path: &Path,
    rng: &mut Rng,
    from: i64,
) -> (Vec<Observation>, Vec<Observation>, Vec<CaptureLoss>) {
    let (mut sent, mut received, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for packet in 0..BATCH * RATE {
        let left = from * SECOND + packet * SECOND / RATE;
        let id = from * RATE + packet;
        sent.push(observation(id, left));
        let load = load(left / SECOND);
        let queue = -path.queues * load * (1.0 - rng.f64()).ln();
        let delay = (path.least + queue) as i64;
        let chance = if path.is_bad { rng.u32(..10_000) } else { u32::MAX };
        match chance {
            // When it is busy.
            0..400 if load > 0.9 => {}
            500 => {
                let around = Span::from_millis(100);
                let time = Time::from_nanos(left + delay);
                missed.push(CaptureLoss { from: time - around, until: time + around, packets: 1 });
            }
            501..503 => received.extend([delay, delay + 1000].map(|it| observation(id, left + it))),
            // It is overtaken by the next.
            503..506 if packet < BATCH * RATE - 9 => {
                received.push(observation(id, left + delay + SECOND / RATE));
            }
            _ => received.push(observation(id, left + delay)),
        }
    }
    received.sort_by_key(|it| it.stamp.utc);
    (sent, received, missed)
}

/// How busy a path is, from 0 to 1: days have busy hours, and hours a rush.
fn load(second: i64) -> f64 {
    let of_day = (second % DAY) as f64 / DAY as f64;
    let of_hour = (second % HOUR) as f64 / HOUR as f64;
    let rush = (-((of_hour - 0.5) * 30.0).powi(2)).exp();
    0.35 - 0.25 * (of_day * TAU).cos() + 0.4 * rush
}

fn observation(id: i64, nanos: i64) -> Observation {
    let end = SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(100) },
    }
}
