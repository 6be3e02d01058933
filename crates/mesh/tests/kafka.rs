//! Probes deliver to a collector through Apache Kafka, which is killed, hangs, loses its data, gets more partitions, and
//! has records of other writers.

#[expect(dead_code, reason = "not all of it is needed here")]
mod brokers;
#[expect(dead_code, reason = "not all of it is needed here")]
mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use brokers::{Broker, Probes, raw, start};
use common::{BATCHES, PACKETS, Running, authority, check, now, sum};
use serde_json::Value;
use wirestamp_mesh::collector::Measured;
use wirestamp_mesh::export::KafkaExporter;
use wirestamp_mesh::kafka::{ANSWERS, OBSERVATIONS, RESULTS, Settings};
use wirestamp_mesh::pki::Authority;

/// A folder with a CA, a collector, and two probes that deliver through these brokers.
fn delivering(settings: &Settings) -> (tempfile::TempDir, Running, Probes) {
    let folder = tempfile::tempdir().unwrap();
    Authority::create(&authority(folder.path()), now()).unwrap();
    let mesh = start(folder.path(), (Ipv4Addr::LOCALHOST, 0).into(), settings);
    let probes = Probes::delivering(folder.path(), mesh.address, settings);
    (folder, mesh, probes)
}

/// Waits for the results of all packets; for new ones at most two minutes.
fn wait_for_all(mesh: &Running, probes: &Probes) -> Vec<Measured> {
    let mut stored = mesh.collector.subscribe();
    while sum(&mesh.measured(), |it| it.counts.sent) < PACKETS.unsigned_abs() {
        let changed =
            async { tokio::time::timeout(Duration::from_secs(120), stored.changed()).await };
        probes.runtime.block_on(changed).expect("results within two minutes").unwrap();
    }
    mesh.measured()
}

#[test]
fn each_packet_counts_once_while_kafka_loses_everything() {
    let Some(mut broker) = Broker::new() else { return };
    let settings = broker.settings();
    let (folder, mesh, probes) = delivering(&settings);
    let hold = |part: i64| probes.hold(part * BATCHES / 5..(part + 1) * BATCHES / 5);
    hold(0);
    mesh.wait_for(300);
    // The broker is killed, and batches are observed meanwhile.
    broker.kill();
    hold(1);
    broker.start();
    mesh.wait_for(800);
    // The collector restarts.
    let address = mesh.kill();
    hold(2);
    let mesh = start(folder.path(), address, &settings);
    mesh.wait_for(1300);
    // The broker loses its log.
    broker.kill();
    fs::remove_dir_all(broker.folder.path().join("data")).unwrap();
    hold(3);
    broker.start();
    hold(4);
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
    let counts = mesh.collector.kafka_stats().counts();
    let of = |what: &str| counts.iter().find(|(it, _)| *it == what).unwrap().1;
    assert_eq!(["refused", "forged", "unreadable"].map(of), [0; 3]);
    println!("{counts:?}");
}

/// No request is answered until the probes have noticed.
#[test]
fn hung_broker_loses_nothing() {
    let Some(broker) = Broker::new() else { return };
    let (_folder, mesh, probes) = delivering(&broker.settings());
    probes.hold(0..BATCHES / 2);
    mesh.wait_for(300);
    broker.signal("STOP");
    probes.hold(BATCHES / 2..BATCHES);
    let troubles = [0, 1].map(|point| probes.wait_for_trouble(point));
    broker.signal("CONT");
    for trouble in troubles {
        assert!(trouble.contains(&broker.address.to_string()), "{trouble}");
    }
    check(&wait_for_all(&mesh, &probes));
}

/// Task 1 is in another partition afterwards. Probes look for the number once a minute.
#[test]
fn raised_number_of_partitions_of_kafka_loses_nothing() {
    let Some(broker) = Broker::new() else { return };
    let settings = Settings { partitions: 1, ..broker.settings() };
    let (_folder, mesh, probes) = delivering(&settings);
    probes.hold(0..BATCHES / 2);
    mesh.wait_for(300);
    raw::raise_partitions(broker.address, OBSERVATIONS, 2);
    probes.hold(BATCHES / 2..BATCHES);
    check(&wait_for_all(&mesh, &probes));
}

/// Records of another writer, one of which no client can decode. Then one of the topics is deleted.
#[test]
fn foreign_records_and_a_deleted_topic_lose_nothing() {
    let Some(broker) = Broker::new() else { return };
    let (_folder, mesh, probes) = delivering(&broker.settings());
    let exporter = KafkaExporter::new(broker.settings());
    probes.runtime.spawn(exporter.run(Arc::clone(&mesh.sources), mesh.plan.subscribe()));
    probes.hold(0..BATCHES / 3);
    mesh.wait_for(300);
    let of_task = [&1_u64.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
    let now = now().as_millisecond();
    let records: [(&[u8], &[u8], i64); 4] =
        [(b"x", b"y", now), (&of_task, b"z", now), (b"", b"", i64::MAX / 2), (&of_task, b"", now)];
    for (topic, partitions) in [(OBSERVATIONS, 3), (ANSWERS, 1)] {
        for partition in 0..partitions {
            records.iter().for_each(|it| raw::append(broker.address, (topic, partition), *it));
        }
    }
    probes.hold(BATCHES / 3..2 * BATCHES / 3);
    mesh.wait_for(1000);
    raw::delete_topic(broker.address, ANSWERS);
    probes.hold(2 * BATCHES / 3..BATCHES);
    let all = wait_for_all(&mesh, &probes);
    check(&all);
    let counts = mesh.collector.kafka_stats().counts();
    let of = |what: &str| counts.iter().find(|(it, _)| *it == what).unwrap().1;
    // A restarted reader may read them again.
    assert!(of("forged") >= 2 && of("unreadable") >= 2, "{counts:?}");
    // Other programs can read the results from a topic.
    let exported = (0..600).find_map(|_| {
        thread::sleep(Duration::from_millis(100));
        let exported = exported(&raw::fetch(broker.address, RESULTS, 1));
        (exported.len() >= all.len()).then_some(exported)
    });
    assert_eq!(exported.expect("all results within a minute"), all);
}

/// The results in records that are not compressed.
fn exported(records: &[u8]) -> Vec<Measured> {
    let begin = br#"{"task":"p","number":1,"#;
    let begins = (0..records.len()).filter(|it| records[*it..].starts_with(begin));
    let read = begins.map(|it| serde_json::Deserializer::from_slice(&records[it..]).into_iter());
    let rows = read.map(|mut it| it.next().unwrap().unwrap());
    rows.map(|row: Value| serde_json::from_value(row["result"].clone()).unwrap()).collect()
}
