//! Probes deliver to a collector through Apache Kafka, which is killed, loses its data, gets more partitions, and has
//! records of other writers.

#[expect(dead_code, reason = "not all of it is needed here")]
mod brokers;
#[expect(dead_code, reason = "not all of it is needed here")]
mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use brokers::{Broker, deliver, raw};
use common::{BATCHES, PACKETS, Probe, Running, authority, batches, check, now, sum};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use wirestamp_mesh::collector::Measured;
use wirestamp_mesh::export::KafkaExporter;
use wirestamp_mesh::kafka::{ANSWERS, Login, Mechanism, OBSERVATIONS, RESULTS, Settings};
use wirestamp_mesh::pki::Authority;
use wirestamp_mesh::probe::{Carrier, Kafka};

const TASK: &str =
    r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;

#[test]
fn each_packet_counts_once_while_kafka_loses_everything() {
    let Some(mut broker) = Broker::new() else { return };
    let (folder, settings) = (tempfile::tempdir().unwrap(), broker.settings());
    Authority::create(&authority(folder.path()), now()).unwrap();
    let start = |address| {
        Running::start_changed(folder.path(), address, Some(TASK), |controller| {
            controller.with_kafka(settings.clone()).unwrap()
        })
    };
    let mesh = start((Ipv4Addr::LOCALHOST, 0).into());
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    for probe in &probes {
        runtime.spawn(deliver(Arc::clone(probe), settings.clone()));
    }
    let hold = |part: i64| {
        for (point, probe) in (0..).zip(&probes) {
            probe.hold(batches(point, part * BATCHES / 5..(part + 1) * BATCHES / 5));
        }
    };
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
    let mesh = start(address);
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

/// Task 1 is in another partition afterwards. Probes look for the number once a minute.
#[test]
fn raised_number_of_partitions_of_kafka_loses_nothing() {
    let Some(broker) = Broker::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { partitions: 1, ..broker.settings() };
    Authority::create(&authority(folder.path()), now()).unwrap();
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let mesh = Running::start_changed(folder.path(), address, Some(TASK), |controller| {
        controller.with_kafka(settings.clone()).unwrap()
    });
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    let hold = |numbers: Range<i64>| {
        for (point, probe) in (0..).zip(&probes) {
            probe.hold(batches(point, numbers.clone()));
        }
    };
    for probe in &probes {
        runtime.spawn(deliver(Arc::clone(probe), settings.clone()));
    }
    hold(0..BATCHES / 2);
    mesh.wait_for(300);
    raw::raise_partitions(broker.address, OBSERVATIONS, 2);
    hold(BATCHES / 2..BATCHES);
    wait_for_all(&mesh, &runtime);
    check(&mesh.measured());
}

/// Waits for the results of all packets; for new ones at most two minutes.
fn wait_for_all(mesh: &Running, runtime: &Runtime) {
    let mut stored = mesh.collector.subscribe();
    while sum(&mesh.measured(), |it| it.counts.sent) < PACKETS.unsigned_abs() {
        let changed =
            async { tokio::time::timeout(Duration::from_secs(120), stored.changed()).await };
        runtime.block_on(changed).expect("results within two minutes").unwrap();
    }
}

/// Records of another writer, one of which no client can decode. Then one of the topics is deleted.
#[test]
fn foreign_records_and_a_deleted_topic_lose_nothing() {
    let Some(broker) = Broker::new() else { return };
    let (folder, settings) = (tempfile::tempdir().unwrap(), broker.settings());
    Authority::create(&authority(folder.path()), now()).unwrap();
    let (address, runtime) = ((Ipv4Addr::LOCALHOST, 0).into(), Runtime::new().unwrap());
    let mesh = Running::start_changed(folder.path(), address, Some(TASK), |controller| {
        let exporter = KafkaExporter::new(settings.clone());
        runtime.spawn(exporter.run(controller.sources(), controller.plan().subscribe()));
        controller.with_kafka(settings.clone()).unwrap()
    });
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    let hold = |numbers: Range<i64>| {
        for (point, probe) in (0..).zip(&probes) {
            probe.hold(batches(point, numbers.clone()));
        }
    };
    for probe in &probes {
        runtime.spawn(deliver(Arc::clone(probe), settings.clone()));
    }
    hold(0..BATCHES / 3);
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
    hold(BATCHES / 3..2 * BATCHES / 3);
    mesh.wait_for(1000);
    raw::delete_topic(broker.address, ANSWERS);
    hold(2 * BATCHES / 3..BATCHES);
    wait_for_all(&mesh, &runtime);
    check(&mesh.measured());
    let counts = mesh.collector.kafka_stats().counts();
    let of = |what: &str| counts.iter().find(|(it, _)| *it == what).unwrap().1;
    // A restarted reader may read them again.
    assert!(of("forged") >= 2 && of("unreadable") >= 2, "{counts:?}");
    // Other programs can read the results from a topic.
    let all = mesh.measured();
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

/// Settings of a broker with TLS and SASL, and its CA certificate in a file.
fn secured(folder: &Path) -> (String, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "CA of the brokers");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(parameters, key).unwrap();
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, &ca).unwrap();
    let file = folder.join("ca.pem");
    fs::write(&file, ca.pem()).unwrap();
    // In the syntax of properties.
    let line = |pem: &str| pem.replace("\r\n", "\n").replace('\n', "\\n");
    let login = "org.apache.kafka.common.security.scram.ScramLoginModule required";
    let plain = "org.apache.kafka.common.security.plain.PlainLoginModule required";
    let settings = format!(
        "sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={login} username=\"broker\" password=\"b\";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={login};
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} user_mesh=\"m\";
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={}
ssl.keystore.key={}
ssl.truststore.type=PEM
ssl.truststore.certificates={}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:broker;User:mesh;User:ANONYMOUS
",
        line(&certificate.pem()),
        line(&key.serialize_pem()),
        line(&ca.pem())
    );
    (settings, file)
}

