//! Error of converted time against the system clock, and violations of the error bound.
//!
//! `cargo bench -p wirestamp-clock --bench accuracy -- --seconds 600 [--busy]`
//!
//! The system clock is read before and after each stamp. Its time at the stamp lies between the two readings, so the
//! error is known to half their distance. Three times are compared with it: the wall clock's, the immediate
//! conversion by the newest timeline, and a conversion one second later with anchors on both sides. With `--busy`
//! every other core spins. Fails if the wall clock misses a target.

mod common;

use std::collections::VecDeque;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{clock_ns, machine, quantile};
use wirestamp_clock::{ClockService, Counter, Stamp, Time, Utc};
use wirestamp_sys::clock::ClockId;

/// Pause between samples; ten minutes give half a million.
const PAUSE: Duration = Duration::from_millis(1);

/// Max distance of the readings around an uninterrupted stamp. The bound must also hold for interrupted samples, but
/// they are excluded from the error.
const CLEAN: i64 = 150;

/// A relaxed read of the counter does not wait for earlier loads. The value can be early by this much: a load that
/// misses all caches takes about 100 ns.
const REORDERING: i64 = 100;

/// After this time a raw value lies between anchors.
const BRACKETED: Duration = Duration::from_secs(1);

/// Start of the statistics; until this time the bound shrinks.
const SETTLING_TIME: Duration = Duration::from_secs(10);

/// Targets of the wall clock, in nanoseconds and as a share.
const P99_TARGET: i64 = 150;
const BOUND_TARGET: i64 = 1_000;
const VIOLATIONS_TARGET: f64 = 1e-4;
const RATE_TARGET_PPM: f64 = 0.1;

const HEAD: [[&str; 9]; 2] = [
    ["ns", "offset", "|error|", "", "", "", "bound", "", "violations"],
    ["", "median", "median", "p99", "p99.99", "max", "median", "widest", ""],
];

struct Arguments {
    seconds: u64,
    busy: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { seconds: 20, busy: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = arguments.next().and_then(|text| text.parse().ok());
                let above = seconds.filter(|&seconds| seconds > SETTLING_TIME.as_secs());
                parsed.seconds = above.ok_or("--seconds takes a whole number above 10")?;
            }
            "--busy" => parsed.busy = true,
            // cargo bench passes this to every benchmark.
            "--bench" => {}
            other => return Err(format!("{other} is not known; there are --seconds N and --busy")),
        }
    }
    Ok(parsed)
}

/// Readings of the system clock around a stamp.
struct Bracket {
    before: i64,
    after: i64,
}

impl Bracket {
    fn half_width(&self) -> i64 {
        (self.after - self.before) / 2
    }

    fn is_clean(&self) -> bool {
        self.after - self.before <= CLEAN
    }

    /// Offset of `utc` from the middle of the bracket.
    fn offset(&self, utc: Time<Utc>) -> i64 {
        utc.as_nanos() - (self.before + self.half_width())
    }

    /// True if the system time of the stamp can lie within the stamp's error.
    fn allows(&self, stamp: &Stamp) -> bool {
        let (utc, error) = (stamp.utc.as_nanos(), stamp.error.as_nanos());
        utc + error + REORDERING >= self.before && utc - error <= self.after
    }
}

/// Errors of one way of conversion.
#[derive(Default)]
struct ConversionErrors {
    offsets: Vec<i64>,
    bounds: Vec<i64>,
    violations: u32,
}

