//! Error of converted time against the system clock, and violations of the error bound.
//!
//! `cargo bench -p wirestamp-clock --bench accuracy -- --seconds 600 [--busy]`
//!
//! The system clock is read before and after each stamp. Its time at the stamp lies between the two readings, so the
//! error is known to half their distance. Three times are compared with it: the wall clock's, the immediate
//! conversion by the newest timeline, and a conversion one second later. The readings are also converted to the counter
//! and back. With `--busy` every other core spins. Fails if a target is missed.

#[expect(dead_code, reason = "not every benchmark needs all of it")]
mod common;

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{clock_ns, machine};
use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Stamp, Time, Utc};
use wirestamp_sys::clock::ClockId;

/// Pause between bursts of samples, and samples per burst; ten minutes give ten million.
const PAUSE: Duration = Duration::from_millis(1);
const BURST: usize = 24;

/// Max distance of the readings around an uninterrupted stamp. The bound must also hold for interrupted samples, but
/// they are excluded from the error.
const CLEAN: i64 = 150;

/// A relaxed read of the counter, as the wall clock's, does not wait for earlier loads. The value can be early by this
/// much: a load that misses all caches takes about 100 ns.
const REORDERING: i64 = 100;

/// Time until the later conversion.
const LATER: Duration = Duration::from_secs(1);

/// Start of the statistics; until this time the bound shrinks.
const SETTLING_TIME: Duration = Duration::from_secs(10);

/// Targets of the wall clock, in nanoseconds and as a share.
const P99_TARGET: i64 = 150;
const BOUND_TARGET: i64 = 1_000;
const VIOLATIONS_TARGET: f64 = 1e-4;
const RATE_TARGET_PPM: f64 = 0.1;

/// Bound of 99.99 % of the conversions by the kernel's own lines, in nanoseconds.
const EXACT_BOUND_TARGET: i64 = 3;

const HEAD: [[&str; 10]; 2] = [
    ["ns", "offset", "|error|", "", "", "", "bound", "", "", "violations"],
    ["", "median", "median", "p99", "p99.99", "max", "median", "p99.99", "widest", ""],
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

    /// True if the system time of the stamp can lie within the stamp's error. Its counter value was read up to `early`
    /// nanoseconds too early.
    fn allows(&self, stamp: &Stamp, early: i64) -> bool {
        let (utc, error) = (stamp.utc.as_nanos(), stamp.error.as_nanos());
        utc + error + early >= self.before && utc - error <= self.after
    }
}

/// How often each value was measured.
#[derive(Default)]
struct Distribution(BTreeMap<i64, u64>);

impl Distribution {
    fn add(&mut self, value: i64) {
        *self.0.entry(value).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among some millions"
    )]
    fn quantile(&self, part: f64) -> i64 {
        let rank = ((self.count() as f64 * part).ceil() as u64).max(1);
        let mut below = 0;
        let at_rank = self.0.iter().find(|&(_, count)| {
            below += count;
            below >= rank
        });
        at_rank.map_or(0, |(&value, _)| value)
    }
}

/// Errors of one way of conversion.
#[derive(Default)]
struct ConversionErrors {
    offsets: Distribution,
    sizes: Distribution,
    bounds: Distribution,
    violations: u32,
}

