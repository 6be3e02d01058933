//! Random faults of all nodes from a seed, under load: no packet counts as lost that was not lost, none counts twice, and
//! every node ends when it is asked to.
//!
//! `make chaos SEEDS=0..200` runs many schedules; the output has the seed and the schedule of each.

use std::env;
use std::ops::Range;

use fastrand::Rng;

use crate::common::{Leftovers, is_root};
use crate::mesh::faults::assert_counted_once;
use crate::mesh::floods::FLOODER;
use crate::mesh::{in_lab, read, results, sum};

/// The schedules of `make test`.
const SEEDS: Range<u64> = 0..2;

/// Faults of a schedule.
const FAULTS: Range<usize> = 4..7;

/// A collector and two probes, each with a small disk of its own, and functions for their faults.
const NODES: &str = r#"
    for node in store roof cellar; do
        mkdir $node
        # Of the mount namespace that the lab has of its own.
        mount -t tmpfs -o size=24m none $node
    done
    let_in_collector store store.log
    let_in roof roof.log
    let_in cellar cellar.log
    logs=0
    next_log() { logs=$((logs + 1)); }
    process() { eval "echo \$$1"; }
    start() { # NODE
        next_log
        case $1 in
            controller) start_controller $address controller.$logs.log ;;
            store) start_collector store $listens store.$logs.log ;;
            *) start_probe $1 $1.$logs.log ;;
        esac
    }
    # Whether a trouble is in the API (PATH, FILTER of jq) and in the metrics (SAMPLE, a regular expression).
    is_visible() { # PATH FILTER SAMPLE
        ask "$1" --max-time 2 | jq -e "$2" > seen && ask ../../metrics --max-time 2 | grep -qx "$3"
    }
    visible_within_10_s() { # PATH FILTER SAMPLE
        latest=$(($(date +%s) + 10))
        until is_visible "$@" 2> looking; do
            if [ $(date +%s) -gt $latest ]; then
                echo "$*" >> invisible
                return
            fi
            sleep 0.1
        done
        echo "$*" >> visible
    }
    of_probe() { # PROBE FILTER of its entry
        echo ".[] | select(.name == \"$1\") | $2"
    }
    # After a cut, a node may wait up to 30 s before it tries again.
    await_connected() { # NODE
        case $1 in
            store) connected='wirestamp_collector_up{collector="store"} 1' ;;
            *) connected="wirestamp_probe_up{probe=\"$1\"} 1" ;;
        esac
        until ask ../../metrics --max-time 2 | grep -qxF "$connected"; do sleep 0.1; done 2> connecting
    }
    failed_writes() { # NODE
        cat $1*.log | grep -cE 'cannot write to the spool|cannot store results' || true
    }
    stall() { # NODE SECONDS
        kill -STOP $(process $1)
        sleep $2
        kill -CONT $(process $1)
    }
    kill_and_start() { # NODE SECONDS
        killed $(process $1)
        case $1 in
            controller) ;;
            store) visible_within_10_s results '.without_results[0]' 'wirestamp_collector_up{collector="store"} 0' ;;
            # The controller may have started since, and not know the probe.
            *) visible_within_10_s tasks ".[] | select(.unconnected | index(\"$1\"))" "wirestamp_probe_up{probe=\"$1\"} 0" ;;
        esac
        sleep $2
        start $1
    }
    fill_disk() { # NODE SECONDS
        await_connected $1
        failures=$(failed_writes $1)
        cat /dev/zero > $1/filler 2> filling || true
        latest=$(($(date +%s) + $2))
        until [ $(failed_writes $1) -gt $failures ] || [ $(date +%s) -ge $latest ]; do sleep 0.1; done
        # Otherwise its files have room.
        if [ $(failed_writes $1) -gt $failures ]; then
            case $1 in
                store) visible_within_10_s results '.cannot_store[0]' 'wirestamp_collector_troubles{collector="store"} 1' ;;
                *) visible_within_10_s probes "$(of_probe $1 '.health.troubles[0]')" "wirestamp_probe_troubles{probe=\"$1\"} [1-9][0-9]*" ;;
            esac
        fi
        sleep 1
        rm $1/filler
    }
    restore_folder() { # NODE SECONDS: back to the state so long ago
        kill -INT $(process $1)
        wait $(process $1)
        rm -rf kept
        cp -r $1 kept
        start $1
        sleep $2
        killed $(process $1)
        rm -rf $1/*
        cp -r kept/. $1
        start $1
    }
    corrupt_file() { # PROBE SECONDS: changed bytes in the middle of its spool
        killed $(process $1)
        # The database, or its log.
        file=$(ls -S $1/spool.sqlite* | head -n 1)
        middle=$(($(stat -c %s $file) / 1024))
        dd if=/dev/urandom of=$file bs=512 count=1 seek=$middle conv=notrunc 2> corrupting
        sleep $2
        # A database that cannot be used is removed, as the message says.
        next_log
        timeout -k 5 -s INT 3 "$0" probe $address --folder $1 --namespaces 2> damaged.$logs.log || true
        if grep -q 'it is damaged' damaged.$logs.log; then
            rm -f $1/spool.sqlite*
        fi
        start $1
    }
    cut() { # all nodes, SECONDS
        ip link set lo down
        sleep $2
        ip link set lo up
    }
    slow_link() { # all nodes, SECONDS
        tc qdisc add dev lo root tbf rate 512kbit burst 8kb latency 300ms
        sleep $2
        tc qdisc del dev lo root
    }
    clone_folder() { # NODE SECONDS: a copy of the probe runs beside it
        await_connected $1
        rm -rf copy
        cp -r $1 copy 2> copying || true # some files may be gone meanwhile
        next_log
        "$0" probe $address --folder copy --namespaces 2> copy.$logs.log &
        copy=$!
        sleep $2
        if grep -q 'a probe with the certificate of' copy.$logs.log; then
            visible_within_10_s probes "$(of_probe $1 .refused_at)" \
                "wirestamp_probe_refused_connections_total{probe=\"$1\"} [1-9][0-9]*"
        fi
        killed $copy
    }
    flood() { # NODE SECONDS: connections of a stranger
        case $1 in
            controller) flooded=$address ;;
            store) flooded=$listens ;;
        esac
        /usr/bin/python3 FLOODER connections $flooded $2 20000 > flooding
    }
    finish() { # NODE: within 5 s
        kill -TERM $(process $1)
        tries=0
        while state=$(sed 's/.*) //; s/ .*//' /proc/$(process $1)/stat 2> finishing) && [ $state != Z ]; do
            tries=$((tries + 1))
            if [ $tries -ge 50 ]; then
                echo $1 >> hung
                kill -KILL $(process $1)
            fi
            sleep 0.1
        done
        wait $(process $1) || true
    }
    send 600000
    await_seconds 2
