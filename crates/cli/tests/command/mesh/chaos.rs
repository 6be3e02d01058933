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
    let_in_collector store collector.log
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
    stall() { # NODE SECONDS
        kill -STOP $(process $1)
        sleep $2
        kill -CONT $(process $1)
    }
    kill_and_start() { # NODE SECONDS
        killed $(process $1)
        sleep $2
        start $1
    }
    fill_disk() { # NODE SECONDS
        cat /dev/zero > $1/filler 2> filling || true
        sleep $2
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
    clone_folder() { # NODE SECONDS: a copy of the probe runs beside it
        rm -rf copy
        cp -r $1 copy 2> copying || true # some files may be gone meanwhile
        next_log
        "$0" probe $address --folder copy --namespaces 2> copy.$logs.log &
        copy=$!
        sleep $2
        killed $copy
    }
    flood() { # NODE SECONDS: connections of a stranger
        case $1 in
            controller) flooded=$address ;;
            store) flooded=$listens ;;
        esac
        /usr/bin/python3 FLOODER connections $flooded $2 > flooding
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
        let (fault, nodes) = match random.u8(..6) {
            0 => ("stall", &nodes[..]),
            1 => ("kill_and_start", &nodes[..]),
            2 => ("fill_disk", &nodes[1..]),
            3 => ("restore_folder", &nodes[2..]),
            4 => ("clone_folder", &nodes[2..]),
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
        assert_eq!(Leftovers::now(), before, "seed {seed}");
    }
}
