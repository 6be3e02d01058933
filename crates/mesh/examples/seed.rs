//! Fills the folder of a controller with a day of results, for tests of the page. Synthetic observations of two points
//! pass through the collector as if probes had delivered them.
//!
//! Usage: `seed FOLDER [PATHS]`, then `wirestamp controller --folder FOLDER`. PATHS is the number of additional paths
//! with the same day, in a mesh of eleven sites. A hundred paths need 1.6 GB.

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
use wirestamp_mesh::collector::{Collector, Results, SpoolOrigin};
use wirestamp_mesh::controller::{Change, TaskStore};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};
use wirestamp_mesh::task::Task;
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// Length of a batch, in seconds. No packet is in transit at its end.
const BATCH: i64 = 600;

/// Packets per second.
const RATE: i64 = 4;

/// Max time to generate the data, in seconds.
const MAKING: i64 = 300;

/// Sites of the additional paths.
const SITES: usize = 11;

/// A path with synthetic packets.
struct Path {
    name: &'static str,
    /// Its points.
    ends: [&'static str; 2],
    /// Age of its first result, in seconds.
    age: i64,
    /// Delay without queues, and max mean delay of queues, in nanoseconds.
    least: f64,
    queues: f64,
    /// Whether packets are lost, duplicated and reordered, also by the capture.
    is_bad: bool,
    /// Max error of the second machine's clock, in nanoseconds; none if it is not synchronised.
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
        // Generation takes time, and the results must be recent afterwards.
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

/// Creates additional paths with copies of the first task's results.
fn copy(
    results: &path::Path,
    plan: &TaskStore,
    made: Timestamp,
    paths: usize,
) -> Result<(), Box<dyn Error>> {
    let database = Connection::open(results)?;
    // The data need not survive a crash.
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
        // Complete hours are archived already.
        let task_row = "INSERT INTO task (number, settled_until, late, archived_until)
                        SELECT ?1, settled_until, late, settled_until / ?2 * ?2 FROM task
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

/// Delivers the packets of a path up to a time, in seconds since 1970.
fn fill(
    collector: &Arc<Collector>,
    path: &Path,
    task: u64,
    until: i64,
) -> Result<(), Box<dyn Error>> {
    let probes = path.ends.map(|end| end.split('/').next().unwrap_or_default().parse::<Name>());
    let [first, second] = probes;
    let origin = SpoolOrigin { spool: 1, first: 1, instance: 0 };
    let first = collector.open(&first?, (task, 0), origin)?;
    let second = collector.open(&second?, (task, 1), origin)?;
    let mut rng = Rng::with_seed(task);
    let begin = until - path.age;
    for (number, from) in (1..).zip((begin..until).step_by(usize::try_from(BATCH)?)) {
        let (sent, received, missed) = passed(path, &mut rng, from);
        let begin = (from == begin).then_some(Time::from_nanos((from - 1) * SECOND));
        let complete_until = Time::from_nanos((from + BATCH) * SECOND);
        let seen = |machine, error: Option<i64>, observations, missed| {
            let clock = MachineClock { machine: [machine; 16], error: error.map(Span::from_nanos) };
            let answers = None;
            ObservationBatch { observations, missed, complete_until, begin, clock, answers }
                .encode()
        };
        first.take(number, &seen(1, Some(30_000), sent, Vec::new()))?;
        second.take(number, &seen(2, path.error, received, missed))?;
    }
    Ok(())
}

/// Observations of both points in a time range, and losses of the second point's capture.
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
            // During high load.
            0..400 if load > 0.9 => {}
            500 => {
                let around = Span::from_millis(100);
                let time = Time::from_nanos(left + delay);
                missed.push(CaptureLoss { from: time - around, until: time + around, packets: 1 });
            }
            501..503 => received.extend([delay, delay + 1000].map(|it| observation(id, left + it))),
            // The next packet overtakes it.
            503..506 if packet < BATCH * RATE - 9 => {
                received.push(observation(id, left + delay + SECOND / RATE));
            }
            _ => received.push(observation(id, left + delay)),
        }
    }
    received.sort_by_key(|it| it.stamp.utc);
    (sent, received, missed)
}

/// Load of a path, from 0 to 1: each day has busy hours, and each hour a peak.
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