"#;

const END: &str = r#"
    kill -INT $sending
    wait $sending
    await_last
    ask tasks/load/results > load
    for node in roof cellar store controller; do
        finish $node
    done
    for node in store roof cellar; do
        umount $node
    done
"#;

/// A random schedule, as lines of a shell script.
fn schedule(seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let mut line = || {
        let nodes = ["controller", "store", "roof", "cellar"];
        let (fault, nodes) = match random.u8(..9) {
            0 => ("stall", &nodes[..]),
            1 => ("kill_and_start", &nodes[..]),
            2 => ("fill_disk", &nodes[1..]),
            3 => ("restore_folder", &nodes[2..]),
            4 => ("clone_folder", &nodes[2..]),
            5 => ("corrupt_file", &nodes[2..]),
            6 => ("cut", &nodes[..]),
            7 => ("slow_link", &nodes[..]),
            _ => ("flood", &nodes[..2]),
        };
        let node = nodes[random.usize(..nodes.len())];
        let (seconds, pause) = (random.u8(1..8), random.u8(1..4));
        format!("{fault} {node} {seconds}\nsleep {pause}\n")
    };
    let faults = Rng::with_seed(seed).usize(FAULTS);
    (0..faults).map(|_| line()).collect()
}

/// The seeds to run: of `WIRESTAMP_CHAOS`, such as `0..200`.
fn seeds() -> Range<u64> {
    let Ok(text) = env::var("WIRESTAMP_CHAOS") else { return SEEDS };
    let (from, until) = text.split_once("..").expect("WIRESTAMP_CHAOS=FROM..UNTIL");
    from.parse().unwrap()..until.parse().unwrap()
}

#[test]
fn random_faults_cause_no_false_loss() {
    if !is_root() {
        return;
    }
    for seed in seeds() {
        let (before, schedule) = (Leftovers::now(), schedule(seed));
        println!("seed {seed}:\n{schedule}");
        let (folder, message) =
            in_lab(&[&NODES.replace("FLOODER", FLOODER), &*schedule, END].concat());
        let path = results(&folder, "results", &message);
        assert!(sum(&path, "matched") > 1000, "seed {seed}: {path:#?}{message}");
        assert_counted_once(&folder);
        assert_eq!(read(folder.path(), "hung"), "", "seed {seed}: nodes do not end: {message}");
        let [visible, invisible] = ["visible", "invisible"].map(|name| read(folder.path(), name));
        println!("troubles seen within 10 s: {}\n{visible}", visible.lines().count());
        let kills = ["store", "roof", "cellar"].map(|node| format!("kill_and_start {node}"));
        assert!(!visible.is_empty() || !kills.iter().any(|it| schedule.contains(it)), "{message}");
        assert_eq!(invisible, "", "seed {seed}: not visible within 10 s: {message}");
        assert_eq!(Leftovers::now(), before, "seed {seed}");
    }
}
