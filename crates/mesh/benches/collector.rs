//! Throughput of a collector in observations per second, with two probes over TLS on the loopback interface.
//!
//! `cargo bench -p wirestamp-mesh --bench collector`
//!
//! The observations are encoded and in the spools before the measurement starts. The measurement covers reading the
//! spools, gRPC and TLS on both sides, decoding, correlation and storage. Both probes and the controller run in this
//! process.

#[expect(dead_code, reason = "benchmarks do not need all of it")]
#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{BEGIN, MILLISECOND, Probe, batch, mesh, observation};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use wirestamp_mesh::spool::Batch;

const ROUNDS: usize = 5;

/// Packets at the first point, and their distance in nanoseconds.
const PACKETS: i64 = 4_000_000;
const EACH: i64 = 2_000;

/// One packet of this number is lost; delay of the others, in nanoseconds.
const LOST: i64 = 1_000;
const DELAY: i64 = MILLISECOND;

/// Packets per batch.
const BATCH: i64 = 16_000;

fn main() {
    let mut rates = Vec::new();
    for round in 1..=ROUNDS {
        let (rate, cores) = measure();
        println!(
            "round {round}: {:.2} million observations a second, {cores:.2} cores busy",
            rate / 1e6
        );
        rates.push(rate);
    }
    rates.sort_by(f64::total_cmp);
    let [least, median, most] = [rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]].map(|it| it / 1e6);
    println!("median {median:.2} million observations a second, from {least:.2} to {most:.2}");
}

/// Observations per second, and busy cores.
fn measure() -> (f64, f64) {
    let (folder, mesh) = mesh();
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)].map(|(name, point)| {
        let probe = Probe::let_in(&runtime, folder.path(), mesh.address, name, point);
        batches(point).for_each(|batch| probe.hold([batch]));
        Arc::new(probe)
    });
    let (begun, used) = (Instant::now(), processor_time());
    probes.iter().for_each(|it| drop(runtime.spawn(Arc::clone(it).deliver(mesh.address))));
    mesh.wait_for(PACKETS.unsigned_abs());
    let (elapsed, used) = (begun.elapsed(), processor_time() - used);
    let observations = 2 * PACKETS - PACKETS / LOST;
    let seconds = elapsed.as_secs_f64();
    (f64::from(i32::try_from(observations).unwrap()) / seconds, used.as_secs_f64() / seconds)
}

/// Observations of a point, then silence until all results are final.
fn batches(point: u32) -> impl Iterator<Item = Batch> {
    let delay = i64::from(point) * DELAY;
    let time = move |id: i64| BEGIN + EACH * id + delay;
    let is_here = move |id: &i64| point == 0 || id % LOST != 0;
    let of = move |nth: i64| {
        let ids = nth * BATCH..(nth + 1) * BATCH;
        let seen = ids.clone().filter(is_here).map(|id| observation(id, time(id)));
        batch((time(ids.start), time(ids.end)), nth == 0, seen.collect())
    };
    let end = time(PACKETS);
    (0..PACKETS / BATCH).map(of).chain([batch((end, end + 5000 * MILLISECOND), false, Vec::new())])
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
