//! Cost of a raw stamp, the time of day and a conversion, compared with alternatives.
//!
//! All contenders run in every round, so that a drift of the CPU's clock affects them equally. Ratios are taken
//! within a round. The result of each call is stored, but not processed. Run by `make bench`; prints one table, and
//! fails if a target is missed.

mod common;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use common::{clock_ns, machine, quantile};
use wirestamp_clock::{ClockService, Counter, Domain, Stamp, Timeline};
use wirestamp_sys::clock::ClockId;

const ROUNDS: usize = 31;
const CALLS: u32 = 20_000;
const BATCH: usize = 256;
const BATCHES: u32 = 200;

const BARE: &str = "bare instruction";
const SYSTEM: &str = "clock_gettime(CLOCK_REALTIME)";
const NOW: &str = "WallClock::now()";
const QUANTA: &str = "quanta Clock::now()";
const FASTANT: &str = "fastant Instant to unix time";
const MINSTANT: &str = "minstant Instant to unix time";

/// Tolerance of "no slower": medians of two runs of the same code differ by this much.
const NO_SLOWER: f64 = 1.01;

/// Max cost of a contender: a multiple of another contender, or nanoseconds.
enum Target {
    Times(f64, &'static str),
    Nanos(f64),
}

struct Contender<'a> {
    name: &'static str,
    targets: Vec<Target>,
    /// Runs one round; returns nanoseconds per call.
    round: Box<dyn FnMut() -> f64 + 'a>,
    nanos: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, round: impl FnMut() -> f64 + 'a) -> Self {
        let nanos = Vec::with_capacity(ROUNDS);
        Self { name, targets: Vec::new(), round: Box::new(round), nanos }
    }

    fn at_most(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }
}