#[test]
fn kafka_with_tls_and_logins_accepts_the_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (more, ca) = secured(folder.path());
    let users = ["broker", "mesh", "other"].map(|name| {
        let password = &name[..1];
        format!("SCRAM-SHA-512=[name={name},password={password}]")
    });
    let Some(broker) = Broker::with("SASL_SSL", &more, users.into()) else { return };
    let login = |name: &str, password: &str| Settings {
        ca: Some(ca.clone()),
        login: Some(Login {
            mechanism: Mechanism::ScramSha512,
            name: name.to_owned(),
            password: password.to_owned(),
        }),
        ..broker.settings()
    };
    let plain = |password: &str| {
        let settings = login("mesh", password);
        let login = settings.login.map(|it| Login { mechanism: Mechanism::Plain, ..it });
        Settings { login, ..settings }
    };
    Authority::create(&authority(folder.path()), now()).unwrap();
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let mesh = Running::start_changed(folder.path(), address, Some(TASK), |controller| {
        controller.with_kafka(login("mesh", "m")).unwrap()
    });
    let runtime = Runtime::new().unwrap();
    let probes = [("roof", 0), ("cellar", 1)]
        .map(|(name, point)| Probe::let_in(&runtime, folder.path(), mesh.address, name, point))
        .map(Arc::new);
    let logins = [login("mesh", "m"), plain("m")];
    for ((point, probe), login) in (0..).zip(&probes).zip(logins) {
        probe.hold(batches(point, 0..BATCHES));
        runtime.spawn(deliver(Arc::clone(probe), login));
    }
    check(&mesh.wait_for(PACKETS.unsigned_abs()));
    // A wrong password, a user without permissions, no login, and no encryption.
    let refused = |settings: Settings| {
        let credentials = watch::Sender::new(probes[0].credentials.clone());
        runtime.block_on(async {
            let carrier = Kafka::new(settings, credentials.subscribe(), Arc::default()).unwrap();
            let carried = carrier.carry(&probes[0].stock, probes[0].channel).await;
            carried.unwrap_err().to_string()
        })
    };
    let cannot_connect = "cannot connect to Kafka at 127.0.0.1:";
    for settings in [login("mesh", "wrong"), plain("wrong")] {
        let why = refused(settings);
        assert!(why.starts_with(cannot_connect), "{why}");
    }
    let why = refused(login("other", "o"));
    assert!(why.starts_with("cannot find the topic wirestamp.observations.v1"), "{why}");
    for settings in [Settings { login: None, ..login("mesh", "m") }, broker.settings()] {
        let why = refused(settings);
        assert!(why.starts_with(cannot_connect), "{why}");
    }
}
