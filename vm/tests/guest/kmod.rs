//! The kernel module: it loads, serves XDP and tc programs, and unloads.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use libbpf_rs::{
    MapCore, MapFlags, Object, ObjectBuilder, PrintLevel, ProgramInput, ProgramMut, set_print,
};
use wirestamp_clock::Counter;

use crate::tools::{attempt, run};
use crate::traffic::Traffic;

/// Path at which `vm/kernel` installs the module.
const MODULE: &str = "/modules/wirestamp.ko";
/// The programs that call its function.
const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/counter.bpf.o"));

/// Timeout far above the duration of every step, also by an emulated clock.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Messages of libbpf.
static LIBBPF_LOG: Mutex<String> = Mutex::new(String::new());

const LOADS: u32 = 100;

fn is_loaded() -> bool {
    Path::new("/sys/module/wirestamp").exists()
}

fn assert_loaded() {
    let log = run("dmesg", &[]);
    let why = log.lines().rfind(|line| line.contains("wirestamp:")).unwrap_or("none");
    assert!(is_loaded(), "vm/init has not loaded the module; the kernel's last word on it: {why}");
}

fn load() {
    run("insmod", &[MODULE]);
}

/// Unloads the module. The kernel frees a program some time after its last user ended, and then releases the module.
fn unload() {
    let begun = Instant::now();
    loop {
        let output = attempt("rmmod", &["wirestamp"]);
        if output.status.success() {
            return;
        }
        assert!(begun.elapsed() < STEP_TIMEOUT, "the module is not freed: {}", messages(&output));
    }
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn open() -> libbpf_rs::Result<Object> {
    ObjectBuilder::default().open_memory(PROGRAMS)?.load()
}

fn program<'o>(object: &'o Object, name: &str) -> ProgramMut<'o> {
    object.progs_mut().find(|program| program.name() == name).unwrap()
}

/// The two values that a program read in its first run.
fn values(object: &Object) -> [u64; 2] {
    let map = object.maps().find(|map| map.name() == "reads").unwrap();
    let kept = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    [0, 8].map(|at| u64::from_ne_bytes(kept[at..at + 8].try_into().unwrap()))
}

/// Runs a program once, between two reads of the counter in user space.
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

/// The values that an attached program reads at the first packet. It stores the second value last.
fn wait_for_a_packet(object: &Object) -> [u64; 2] {
    let begun = Instant::now();
    loop {
        match values(object) {
            [_, 0] => assert!(begun.elapsed() < STEP_TIMEOUT, "no packet came, or 0 was read"),
            reads => return reads,
        }
    }
}

#[test]
fn programs_of_both_kinds_read_the_counter_that_user_space_reads() {
    assert_loaded();
    for name in ["in_xdp", "in_tc"] {
        let object = open().unwrap();
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
    assert_loaded();
    unload();
    assert!(!is_loaded());
    set_print(Some((PrintLevel::Warn, |_, messages| {
        LIBBPF_LOG.lock().unwrap().push_str(&messages)
    })));
    let opened = open();
    set_print(None);
    load();
    assert!(opened.is_err(), "a program was loaded that calls what is not there");
    let messages = LIBBPF_LOG.lock().unwrap();
    assert!(messages.contains("'bpf_wirestamp_counter': not found"), "{messages}");
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
            let [first, second] = wait_for_a_packet(&object);
            assert!(0 < first && first < second, "round {round}: {first} and {second} were read");
            drop(link);
        }
    });
    drop(traffic);
    let log = run("dmesg", &[]);
    let signs = ["WARNING:", "BUG:", "Oops", "Call Trace:"];
    let complaints = log.lines().filter(|line| signs.iter().any(|sign| line.contains(sign)));
    assert_eq!(complaints.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(fs::read_to_string("/proc/modules").unwrap().contains("wirestamp"));
}