/// Nanoseconds per call of `read`. Each result is stored in memory, so that the compiler keeps the call. This costs
/// each contender one store, and no call waits for the previous one.
#[inline(always)]
fn per_call<T>(read: impl Fn() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        black_box(read());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

/// Only the read instruction of this counter; none if it is not the CPU's counter.
fn bare<'a>(counter: Counter) -> Option<Contender<'a>> {
    match counter {
        #[cfg(target_arch = "x86_64")]
        Counter::Tsc => Some(Contender::new(BARE, || per_call(rdtsc))),
        #[cfg(target_arch = "aarch64")]
        Counter::Cntvct => Some(Contender::new(BARE, || per_call(cntvct))),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn rdtsc() -> u64 {
    // SAFETY: every x86-64 CPU has `rdtsc`, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn cntvct() -> u64 {
    let value: u64;
    // SAFETY: Linux lets programs read the register (or emulates it), and reading it changes neither
    // memory, nor the stack, nor the flags.
    unsafe {
        core::arch::asm!(
            "mrs {}, cntvct_el0",
            out(reg) value,
            options(nomem, nostack, preserves_flags)
        );
    }
    value
}

/// The other ordered read of the TSC: `rdtscp` waits for earlier instructions, and the fence delays later ones (Intel
/// SDM vol. 2B, RDTSCP).
#[cfg(target_arch = "x86_64")]
fn rdtscp_then_lfence() -> u64 {
    let mut core = 0;
    // SAFETY: called only if CPUID reports `rdtscp`; `core` is valid to write to.
    unsafe {
        let value = core::arch::x86_64::__rdtscp(&raw mut core);
        core::arch::x86_64::_mm_lfence();
        value
    }
}

/// CPUID leaf `0x8000_0001`, EDX bit 27.
#[cfg(target_arch = "x86_64")]
fn has_rdtscp() -> bool {
    core::arch::x86_64::__cpuid(0x8000_0001).edx & (1 << 27) != 0
}

/// Nanoseconds per packet for batches of fresh stamps, a microsecond apart at 1 GHz or more.
fn conversion(timeline: &Timeline, counter: Counter) -> f64 {
    let newest = counter.read();
    let raw: Vec<u64> = (1..=BATCH as u64).map(|i| newest - (BATCH as u64 - i) * 1_000).collect();
    let mut stamps: Vec<Stamp> = Vec::with_capacity(BATCH);
    let start = Instant::now();
    for _ in 0..BATCHES {
        stamps.clear();
        timeline.convert_batch(black_box(&raw), &mut stamps);
        black_box(&stamps);
    }
    let packets = f64::from(BATCHES) * f64::from(u32::try_from(BATCH).unwrap_or(u32::MAX));
    start.elapsed().as_secs_f64() * 1e9 / packets
}

/// Reads and conversions of this crate.
fn ours(service: &ClockService) -> Vec<Contender<'_>> {
    let counter = service.counter();
    let [wall, ordered, with_error] = std::array::from_fn(|_| service.wall_clock());
    vec![
        Contender::new("raw stamp", move || per_call(|| black_box(counter).read()))
            .at_most(Target::Times(1.05, BARE)),
        Contender::new("raw stamp, ordered", move || {
            per_call(|| black_box(counter).read_ordered())
        }),
        Contender::new("conversion in batches of 256", move || {
            conversion(&service.timeline(Domain::Counter), counter)
        })
        .at_most(Target::Nanos(2.0)),
        Contender::new(NOW, move || per_call(|| wall.now()))
            .at_most(Target::Times(0.75, SYSTEM))
            .at_most(Target::Times(NO_SLOWER, QUANTA))
            .at_most(Target::Times(NO_SLOWER, FASTANT))
            .at_most(Target::Times(NO_SLOWER, MINSTANT)),
        Contender::new("WallClock::now_ordered()", move || per_call(|| ordered.now_ordered())),
        Contender::new("WallClock::now_with_error()", move || {
            per_call(|| with_error.now_with_error())
        }),
    ]
}

/// The system's clocks, and the nearest equivalents of [`NOW`] in other libraries, called as documented: quanta has
/// no time of day, the other two add an offset taken at the start.
fn others<'a>() -> Vec<Contender<'a>> {
    let quanta = quanta::Clock::new();
    let fastant = fastant::Anchor::new();
    let minstant = minstant::Anchor::new();
    vec![
        Contender::new(SYSTEM, || per_call(|| clock_ns(ClockId::Realtime))),
        Contender::new("std::time::Instant::now()", || per_call(Instant::now)),
        Contender::new(QUANTA, move || per_call(|| quanta.now())),
        Contender::new(FASTANT, move || {
            per_call(|| fastant::Instant::now().as_unix_nanos(&fastant))
        }),
        Contender::new(MINSTANT, move || {
            per_call(|| minstant::Instant::now().as_unix_nanos(&minstant))
        }),
    ]
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

fn spread(values: &[f64]) -> String {
    let sorted = sorted(values);
    let [low, median, high] = [0.1, 0.5, 0.9].map(|part| quantile(&sorted, part));
    format!("{median:>8.3} {low:>8.3} ..{high:>8.3}")
}

fn ratios(values: &[f64], base: &[f64]) -> Vec<f64> {
    values.iter().zip(base).map(|(value, base)| value / base).collect()
}

impl Target {
    /// Result against the target, and whether the target is met.
    fn verdict(&self, nanos: &[f64], contenders: &[Contender]) -> (String, bool) {
        let (values, limit, unit) = match *self {
            Self::Nanos(limit) => (nanos.to_vec(), limit, " ns".to_owned()),
            Self::Times(limit, name) => match nanos_of(name, contenders) {
                Some(base) => (ratios(nanos, base), limit, format!(" of {name}")),
                None => return (format!("there is no {name} here to compare with"), true),
            },
        };
        let met = median(&values) <= limit;
        let verdict = if met { "met" } else { "MISSED" };
        (format!("{}  at most {limit}{unit}: {verdict}", spread(&values)), met)
    }
}

fn nanos_of<'a>(name: &str, contenders: &'a [Contender]) -> Option<&'a [f64]> {
    let named = contenders.iter().find(|contender| contender.name == name)?;
    Some(&named.nanos)
}

fn main() -> ExitCode {
    let counter = Counter::select();
    println!("{}", machine(counter));
    println!("{ROUNDS} rounds in turn; median, p10..p90; ratios within a round");
    let service = match ClockService::start(counter) {
        Ok(service) => service,
        Err(error) => {
            eprintln!("the clocks cannot be calibrated: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut contenders: Vec<Contender> = bare(counter).into_iter().collect();
    contenders.extend(ours(&service));
    contenders.extend(others());
    #[cfg(target_arch = "x86_64")]
    if has_rdtscp() {
        contenders.push(Contender::new("rdtscp; lfence", || per_call(rdtscp_then_lfence)));
    }
    for round in 0..=ROUNDS {
        for contender in &mut contenders {
            let nanos = (contender.round)();
            // The first round warms up caches and the CPU's clock.
            if round > 0 {
                contender.nanos.push(nanos);
            }
        }
    }
    print_table(&contenders);
    if meets_targets(&contenders) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_table(contenders: &[Contender]) {
    println!("{:<31}{:>8} {:>8}   {:>8}   ratio to the {BARE}", "ns", "median", "p10", "p90");
    for contender in contenders {
        let ratio = match nanos_of(BARE, contenders) {
            Some(bare) => format!("x{}", spread(&ratios(&contender.nanos, bare))),
            None => "there is none".to_owned(),
        };
        println!("{:<31}{}  {ratio}", contender.name, spread(&contender.nanos));
    }
}

/// Prints the results against all targets; true if all are met.
fn meets_targets(contenders: &[Contender]) -> bool {
    println!("\nTargets");
    let mut all = true;
    for contender in contenders {
        for target in &contender.targets {
            let (verdict, met) = target.verdict(&contender.nanos, contenders);
            println!("{:<31}{verdict}", contender.name);
            all &= met;
        }
    }
    all
}
