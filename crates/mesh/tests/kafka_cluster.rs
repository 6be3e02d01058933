//! Results through a cluster of Apache Kafka, one of whose brokers is killed, are those of a direct delivery without faults.

#[expect(dead_code, reason = "not all of it is needed here")]
mod brokers;
#[expect(dead_code, reason = "not all of it is needed here")]
mod common;

use std::env;
use std::net::Ipv4Addr;
use std::sync::Arc;

use brokers::{Broker, Probes, start};
use common::{BATCHES, PACKETS, authority, check, mesh, now};
use fastrand::Rng;
use wirestamp_mesh::collector::Measured;
use wirestamp_mesh::kafka::Settings;
use wirestamp_mesh::pki::Authority;

/// Parts in which the batches are observed; a fault may follow each.
const PARTS: i64 = 10;

/// Results without Kafka and without faults.
fn direct() -> Vec<Measured> {
    let (folder, mesh) = mesh();
    let probes = Probes::let_in(folder.path(), mesh.address);
    probes.hold(0..BATCHES);
    for probe in &probes.probes {
        drop(probes.runtime.spawn(Arc::clone(probe).deliver(mesh.address)));
    }
    mesh.wait_for(PACKETS.unsigned_abs())
}

/// Results of a random schedule: a broker is killed in one part, and started again in a later one; the collector and the
/// probes restart.
fn through_kafka(brokers: &mut [Broker], rng: &mut Rng) -> Vec<Measured> {
    let addresses = brokers.iter().map(|it| it.address.to_string()).collect();
    let settings = Settings { brokers: addresses, ..brokers[0].settings() };
    let folder = tempfile::tempdir().unwrap();
    Authority::create(&authority(folder.path()), now()).unwrap();
    let mut mesh = start(folder.path(), (Ipv4Addr::LOCALHOST, 0).into(), &settings);
    let mut probes = Probes::delivering(folder.path(), mesh.address, &settings);
    let (killed, victim) = (rng.i64(0..PARTS / 2), rng.usize(0..brokers.len()));
    let started = rng.i64(PARTS / 2..PARTS);
    for part in 0..PARTS {
        probes.hold(part * BATCHES / PARTS..(part + 1) * BATCHES / PARTS);
        if rng.bool() {
            // All packets of the parts before can be stored now.
            let packets = part * (BATCHES / PARTS) * 10 - 100;
            mesh.wait_for(packets.clamp(0, PACKETS / 2).unsigned_abs());
        }
        if part == killed {
            brokers[victim].kill();
        }
        if part == started {
            brokers[victim].start();
        }
        match rng.u8(0..6) {
            0 => {
                let address = mesh.kill();
                mesh = start(folder.path(), address, &settings);
            }
            1 => probes.restart(rng.usize(0..2), &settings),
            2 => [0, 1].into_iter().for_each(|point| probes.restart(point, &settings)),
            _ => {}
        }
    }
    mesh.wait_for(PACKETS.unsigned_abs())
}

#[test]
fn results_through_a_kafka_cluster_are_those_of_direct_delivery() {
    let Some(mut brokers) = Broker::cluster() else { return };
    let direct = direct();
    check(&direct);
    let schedules = env::var("WIRESTAMP_KAFKA_SCHEDULES").map_or(1, |it| it.parse().unwrap());
    for seed in 0..schedules {
        println!("seed {seed}");
        let found = through_kafka(&mut brokers, &mut Rng::with_seed(seed));
        assert_eq!(format!("{found:#?}"), format!("{direct:#?}"), "seed {seed}");
    }
}
