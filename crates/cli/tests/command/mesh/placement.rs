//! Many tasks on three collectors: placed evenly, and moved within seconds when one is killed.

use std::collections::BTreeMap;
use std::env;

use crate::common::{Leftovers, is_root};
use crate::mesh::{in_lab, read};

/// Tasks on a busy machine with two cores; `WIRESTAMP_TASKS` sets another number, such as 10,000.
const TASKS: usize = 500;

/// Of one collector to another: max of the ratio of tasks.
const MAX_RATIO: f64 = 1.2;

/// Max time until the tasks of a killed collector are at others, in milliseconds, with `--move-after 2s`.
const MAX_MOVE_MS: u64 = 30_000;

/// The tasks wait for their start, so that only the control of the mesh is busy.
const PLACED: &str = r#"
    kill -INT $controller
    wait $controller
    for number in $(seq TASKS); do
        cat << TASK
    [[task]]
    name = "waiting$number"
    measure = "passive-delay"
    from = "roof/tap-a@wirestamp-router"
    to = "cellar/tap-b@wirestamp-sink"
    filter = "udp and dst port 7001"
    schedule = { start = "2100-01-01T00:00:00Z" }
TASK
    done >> tasks.toml
    start_controller $address controller2.log --move-after 2s
    for name in attic store shed; do let_in_collector $name $name.log; done
    placed() { # FILE: the tasks of each collector
        ask ../../metrics | sed -n 's/^wirestamp_collector_tasks{collector="\(.*\)"} /\1 /p' > $1
    }
    number() { awk -v of=$1 '$1 == of { print $2 }' $2; }
    since() { echo $((($(date +%s%N) - $1) / 1000000)); }
    at=$(date +%s%N)
    let_in roof roof.log
    let_in cellar cellar.log
    until placed placed && [ "$(awk '$1 != "controller" { sum += $2 } END { print sum }' placed)" -ge TASKS ]; do
        sleep 0.1
    done
    since $at > placed.ms
    killed $store
    at=$(date +%s%N)
    until placed moved && [ "$(number store moved)" = 0 ]; do sleep 0.1; done
    since $at > moved.ms
    sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$controller/status > memory.kib
    awk '{ print $14 + $15 }' /proc/$controller/stat > cpu.ticks
    getconf CLK_TCK > ticks
    end
    kill -INT $attic $shed
    wait $attic $shed
"#;

#[test]
fn many_tasks_are_placed_evenly_and_move_within_seconds() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let tasks = env::var("WIRESTAMP_TASKS").map_or(TASKS, |number| number.parse().unwrap());
    let (folder, message) = in_lab(&PLACED.replace("TASKS", &tasks.to_string()));
    let number = |name: &str| -> u64 { read(folder.path(), name).trim().parse().unwrap() };
    let placed = |name: &str| -> BTreeMap<String, f64> {
        let lines = read(folder.path(), name);
        let entries = lines.lines().filter_map(|line| line.split_once(' '));
        let of_others = entries.filter(|(collector, _)| *collector != "controller");
        of_others.map(|(collector, it)| (collector.to_owned(), it.parse().unwrap())).collect()
    };
    let ratio = |placed: &BTreeMap<String, f64>| {
        let tasks = || placed.values().copied();
        tasks().reduce(f64::max).unwrap() / tasks().reduce(f64::min).unwrap()
    };
    let (first, mut then) = (placed("placed"), placed("moved"));
    println!("placed: {first:?} after {} ms", number("placed.ms"));
    println!("after one was killed: {then:?} after {} ms", number("moved.ms"));
    let seconds = number("cpu.ticks") / number("ticks");
    println!("controller: {} MB at most, {seconds} s of CPU", number("memory.kib") / 1000);
    then.remove("store");
    assert_eq!([first.len(), then.len()], [3, 2], "{message}");
    assert!(ratio(&first) <= MAX_RATIO && ratio(&then) <= MAX_RATIO, "{first:?} {then:?}");
    let moved = then.values().sum::<f64>() - first.values().sum::<f64>();
    assert!(moved.abs() < 0.5, "{first:?} {then:?}");
    assert!(number("moved.ms") < MAX_MOVE_MS, "{message}");
    assert_eq!(Leftovers::now(), before);
}
