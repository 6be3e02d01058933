//! The kernel module: it loads, serves XDP and tc programs, and unloads.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};
use wirestamp_clock::Counter;

use crate::tools::{attempt, run};
use crate::traffic::Traffic;

/// Where `vm/image` puts the module, and the programs that call its function.
const MODULE: &str = "/modules/wirestamp.ko";
const PROGRAMS: &str = "/lib/counter.bpf.o";

/// The kernel frees a program some time after its last user is gone, and the module with it.
const FREED_WITHIN: Duration = Duration::from_secs(20);

const LOADS: u32 = 100;

fn is_loaded() -> bool {
    Path::new("/sys/module/wirestamp").exists()
}

fn assert_loaded() {
    let log = run("dmesg", &[]);
    let why = log.lines().rfind(|line| line.contains("wirestamp")).unwrap_or("it says nothing");
    assert!(is_loaded(), "the module is not loaded; the kernel's last word on it: {why}");
}

fn load() {
    run("insmod", &[MODULE]);
}

/// Unloads the module once no program holds it.
fn unload() {
    let begun = Instant::now();
    loop {
        let output = attempt("rmmod", &["wirestamp"]);
        if output.status.success() {
            return;
        }
        assert!(begun.elapsed() < FREED_WITHIN, "the module is not freed: {}", said(&output));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn open() -> libbpf_rs::Result<Object> {
    ObjectBuilder::default().open_file(PROGRAMS)?.load()
}

fn program<'o>(object: &'o Object, name: &str) -> ProgramMut<'o> {
    object.progs_mut().find(|program| program.name() == name).unwrap()
}

/// What the program read last, and right before that.
fn values(object: &Object) -> [u64; 2] {
    let map = object.maps().find(|map| map.name() == "read").unwrap();
    [0_u32, 1].map(|key| {
        let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        u64::from_ne_bytes(value.try_into().unwrap())
    })
}

/// Runs a program once, between two reads of the counter from here.
fn reads_between(object: &Object, name: &str) -> [u64; 4] {
    let counter = Counter::named("tsc").expect("this boot has a TSC that is trusted");
    let packet = [0; 64];
    let input = ProgramInput { data_in: Some(&packet), ..ProgramInput::default() };
    let before = counter.read_ordered();
    program(object, name).test_run(input).unwrap();
    let after = counter.read_ordered();
    let [first, second] = values(object);
    [before, first, second, after]
}

#[test]
fn programs_of_both_kinds_read_the_counter_that_user_space_reads() {
    assert_loaded();
    let object = open().unwrap();
    for name in ["in_xdp", "in_tc"] {
        let reads = reads_between(&object, name);
        let [before, first, second, after] = reads;
        assert!(first != 0, "{name}: bpf_wirestamp_counter() returned 0");
        assert!(
            before < first && first < second && second < after,
            "{name}: the counter was {before} before, {first} and {second} in the program, and \
             {after} after it"
        );
    }
}

#[test]
fn a_module_that_a_program_needs_stays() {
    assert_loaded();
    let object = open().unwrap();
    let output = attempt("rmmod", &["wirestamp"]);
    assert!(!output.status.success() && is_loaded(), "the module went from under a program");
    drop(object);
    unload();
    load();
}

#[test]
fn without_the_module_its_function_is_not_found() {
    unload();
    assert!(!is_loaded());
    let error = open().err().map(|error| format!("{error:#}"));
    load();
    assert!(error.is_some(), "a program was loaded that calls what is not there");
}

#[test]
fn a_hundred_loads_and_unloads_under_traffic_leave_no_warning() {
    assert_loaded();
    let traffic = Traffic::start();
    traffic.at_sink(|interface| {
        for round in 0..LOADS {
            unload();
            load();
            let object = open().unwrap();
            let link = program(&object, "in_xdp").attach_xdp(interface).unwrap();
            traffic.wait_for_packets();
            drop(link);
            let [first, second] = values(&object);
            assert!(0 < first && first < second, "round {round}: {first} and {second} were read");
        }
    });
    drop(traffic);
    let log = run("dmesg", &[]);
    let signs = ["WARNING:", "BUG:", "Oops", "Call Trace:"];
    let complaints = log.lines().filter(|line| signs.iter().any(|sign| line.contains(sign)));
    assert_eq!(complaints.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(fs::read_to_string("/proc/modules").unwrap().contains("wirestamp"));
}