impl ConversionErrors {
    fn add(&mut self, bracket: &Bracket, stamp: &Stamp) {
        self.bounds.push(stamp.error.as_nanos());
        self.violations += u32::from(!bracket.allows(stamp));
        if bracket.is_clean() {
            self.offsets.push(bracket.offset(stamp.utc));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of some 100,000")]
    fn violated(&self) -> f64 {
        f64::from(self.violations) / self.bounds.len() as f64
    }

    fn sizes(&self) -> Vec<i64> {
        let mut sizes: Vec<i64> = self.offsets.iter().map(|offset| offset.abs()).collect();
        sizes.sort_unstable();
        sizes
    }

    fn print(&mut self, name: &str) {
        self.bounds.sort_unstable();
        let sizes = self.sizes();
        self.offsets.sort_unstable();
        let [median, p99, p9999, max] = [0.5, 0.99, 0.9999, 1.0].map(|part| quantile(&sizes, part));
        let [bound, widest] = [0.5, 1.0].map(|part| quantile(&self.bounds, part));
        println!(
            "{name:<27}{:>7} {median:>7} {p99:>7} {p9999:>7} {max:>7} {bound:>8} {widest:>8} {:>10}",
            quantile(&self.offsets, 0.5),
            format!("{}", self.violations),
        );
    }
}

/// A sample that waits for an anchor after it.
struct PendingSample {
    taken: Instant,
    bracket: Bracket,
    raw: u64,
}

struct Run {
    service: ClockService,
    wall: ConversionErrors,
    live: ConversionErrors,
    bracketed: ConversionErrors,
    waiting: VecDeque<PendingSample>,
}

impl Run {
    fn sample(&mut self, settled: bool) {
        let (wall_clock, domain) = (self.service.wall_clock(), self.service.counter().domain());
        let before = clock_ns(ClockId::Realtime);
        let stamp = wall_clock.now_with_error();
        let after = clock_ns(ClockId::Realtime);
        if !settled {
            return;
        }
        let bracket = Bracket { before, after };
        let raw = stamp.raw.value;
        self.wall.add(&bracket, &stamp);
        self.live.add(&bracket, &self.service.timeline(domain).convert(raw));
        self.waiting.push_back(PendingSample { taken: Instant::now(), bracket, raw });
        let due = |waiting: &&PendingSample| waiting.taken.elapsed() > BRACKETED;
        if let Some(PendingSample { bracket, raw, .. }) = self.waiting.front().filter(due) {
            self.bracketed.add(bracket, &self.service.timeline(domain).convert(*raw));
            self.waiting.pop_front();
        }
    }
}

/// Prints the wall clock's bound in the first seconds.
fn print_settling(service: &ClockService, start: Instant) {
    println!("\nThe bound after the start of the service ({:?}):", start.elapsed());
    for millis in [1, 3, 10, 30, 100, 300, 1_000, 3_000] {
        thread::sleep(Duration::from_millis(millis).saturating_sub(start.elapsed()));
        let error = service.wall_clock().now_with_error().error;
        println!("{:>12.1} ms {:>10} ns", start.elapsed().as_secs_f64() * 1e3, error.as_nanos());
    }
}

/// The counter's current rate, against `CLOCK_MONOTONIC_RAW` over the whole run.
struct RateReference {
    counter: u64,
    steady: i64,
}

impl RateReference {
    /// The tightest of several reads.
    fn read(counter: Counter) -> Self {
        let read = || {
            let first = counter.read_ordered();
            let steady = clock_ns(ClockId::MonotonicRaw);
            let width = counter.read_ordered() - first;
            (width, Self { counter: first + width / 2, steady })
        };
        let tightest = (0..100).map(|_| read()).min_by_key(|&(width, _)| width);
        tightest.expect("a hundred reads").1
    }

    #[expect(clippy::cast_precision_loss, reason = "relative error 2^-53")]
    fn hertz_since(&self, earlier: &Self) -> f64 {
        (self.counter - earlier.counter) as f64 * 1e9 / (self.steady - earlier.steady) as f64
    }
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let counter = Counter::select();
    let spinners = if arguments.busy { cores() - 1 } else { 0 };
    let chosen = start.elapsed();
    println!("{}", machine(counter));
    println!("the source was chosen in {chosen:?}");
    println!("{} s, a sample each {PAUSE:?}, {spinners} other cores kept busy", arguments.seconds);
    let running = AtomicBool::new(true);
    let met = thread::scope(|scope| {
        for _ in 0..spinners {
            scope.spawn(|| {
                let mut work = 0_u64;
                while running.load(Ordering::Relaxed) {
                    work = black_box(work.wrapping_mul(3).wrapping_add(1));
                }
            });
        }
        let met = measure(counter, Duration::from_secs(arguments.seconds));
        running.store(false, Ordering::Relaxed);
        met
    });
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Measures; true if the targets are met.
fn measure(counter: Counter, duration: Duration) -> bool {
    let start = Instant::now();
    let service = ClockService::start(counter).expect("a clock that runs");
    print_settling(&service, start);
    let yardstick = RateReference::read(counter);
    let mut run = Run {
        service,
        wall: ConversionErrors::default(),
        live: ConversionErrors::default(),
        bracketed: ConversionErrors::default(),
        waiting: VecDeque::new(),
    };
    while start.elapsed() < duration {
        run.sample(start.elapsed() > SETTLING_TIME);
        thread::sleep(PAUSE);
    }
    report(run, &yardstick)
}

fn report(mut run: Run, yardstick: &RateReference) -> bool {
    let (count, clean) = (run.wall.bounds.len(), run.wall.offsets.len());
    println!("\n{count} samples after {SETTLING_TIME:?}, {} of them interrupted", count - clean);
    for [name, offset, median, p99, p9999, max, bound, widest, violations] in HEAD {
        println!(
            "{name:<27}{offset:>7} {median:>7} {p99:>7} {p9999:>7} {max:>7} {bound:>8} {widest:>8} \
             {violations:>10}"
        );
    }
    run.wall.print("wall clock");
    run.live.print("raw, converted at once");
    run.bracketed.print("raw, converted 1 s later");
    let rate = run.service.timeline(run.service.counter().domain()).difference();
    let measured = RateReference::read(run.service.counter()).hertz_since(yardstick);
    let ppm = (rate.frequency_hz() / measured - 1.0) * 1e6;
    let steps = run.service.status().steps;
    println!("\nrate: {:.6} MHz, off by {ppm:.4} ppm", rate.frequency_hz() / 1e6);
    println!("rate's bound: {:.4} ppm; steps of the clock: {steps}", rate.rate_error_ppm());
    println!("\nTargets for the wall clock");
    let targets = [
        ("p99 of |error| at most 150 ns", quantile(&run.wall.sizes(), 0.99) <= P99_TARGET),
        ("bound at most 1 us", run.wall.bounds.last() <= Some(&BOUND_TARGET)),
        ("bound held in 99.99 %", run.wall.violated() <= VIOLATIONS_TARGET),
        ("rate within 0.1 ppm", ppm.abs() < RATE_TARGET_PPM),
    ];
    for (what, met) in targets {
        println!("{what}: {}", if met { "met" } else { "MISSED" });
    }
    targets.iter().all(|&(_, met)| met)
}
