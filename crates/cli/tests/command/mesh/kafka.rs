//! Real probes and a collector with brokers of Apache Kafka between them, which are killed, lose their data, and refuse
//! records.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read, results, sum};

/// Shell functions for brokers on the loopback interface, which are also their own controllers (KRaft). Broker N listens
/// at port 29092 + 10 N, from 0.
const BROKER: &str = r#"
    properties() { # NUMBER VOTERS REPLICAS LINES
        number=$1 voters=$2 replicas=$3
        shift 3
        port=$((29092 + 10 * number))
        printf '%s\n' process.roles=broker,controller node.id=$number \
            controller.quorum.voters=$voters \
            listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1)) \
            advertised.listeners=PLAINTEXT://127.0.0.1:$port controller.listener.names=CONTROLLER \
            listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT \
            log.dirs=$PWD/kafka$number auto.create.topics.enable=false \
            offsets.topic.replication.factor=$replicas min.insync.replicas=$(((replicas + 1) / 2)) \
            broker.session.timeout.ms=3000 broker.heartbeat.interval.ms=500 "$@" > broker$number.properties
    }
    format_broker() { # NUMBER
        java -Xmx256m -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA \
            -c broker$1.properties > formatting$1 2>&1
    }
    begin_broker() { # NUMBER OUTPUT
        java -Xmx256m -cp "$libraries/*" kafka.Kafka broker$1.properties > $2 2>&1 &
        eval "broker$1=$!"
    }
    start_broker() { # NUMBER OUTPUT
        begin_broker $1 $2
        await 'Kafka Server started' $2
    }
    admin() { # ACTION TOPIC ARGUMENTS
        /usr/bin/python3 "ADMIN" 29092 "$@"
    }
    # The probe takes another way from now on: batches that it has not delivered are in its spool.
    restart_roof() { # LOG
        kill -INT $roof
        wait $roof
        start_probe roof $1
        await 'capturing at tap-a' $1
    }
    since() { # KEY
        echo "[.results // [] | .[] | select(.begin_ns >= $(cat since)000000000).$1] | add // 0"
    }
"#;

/// Program of the administrator.
const ADMIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/mesh/kafka_admin.py");

/// The first lines of a script.
fn prelude(libraries: &Path) -> String {
    let place = format!("libraries={}\n", libraries.display());
    [&place, &*BROKER.replace("ADMIN", ADMIN)].concat()
}

/// Results of the packets that were sent after the probes began to capture.
fn of_packets((folder, message): &(TempDir, String)) -> Vec<Value> {
    let mut path = results(folder, "results", message);
    let since = read(folder.path(), "since").trim().parse::<i64>().unwrap() * 1_000_000_000;
    path.retain(|second| second["begin_ns"].as_i64() >= Some(since));
    path
}

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
        properties 0 0@127.0.0.1:29093 1 allow.everyone.if.no.acl.found=true \
            authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
        format_broker 0
        start_broker 0 first
        export WIRESTAMP_KAFKA=127.0.0.1:29092
        let_in_collector store collector.log
        await 'reading from Kafka' collector.log
        admin allow wirestamp.observations.v1
        let_in roof roof.log
        let_in cellar cellar.log
        # Until both probes look.
        send 100
        wait $sending
        await_seconds 1
        date +%s > since
        send 20000
        await_seconds 3
        admin deny wirestamp.observations.v1
        for node in roof cellar; do await 'TopicAuthorizationFailed.*retrying' $node.log; done
        admin undo wirestamp.observations.v1
        await_seconds 6
        killed $broker0
        start_broker 0 second
        await_seconds 8
        killed $store
        start_collector store $listens collector2.log
        await_seconds 11
        killed $broker0
        rm -r kafka0
        format_broker 0
        start_broker 0 third
        wait $sending
        unset WIRESTAMP_KAFKA
        restart_roof roof2.log
        send 2000
        wait $sending
        export WIRESTAMP_KAFKA=127.0.0.1:29092
        restart_roof roof3.log
        send 2000
        wait $sending
        await_results 24000 "$(since received)"
        ask tasks/load/results > load
        end
        kill -INT $store
        wait $store
        killed $broker0
    "#;
    let found = in_lab(&[&prelude(&libraries), script].concat());
    let path = of_packets(&found);
    let (folder, message) = found;
    let [sent, matched, received, undetermined_sent, undetermined_received] =
        ["sent", "matched", "received", "given_up_sent", "given_up_received"]
            .map(|it| sum(&path, it));
    // A restarted probe does not capture the first packets, which are undetermined then.
    assert_eq!((sent, undetermined_sent), (matched, 0), "{path:#?}{message}");
    assert_eq!((received, matched + undetermined_received), (24_000, 24_000), "{path:#?}{message}");
    assert!(matched >= 23_000, "{path:#?}{message}");
    let load: Value = serde_json::from_str(&read(folder.path(), "load")).unwrap();
    assert!(sum(load["results"].as_array().unwrap(), "packets") <= 24_100, "{load:#}");
    assert!(message.contains("connected to Kafka at 127.0.0.1:29092: 12 partitions"), "{message}");
    for (name, points) in [("roof", 2), ("cellar", 4)] {
        let log = read(folder.path(), &format!("{name}.log"));
        let denied: Vec<_> = log.lines().filter(|it| it.contains("AuthorizationFailed")).collect();
        assert!((1..=points).contains(&denied.len()), "{denied:#?}");
        let is_clear = |line: &&str| {
            line.contains(" cannot write to partition ")
                && line.contains(" of wirestamp.observations.v1 in Kafka at 127.0.0.1:29092: ")
                && line.contains("; allow it with an ACL (docs/scale-out.md); retrying")
        };
        assert!(denied.iter().all(is_clear), "{denied:#?}");
    }
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn packets_count_once_while_one_of_three_brokers_is_killed() {
    let Some(libraries) = libraries().filter(|_| is_root()) else { return };
    let before = Leftovers::now();
    let script = r#"
        brokers='0 1 2'
        for broker in $brokers; do
            properties $broker 0@127.0.0.1:29093,1@127.0.0.1:29103,2@127.0.0.1:29113 3
            format_broker $broker &
            formatting="${formatting-} $!"
        done
        wait $formatting
        for broker in $brokers; do begin_broker $broker first$broker; done
        for broker in $brokers; do await 'Kafka Server started' first$broker; done
        export WIRESTAMP_KAFKA=127.0.0.1:29092,127.0.0.1:29102,127.0.0.1:29112
        start_collector store 127.0.0.1:0 collector.log --kafka-partitions 1 \
            --token $("$0" -q pki token store --role collector --authority authority)
        await 'reading from Kafka' collector.log
        let_in roof roof.log
        let_in cellar cellar.log
        # Until both probes look.
        send 100
        wait $sending
        await_seconds 1
        date +%s > since
        send 15000
        await_seconds 3
        leader=$(admin leader wirestamp.observations.v1)
        eval "killed \$broker$leader"
        await_results 9000 "$(since sent)"
        start_broker $leader second
        wait $sending
        await_results 15000 "$(since sent)"
        end
        kill -INT $store
        wait $store
        for broker in $broker0 $broker1 $broker2; do killed $broker; done
    "#;
    let found = in_lab(&[&prelude(&libraries), script].concat());
    let path = of_packets(&found);
    let counts = ["sent", "matched", "given_up_sent", "given_up_received"];
    let counts = counts.map(|it| sum(&path, it));
    assert_eq!(counts, [15_000, 15_000, 0, 0], "{path:#?}{}", found.1);
    assert_eq!(Leftovers::now(), before);
}
