//! Real probes and a collector with a broker of Apache Kafka between them, which is killed and loses its data.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};

/// Shell functions for a broker on the loopback interface, which is also its own controller (KRaft).
const BROKER: &str = r#"
    printf '%s\n' process.roles=broker,controller node.id=1 \
        controller.quorum.voters=1@127.0.0.1:29093 \
        listeners=PLAINTEXT://127.0.0.1:29092,CONTROLLER://127.0.0.1:29093 \
        advertised.listeners=PLAINTEXT://127.0.0.1:29092 controller.listener.names=CONTROLLER \
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT \
        log.dirs=$PWD/kafka auto.create.topics.enable=false > broker.properties
    format_broker() {
        java -Xmx256m -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA \
            -c broker.properties > formatting 2>&1
    }
    start_broker() { # OUTPUT
        java -Xmx256m -cp "$libraries/*" kafka.Kafka broker.properties > $1 2>&1 &
        broker=$!
        await 'Kafka Server started' $1
    }
"#;

/// Where tools/setup-kafka stores the program; none if it was not run.
pub(super) fn libraries() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(target, PathBuf::from);
    let libraries = target.join("tools/kafka/libs");
    if libraries.is_dir() {
        return Some(libraries);
    }
    assert!(std::env::var_os("WIRESTAMP_NO_SKIP").is_none(), "run tools/setup-kafka");
    println!("skipped: needs tools/setup-kafka");
    None
}

#[test]
fn packets_count_once_through_kafka_that_loses_everything() {
    let Some(libraries) = libraries().filter(|_| is_root()) else { return };
    let before = Leftovers::now();
    let script = r#"
        format_broker
        start_broker broker1
        export WIRESTAMP_KAFKA=127.0.0.1:29092
        let_in_collector store collector.log
        await 'reading from Kafka' collector.log
        let_in roof roof.log
        let_in cellar cellar.log
        # Until both probes look.
        send 100
        wait $sending
        await_seconds 1
        date +%s > since
        send 20000
        await_seconds 3
        killed $broker
        await 'retrying' roof.log
        start_broker broker2
        await_seconds 6
        killed $store
        start_collector store $listens collector2.log
        await_seconds 9
        killed $broker
        rm -r kafka
        format_broker
        start_broker broker3
        wait $sending
        await_results 20000 "[.results // [] | .[] | select(.begin_ns >= $(cat since)000000000).sent] | add // 0"
        ask tasks/load/results > load
        end
        kill -INT $store
        wait $store
        killed $broker
    "#;
    let place = format!("libraries={}\n", libraries.display());
    let (folder, message) = in_lab(&[&place, BROKER, script].concat());
    let mut path = results(&folder, "results", &message);
    let since = read(folder.path(), "since").trim().parse::<i64>().unwrap() * 1_000_000_000;
    path.retain(|second| second["begin_ns"].as_i64() >= Some(since));
    let found = ["sent", "matched", "given_up_sent", "given_up_received"].map(|it| sum(&path, it));
    assert_eq!(found, [20_000, 20_000, 0, 0], "{path:#?}{message}");
    let load: Value = serde_json::from_str(&read(folder.path(), "load")).unwrap();
    assert!(sum(load["results"].as_array().unwrap(), "packets") <= 20_100, "{load:#}");
    assert!(message.contains("connected to Kafka at 127.0.0.1:29092: 12 partitions"), "{message}");
    assert_eq!(Leftovers::now(), before);
}
