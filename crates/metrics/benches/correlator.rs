//! Observations per second that one core correlates, and the memory used.
//!
//! Traffic is generated in advance, some thousand observations at a time. Only the CPU time of the correlator's thread
//! counts, which excludes other processes (except for their effect on the caches). Run by `make bench`. Prints two
//! tables, and the targets missed: 5 million observations a second, and 1.1 times the memory limit. An argument such
//! as in `cargo bench -p wirestamp-metrics --bench correlator -- 100,000` selects the scenarios whose names contain
//! it.

#[path = "../tests/peak/mod.rs"]
mod peak;
#[path = "../tests/traffic/mod.rs"]
mod traffic;

use std::time::Duration;

use peak::peak_of;
use rustix::time::{ClockId, clock_gettime};
use traffic::Traffic;
use wirestamp_clock::Span;
use wirestamp_metrics::{Config, Correlator, Outcome};

const ROUNDS: usize = 5;
/// Packets that pass A in a round, after the warm-up.
const PACKETS: u64 = 10_000_000;
const WARM_UP: u64 = 2_500_000;
/// Packets between two reads of the clock.
const BATCH: u64 = 2000;
/// Min median of the rounds, in million observations a second.
const TARGET: f64 = 5.0;
/// Packets of the run with too little memory: 100 million observations.
const MANY_PACKETS: u64 = 51_100_000;
const MEMORIES: [usize; 2] = [16 << 20, 64 << 20];
/// Max share of the memory limit.
const MAX_SHARE: f64 = 1.1;

/// Traffic, and the timeout in microseconds.
struct Scenario {
    name: &'static str,
    traffic: Traffic,
    timeout: i64,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "1,000 packets in flight, 16 flows",
        traffic: Traffic { under_way: 1000, flows: 16, random_flows: true },
        timeout: 2000,
    },
    Scenario {
        name: "20,000 in flight, kept for 1 s, 1,000 flows",
        traffic: Traffic { under_way: 20_000, flows: 1000, random_flows: true },
        timeout: 1_000_000,
    },
    Scenario {
        name: "1,000,000 in flight, 1,000 flows",
        traffic: Traffic { under_way: 1_000_000, flows: 1000, random_flows: true },
        timeout: 1_000_500,
    },
    Scenario {
        name: "1,000,000 in flight, 100,000 flows",
        traffic: Traffic { under_way: 1_000_000, flows: 100_000, random_flows: true },
        timeout: 1_000_500,
    },
];

/// Result of a run.
#[derive(Default)]
struct Run {
    observations: u64,
    matched: u64,
    lost: u64,
    undetermined: u64,
    time: Duration,
}

/// Runs `packets` packets past A; measures the time of those from `warm_up` on.
fn run(traffic: Traffic, config: Config, warm_up: u64, packets: u64) -> Run {
    let mut run = Run::default();
    let mut correlator = Correlator::new(config);
    let mut seen = Vec::new();
    for first in (0..packets).step_by(usize::try_from(BATCH).expect("some thousand")) {
        (first..first + BATCH).for_each(|number| traffic.step(number, &mut seen));
        if first >= warm_up {
            run.observations += u64::try_from(seen.len()).expect("some thousand");
        }
        let start = cpu_time();
        let mut count = |outcome| match outcome {
            Outcome::Matched { .. } => run.matched += 1,
            Outcome::Lost { .. } => run.lost += 1,
            Outcome::Undetermined { .. } => run.undetermined += 1,
            _ => {}
        };
        correlator.observe_all(&seen, |it| (it.0, &it.1), &mut count);
        if first >= warm_up {
            run.time += cpu_time().saturating_sub(start);
        }
        seen.clear();
    }
    run
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it began at 0")
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

/// Prints millions of observations a second.
fn speed(scenario: &Scenario) {
    let timeout = Span::from_micros(scenario.timeout);
    let config = Config { timeout, memory: 512 << 20, ..Config::default() };
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let run = run(scenario.traffic, config, WARM_UP, WARM_UP + PACKETS);
            assert!(run.undetermined == 0 && run.lost > 0 && run.matched > PACKETS / 2);
            real(run.observations) / run.time.as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let median = rates[ROUNDS / 2];
    println!(
        "{:45} {median:6.2} ({:.2}..{:.2}) {}",
        scenario.name,
        rates[0],
        rates[ROUNDS - 1],
        verdict(median >= TARGET)
    );
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// Prints the peak memory where more packets are in flight than fit.
fn bounded(memory: usize) {
    let traffic = Traffic { under_way: 2_000_000, flows: 10_000, random_flows: true };
    let config = Config { timeout: Span::from_secs(10), memory, ..Config::default() };
    let mut found = Run::default();
    let peak = peak_of(|| found = run(traffic, config, 0, MANY_PACKETS));
    let share = real(peak as u64) / real(memory as u64);
    println!(
        "{:6} MiB {:10.2} MiB {share:8.3} {:14} {:14} {}",
        memory >> 20,
        real(peak as u64) / f64::from(1 << 20),
        found.observations,
        found.undetermined,
        verdict(found.undetermined > 0 && share <= MAX_SHARE),
    );
}

fn main() {
    println!(
        "2 points, 1 thread: million observations a second of CPU time, median of {ROUNDS} rounds \
         (spread), target {TARGET}"
    );
    // Cargo adds an option.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |it: &&Scenario| filter.as_ref().is_none_or(|filter| it.name.contains(filter));
    SCENARIOS.iter().filter(chosen).for_each(speed);
    if filter.is_some() {
        return;
    }
    println!(
        "\n   allowed           peak    share   observations   undetermined, target {MAX_SHARE}"
    );
    MEMORIES.into_iter().for_each(bounded);
}
