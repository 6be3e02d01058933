//! Synthetic observations of paths, from a seed: with loss, duplicates, reordering, identical packets, capture losses,
//! gaps, dropped and malformed batches, and clocks that are not always synchronised.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_mesh::collector::{
    Archive, Channel, Collector, Keep, Refused, ResultRange, Results, SpoolOrigin, Step,
};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};
use wirestamp_mesh::task::{Task, TaskRecord, Tasks};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

pub(crate) const MILLISECOND: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1000 * MILLISECOND;

/// Nothing is too old for the archive.
pub(crate) const KEEP: Keep = Keep { age: Duration::from_secs(100 * 365 * 86_400), bytes: None };

/// Begin of the packets: 2023-11-15T10:00:00Z.
const BEGIN: i64 = 1_700_042_400 * SECOND;

/// Time of a batch.
const BATCH: i64 = 5 * SECOND;

/// Time without packets after them. Then all results are final, and all batches are acknowledged.
const SILENCE: i64 = 60 * SECOND;

const PROBES: [&str; 2] = ["roof", "cellar"];

/// Number of the spool of each point.
pub(crate) const SPOOLS: [i64; 2] = [-71, 72];

/// What a probe delivers. Each has one number, from 1.
#[derive(Clone)]
pub(crate) enum Delivery {
    /// A message, which may be malformed.
    Batch(Vec<u8>),
    /// A dropped batch: end of its time in nanoseconds since 1970 (UTC), and its packets.
    Dropped(i64, u64),
}

/// Deliveries of both points of a path.
pub(crate) type Deliveries = [Vec<Delivery>; 2];

/// A task whose observations are archived. Its packets pass from `begin` on, in nanoseconds since 1970 (UTC), for some
/// seconds.
pub(crate) fn task(number: u64, begin: i64, seconds: i64) -> TaskRecord {
    let text = format!(
        r#"{{"name":"path-{number}","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0",
            "archive":"observations"}}"#
    );
    let task: Task = serde_json::from_str(&text).expect("a task");
    let at = |nanos: i64| Timestamp::from_nanosecond(nanos.into()).expect("a time");
    TaskRecord { task, made: at(begin), ended: Some(at(begin + seconds * SECOND)) }
}

fn observation(id: u64, flow: u16, nanos: i64, error: i64) -> Observation {
    let [source, destination] =
        [([192, 0, 2, 1], 5004 + flow), ([192, 0, 2, 2], 5004)].map(SocketAddr::from);
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id),
        flow: FlowKey { source, destination, protocol: 17 },
        length: 214,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(error) },
    }
}

/// Packets per second of a path.
fn rate(number: u64) -> i64 {
    match number % 100 {
        1 => 150,
        it if it % 10 == 2 => 20,
        _ => 3,
    }
}

/// Observations of both points, and times of packets that their captures lost.
fn passages(
    rng: &mut Rng,
    number: u64,
    (begin, seconds): (i64, i64),
) -> ([Vec<Observation>; 2], [Vec<i64>; 2]) {
    let (mut seen, mut lost) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let interval = SECOND / rate(number);
    // Some clocks are wrong: packets seem to arrive before they were sent.
    let base = if number % 7 == 3 { -5 * MILLISECOND } else { rng.i64(1..20) * MILLISECOND };
    let (mut time, mut id) = (begin, 0);
    while time < begin + seconds * SECOND {
        // Identical packets follow each other.
        if rng.u32(0..60) > 0 {
            id = rng.u64(..);
        }
        let flow = rng.u16(0..3);
        let error = rng.i64(10..90);
        let queued = if rng.u32(0..20) == 0 { rng.i64(0..80) } else { rng.i64(0..3) };
        let arrival = time + base + queued * MILLISECOND + rng.i64(0..MILLISECOND);
        let mut at = |point: usize, time: i64| seen[point].push(observation(id, flow, time, error));
        match rng.u32(0..1000) {
            0..12 => at(0, time),
            12..24 => {
                at(0, time);
                at(1, arrival);
                at(1, arrival + rng.i64(0..50 * MILLISECOND));
            }
            24..28 => {
                at(0, time);
                at(1, arrival);
                at(1, arrival + rng.i64(900..1300) * MILLISECOND);
            }
            // At the limit of the timeout.
            28..32 => {
                at(0, time);
                at(1, arrival + rng.i64(900..1200) * MILLISECOND);
            }
            32..36 => {
                at(0, time);
                lost[1].push(arrival);
            }
            36..40 => {
                at(1, arrival);
                lost[0].push(time);
            }
            _ => {
                at(0, time);
                at(1, arrival);
            }
        }
        time += rng.i64(interval / 2..interval * 3 / 2);
    }
    (seen, lost)
}

