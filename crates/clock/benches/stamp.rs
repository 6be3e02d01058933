//! What a raw stamp and its conversion cost, beside what else could be called.
//!
//! All contenders take turns in every round, so that a drift of the CPU's clock meets them alike.
//! Ratios are taken within a round. Run by `make bench`; prints one table.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use wirestamp_clock::{ClockService, Counter, Domain, Stamp, Timeline};

const ROUNDS: usize = 31;
const CALLS: u32 = 20_000;
const BATCH: usize = 256;
const BATCHES: u32 = 200;

/// A raw stamp may cost this many times the bare instruction.
const STAMP_TARGET: f64 = 1.05;
/// A conversion may cost this many nanoseconds per packet.
const CONVERSION_TARGET: f64 = 2.0;

struct Contender<'a> {
    name: &'static str,
    /// Runs one round and says how many nanoseconds a call took.
    round: Box<dyn FnMut() -> f64 + 'a>,
    nanos: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, round: impl FnMut() -> f64 + 'a) -> Self {
        Self { name, round: Box::new(round), nanos: Vec::with_capacity(ROUNDS) }
    }
}

/// Nanoseconds per call of `read`, whose results are added up so that none can be left out.
#[inline(always)]
fn per_call(mut read: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    let mut sum = 0_u64;
    for _ in 0..CALLS {
        sum = sum.wrapping_add(read());
    }
    let elapsed = start.elapsed();
    black_box(sum);
    elapsed.as_secs_f64() * 1e9 / f64::from(CALLS)
}

#[cfg(target_arch = "x86_64")]
fn bare_instruction() -> u64 {
    // SAFETY: every x86-64 CPU has `rdtsc`, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The other ordered read of the TSC: `rdtscp` waits for what stands before it, and the fence holds
/// back what follows (Intel SDM vol. 2B, RDTSCP).
#[cfg(target_arch = "x86_64")]
fn rdtscp_then_lfence() -> u64 {
    let mut core = 0;
    // SAFETY: called only where CPUID tells of `rdtscp`; `core` is valid to write to.
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

/// Where there is no TSC the fallback is compared with itself.
#[cfg(not(target_arch = "x86_64"))]
fn bare_instruction() -> u64 {
    Counter::Os.read()
}

fn clock_realtime() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_nsec.unsigned_abs()
}

fn instant(origin: Instant) -> u64 {
    Instant::now().duration_since(origin).subsec_nanos().into()
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

/// The value below which `part` of the sorted values lie.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index among 31"
    )]
    let index = ((sorted.len() - 1) as f64 * part).round() as usize;
    sorted[index]
}

fn spread(values: &[f64]) -> String {
    let [low, median, high] = [0.1, 0.5, 0.9].map(|part| quantile(values, part));
    format!("{median:>8.3} {low:>8.3} ..{high:>8.3}")
}

fn verdict(value: f64, target: f64, unit: &str) -> String {
    let met = if value <= target { "met" } else { "MISSED" };
    format!("  target <= {target}{unit}: {met}")
}

fn print_header(counter: Counter) {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let date = Command::new("date").arg("--iso-8601=seconds").output();
    let date = date.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{}; Linux {}; {}; clock source {}; counter {}; {cores} cores",
        date.unwrap_or_else(|_| "date unknown".to_owned()),
        text("/proc/sys/kernel/osrelease"),
        model.trim_start_matches([' ', '\t', ':']),
        text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        counter.name(),
    );
    println!("{ROUNDS} rounds in turn; median, p10..p90; ratios within a round");
}

fn main() {
    let counter = Counter::select();
    print_header(counter);
    let service = match ClockService::start(counter) {
        Ok(service) => service,
        Err(error) => {
            eprintln!("the clocks cannot be calibrated: {error}");
            std::process::exit(1);
        }
    };
    let origin = Instant::now();
    let mut contenders = vec![
        Contender::new("bare instruction", || per_call(bare_instruction)),
        Contender::new("raw stamp", || per_call(|| black_box(counter).read())),
        Contender::new("raw stamp, ordered", || per_call(|| black_box(counter).read_ordered())),
        Contender::new("clock_gettime(CLOCK_REALTIME)", || per_call(clock_realtime)),
        Contender::new("std::time::Instant::now()", || per_call(|| instant(origin))),
        Contender::new("conversion in batches of 256", || {
            conversion(&service.timeline(Domain::Counter), counter)
        }),
    ];
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
    let bare = contenders[0].nanos.clone();
    println!(
        "{:<31}{:>8} {:>8}   {:>8}   ratio to the bare instruction",
        "ns", "median", "p10", "p90"
    );
    for (index, contender) in contenders.iter().enumerate() {
        let ratios: Vec<f64> = contender.nanos.iter().zip(&bare).map(|(a, b)| a / b).collect();
        let target = match index {
            1 => verdict(quantile(&ratios, 0.5), STAMP_TARGET, "x"),
            5 => verdict(quantile(&contender.nanos, 0.5), CONVERSION_TARGET, " ns"),
            _ => String::new(),
        };
        println!(
            "{:<31}{}  x{}{target}",
            contender.name,
            spread(&contender.nanos),
            spread(&ratios)
        );
    }
}