impl ConversionErrors {
    fn add(&mut self, bracket: &Bracket, stamp: &Stamp, early: i64) {
        self.bounds.add(stamp.error.as_nanos());
        self.violations += u32::from(!bracket.allows(stamp, early));
        if bracket.is_clean() {
            self.offsets.add(bracket.offset(stamp.utc));
            self.sizes.add(bracket.offset(stamp.utc).abs());
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of some millions")]
    fn violated(&self) -> f64 {
        f64::from(self.violations) / self.bounds.count() as f64
    }

    fn print(&self, name: &str) {
        let [median, p99, p9999, max] =
            [0.5, 0.99, 0.9999, 1.0].map(|part| self.sizes.quantile(part));
        let [bound, likely, widest] = [0.5, 0.9999, 1.0].map(|part| self.bounds.quantile(part));
        println!(
            "{name:<27}{:>7} {median:>7} {p99:>7} {p9999:>7} {max:>7} {bound:>8} {likely:>7} {widest:>8} {:>10}",
            self.offsets.quantile(0.5),
            format!("{}", self.violations),
        );
    }
}

/// A sample that waits for its later conversion.
struct PendingSample {
    taken: Instant,
    bracket: Bracket,
    raw: u64,
}

struct Run {
    service: ClockService,
    wall: ConversionErrors,
    live: ConversionErrors,
    later: ConversionErrors,
    waiting: VecDeque<PendingSample>,
    /// Distance of the system clock's readings from themselves after conversion to the counter and back, in
    /// nanoseconds; that of readings without a counter value is the max.
    inverse: Distribution,
}

impl Run {
    fn sample(&mut self, settled: bool) {
        let (wall_clock, counter) = (self.service.wall_clock(), self.service.counter());
        let (bracket, stamp) = bracketed(|| wall_clock.now_with_error());
        let (raw_bracket, raw) = bracketed(|| counter.read_ordered());
        if !settled {
            return;
        }
        self.inverse.add(self.round_trip(raw_bracket.before));
        let timeline = self.service.timeline(counter.domain());
        self.wall.add(&bracket, &stamp, REORDERING);
        self.live.add(&raw_bracket, &timeline.convert(raw), 0);
        self.waiting.push_back(PendingSample { taken: Instant::now(), bracket: raw_bracket, raw });
        let due = |waiting: &mut PendingSample| waiting.taken.elapsed() > LATER;
        if let Some(PendingSample { bracket, raw, .. }) = self.waiting.pop_front_if(due) {
            self.later.add(&bracket, &timeline.convert(raw), 0);
        }
    }

    /// Distance of a reading of the system clock from itself after conversion to the counter and back.
    fn round_trip(&self, reading: i64) -> i64 {
        let stamp = RawStamp { domain: Domain::Realtime, value: reading.unsigned_abs() };
        let value = self.service.counter_value(stamp);
        value.map_or(i64::MAX, |value| (self.service.convert(value).utc.as_nanos() - reading).abs())
    }
}

/// Takes a stamp between two readings of the system clock.
fn bracketed<T>(stamp: impl FnOnce() -> T) -> (Bracket, T) {
    let before = clock_ns(ClockId::Realtime);
    let stamp = stamp();
    (Bracket { before, after: clock_ns(ClockId::Realtime) }, stamp)
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
    let seconds = arguments.seconds;
    println!("{seconds} s, {BURST} samples each {PAUSE:?}, {spinners} other cores kept busy");
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
        later: ConversionErrors::default(),
        waiting: VecDeque::new(),
        inverse: Distribution::default(),
    };
    while start.elapsed() < duration {
        let settled = start.elapsed() > SETTLING_TIME;
        (0..BURST).for_each(|_| run.sample(settled));
        thread::sleep(PAUSE);
    }
    report(run, &yardstick)
}

fn report(run: Run, yardstick: &RateReference) -> bool {
    let (count, clean) = (run.wall.bounds.count(), run.wall.offsets.count());
    println!("\n{count} samples after {SETTLING_TIME:?}, {} of them interrupted", count - clean);
    for [name, offset, median, p99, p9999, max, bound, likely, widest, violations] in HEAD {
        println!(
            "{name:<27}{offset:>7} {median:>7} {p99:>7} {p9999:>7} {max:>7} {bound:>8} {likely:>7} {widest:>8} \
             {violations:>10}"
        );
    }
    run.wall.print("wall clock");
    run.live.print("raw, converted at once");
    run.later.print("raw, converted 1 s later");
    let rate = run.service.timeline(run.service.counter().domain()).difference();
    let measured = RateReference::read(run.service.counter()).hertz_since(yardstick);
    let ppm = (rate.frequency_hz() / measured - 1.0) * 1e6;
    let steps = run.service.status().steps;
    println!("\nrate: {:.6} MHz, off by {ppm:.4} ppm", rate.frequency_hz() / 1e6);
    println!("rate's bound: {:.4} ppm; steps of the clock: {steps}", rate.rate_error_ppm());
    let exact = run.service.is_exact();
    println!("converted by the kernel's own lines: {}", if exact { "yes" } else { "no" });
    let (inverted, max) = (run.inverse.count(), run.inverse.quantile(1.0));
    println!("kernel stamps converted to the counter and back: {inverted}, max distance {max} ns");
    let within = |errors: &ConversionErrors| errors.bounds.quantile(0.9999) <= EXACT_BOUND_TARGET;
    let held = |errors: &ConversionErrors| errors.violations == 0;
    let mut targets = vec![
        ("wall clock: p99 of |error| at most 150 ns", run.wall.sizes.quantile(0.99) <= P99_TARGET),
        ("wall clock: bound at most 1 us", run.wall.bounds.quantile(1.0) <= BOUND_TARGET),
        ("wall clock: bound held in 99.99 %", run.wall.violated() <= VIOLATIONS_TARGET),
        ("rate within 0.1 ppm", ppm.abs() < RATE_TARGET_PPM),
    ];
    if exact {
        targets.extend([
            ("at once: bound of 99.99 % at most 3 ns", within(&run.live)),
            ("at once: bound held always", held(&run.live)),
            ("1 s later: bound of 99.99 % at most 3 ns", within(&run.later)),
            ("1 s later: bound held always", held(&run.later)),
            ("to the counter and back: max distance 1 ns", max <= 1),
        ]);
    }
    println!("\nTargets");
    for (what, met) in &targets {
        println!("{what}: {}", if *met { "met" } else { "MISSED" });
    }
    targets.iter().all(|&(_, met)| met)
}