/// Deliveries of a path.
pub(crate) fn deliveries(seed: u64, number: u64, begin: i64, seconds: i64) -> Deliveries {
    let mut rng = Rng::with_seed(seed.wrapping_mul(1000) + number);
    let (seen, lost) = passages(&mut rng, number, (begin, seconds));
    let end = begin + seconds * SECOND;
    let mut points = [Vec::new(), Vec::new()];
    for (side, (mut seen, lost)) in seen.into_iter().zip(lost).enumerate() {
        seen.sort_by_key(|it| it.stamp.utc);
        let mut rest = seen.into_iter().peekable();
        let (mut from, mut is_first) = (begin, true);
        while from < end + SILENCE {
            let until = from + BATCH;
            let mut observations = Vec::new();
            while let Some(next) = rest.next_if(|it| it.stamp.utc.as_nanos() < until) {
                observations.push(next);
            }
            // Neighbours are captured in another order, if their stamps differ by less than the skew allows.
            for place in 1..observations.len() {
                let apart = observations[place].stamp.utc - observations[place - 1].stamp.utc;
                if apart < Span::from_millis(50) && rng.u32(0..20) == 0 {
                    observations.swap(place - 1, place);
                }
            }
            let lost = lost.iter().filter(|it| (from..until).contains(*it));
            let missed = lost.filter_map(|it| loss(&mut rng, *it, until)).collect();
            let mut gap = is_first.then_some(from - SECOND);
            if !is_first && rng.u32(0..120) == 0 {
                gap = Some(from + rng.i64(0..3 * SECOND));
                observations.retain(|it| Some(it.stamp.utc.as_nanos()) >= gap);
            }
            let batch = ObservationBatch {
                observations,
                missed,
                complete_until: Time::from_nanos(until),
                begin: gap.map(Time::from_nanos),
                clock: clock(&mut rng, number, side, from - begin),
                answers: None,
            };
            let is_unreliable = !is_first && number.is_multiple_of(3);
            points[side].push(match rng.u32(0..200) {
                0 if is_unreliable => Delivery::Dropped(until, batch.observations.len() as u64),
                1 if is_unreliable => Delivery::Batch(vec![0xff]),
                _ => Delivery::Batch(batch.encode()),
            });
            (from, is_first) = (until, false);
        }
        let closing = ObservationBatch {
            observations: Vec::new(),
            missed: Vec::new(),
            complete_until: Time::from_nanos(from + 30 * SECOND),
            begin: Some(Time::from_nanos(from + 30 * SECOND)),
            clock: clock(&mut rng, number, side, 0),
            answers: None,
        };
        points[side].push(Delivery::Batch(closing.encode()));
    }
    points
}

/// An interval in which a capture lost the packet of this time, and sometimes more; rarely none.
fn loss(rng: &mut Rng, time: i64, batch_end: i64) -> Option<CaptureLoss> {
    let from = (time - rng.i64(0..300) * MILLISECOND).min(batch_end);
    // It may end after the batch.
    let until = time + rng.i64(0..400) * MILLISECOND;
    let packets = u64::from(rng.u32(0..8) == 0) + 1;
    let [from, until] = [from, until].map(Time::from_nanos);
    (rng.u32(0..30) > 0).then_some(CaptureLoss { from, until, packets })
}

/// State of a clock this long after the begin.
fn clock(rng: &mut Rng, number: u64, side: usize, after: i64) -> MachineClock {
    let is_lost = number % 11 == 5 && (after / SECOND) % 300 > 280 - 20 * i64::from(side == 1);
    let machine = if number % 9 == 4 { 1 } else { u8::from(side == 1) };
    let error = Span::from_nanos(rng.i64(20_000..200_000));
    MachineClock { machine: [machine; 16], error: (!is_lost).then_some(error) }
}

/// Opens the delivery of a point of a task.
pub(crate) fn open(collector: &Arc<Collector>, task: u64, side: usize) -> Result<Channel, Refused> {
    let origin = SpoolOrigin { spool: SPOOLS[side], first: 1, instance: 5 };
    let probe = PROBES[side].parse().expect("a name");
    collector.open(&probe, (task, u32::from(side == 1)), origin)
}

/// Delivers this number, from 1. False if there is none.
pub(crate) fn deliver(
    channel: &Channel,
    deliveries: &[Delivery],
    number: u64,
) -> Result<bool, Refused> {
    let place = usize::try_from(number - 1).expect("a few");
    match deliveries.get(place) {
        None => return Ok(false),
        Some(Delivery::Batch(message)) => channel.take(number, message)?,
        Some(Delivery::Dropped(until, packets)) => {
            channel.give_up(&(number..=number), *until, *packets)?;
        }
    }
    Ok(true)
}

/// Writes an archive with observations and results of synthetic paths, `archive` in a folder; and in `hours` the results
/// of each path by hour, as the API returns them.
pub(crate) fn write(
    folder: &Path,
    (count, seconds, seed): (u64, i64, u64),
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder.join("hours"))?;
    // In memory, where that is possible: no crash has to be survived.
    let work = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir_in(folder))?;
    let records = (1..=count).map(|number| (number, task(number, BEGIN, seconds)));
    let tasks = Arc::new(records.collect::<Tasks>());
    let results = Results::open(&work.path().join("results.sqlite"))?;
    let receiver = watch::channel(Arc::clone(&tasks)).1;
    let collector = Arc::new(Collector::new(results, receiver));
    for number in tasks.keys() {
        let points = deliveries(seed, *number, BEGIN, seconds);
        let channels = [open(&collector, *number, 0)?, open(&collector, *number, 1)?];
        let mut next = 1;
        // Both have the same number of deliveries.
        while deliver(&channels[0], &points[0], next)? && deliver(&channels[1], &points[1], next)? {
            next += 1;
        }
    }
    Archive::new(folder.join("archive"), Arc::clone(&collector), KEEP).maintain(&tasks);
    for (number, record) in tasks.iter() {
        let range = ResultRange { step: Step::Hour, from: i64::MIN, until: i64::MAX, most: 1000 };
        let (name, results) = (&record.task.name, collector.measured(*number, &range)?);
        let task = json!({"name": name, "number": number});
        let hours = json!({"task": task, "step_s": 3600, "results": results});
        fs::write(folder.join("hours").join(format!("{name}.json")), hours.to_string())?;
    }
    Ok(())
}
