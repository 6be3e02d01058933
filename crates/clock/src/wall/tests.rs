use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::*;
use crate::piece::Piece;
use crate::ratio::Ratio;
use crate::{ClockService, DifferenceClock};

const UTC: i64 = 1_790_000_000_000_000_000;
const TICKS_A_NANO: u64 = 3;

/// Random timelines: up to 5 us and 500 ppm from a clock of 3 GHz.
struct RandomTimelines {
    counter: Counter,
    origin: u64,
    state: u64,
    stepped: Span,
    steps: u32,
}

impl RandomTimelines {
    fn new(counter: Counter) -> Self {
        let origin = counter.read_ordered();
        Self { counter, origin, state: 1, stepped: Span::ZERO, steps: 0 }
    }

    fn step(&mut self, by: Span) {
        self.stepped += by;
        self.steps += 1;
    }

    /// Uniform from `-limit` to `limit`, by a linear congruence (Knuth's MMIX).
    fn around_zero(&mut self, limit: i64) -> i64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33).cast_signed() % (limit + 1) * if self.state >> 63 == 0 { 1 } else { -1 }
    }

    fn timeline(&mut self) -> Timeline {
        let raw = self.counter.read_ordered();
        let elapsed = ((raw - self.origin) / TICKS_A_NANO).cast_signed();
        let ticks = NonZeroU64::new(TICKS_A_NANO * 1_000_000).unwrap();
        let nanos = 1_000_000_u64.saturating_add_signed(self.around_zero(500));
        let piece = Piece {
            start: 0,
            origin: raw,
            origin_utc: Time::from_nanos(UTC + elapsed + self.around_zero(5_000)) + self.stepped,
            slope: Ratio::of(nanos, ticks),
            length: None,
            error: Span::from_nanos(30),
            error_slope: Ratio::ZERO,
        };
        let nanos = NonZeroU64::new(1_000_000).unwrap();
        let domain = self.counter.domain();
        let rate = DifferenceClock::new(domain, ticks, nanos, 1e-6, Span::from_nanos(1));
        Timeline::new(domain, vec![piece], rate, self.steps, Vec::new())
    }
}

/// Reads until stopped; counts the readings that are earlier than a previous one.
fn watch(clock: &WallClock, latest: &AtomicI64, running: &AtomicBool) -> (u64, u64) {
    let (mut reads, mut back) = (0, 0);
    let mut own = clock.now();
    while running.load(Ordering::Relaxed) {
        let relaxed = clock.now();
        back += u64::from(relaxed < own);
        own = relaxed;
        let published = latest.load(Ordering::Acquire);
        let ordered = clock.now_ordered().as_nanos();
        back += u64::from(ordered < published);
        latest.fetch_max(ordered, Ordering::AcqRel);
        reads += 1;
    }
    (reads, back)
}

/// Ten seconds, with a reader on each core. Lines are replaced as soon as they are valid, with max bends.
#[test]
fn time_is_monotone_on_and_between_threads() {
    let counter = Counter::select();
    let mut wavering = RandomTimelines::new(counter);
    let mut steering = Steering::new(&wavering.timeline(), counter.read_ordered());
    let (latest, running) = (AtomicI64::new(i64::MIN), AtomicBool::new(true));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut lines = 0_u64;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..cores)
            .map(|_| {
                let clock = steering.clock(counter);
                let (latest, running) = (&latest, &running);
                scope.spawn(move || watch(&clock, latest, running))
            })
            .collect();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let before = steering.newest;
            steering
                .follow(&wavering.timeline(), Span::from_nanos(200_000), || counter.read_ordered());
            lines += u64::from(steering.newest != before);
            thread::yield_now();
        }
        running.store(false, Ordering::Relaxed);
        for reader in readers {
            let (reads, back) = reader.join().unwrap();
            println!("{reads} readings on a thread, {lines} lines, {back} went back");
            assert!(reads > 1_000);
            assert_eq!(back, 0);
        }
    });
    assert!(lines > 1_000, "{lines} lines");
}

#[test]
fn wall_clock_matches_the_system_clock() {
    let service = ClockService::start(Counter::select()).unwrap();
    let clock = service.wall_clock();
    let system = || Time::<Utc>::try_from(SystemTime::now()).unwrap();
    for _ in 0..10_000 {
        let before = system();
        let stamp = clock.now_with_error();
        let after = system();
        // A relaxed read may be early by the CPU's reordering ([`Counter`]).
        let reordered = Span::from_nanos(100);
        assert!(stamp.utc + stamp.error + reordered >= before, "{stamp:?} read after {before:?}");
        assert!(stamp.utc - stamp.error <= after, "{stamp:?} read before {after:?}");
    }
}

#[test]
fn system_clock_step_is_followed_at_once() {
    let counter = Counter::select();
    let mut wavering = RandomTimelines::new(counter);
    let mut steering = Steering::new(&wavering.timeline(), counter.read_ordered());
    let clock = steering.clock(counter);
    for step in [1, -1].map(Span::from_secs) {
        let before = clock.now();
        wavering.step(step);
        steering.follow(&wavering.timeline(), Span::from_millis(1), || counter.read_ordered());
        let besides = clock.now() - before - step;
        assert!(besides > Span::from_nanos(-20_000) && besides < Span::from_millis(500));
    }
}

/// A line of a nanosecond a tick.
fn line(start: u64, utc: i64) -> Line {
    let (slope, error_slope) = (Ratio::ONE, Ratio::ZERO);
    Line { start, utc: Time::from_nanos(utc), slope, error: Span::from_nanos(1), error_slope }
}

fn utc_at(lines: &Lines, raw: u64) -> i64 {
    lines.read(|| raw, lines::Slot::utc).as_nanos()
}

#[test]
fn line_is_not_valid_before_its_start() {
    let lines = Lines::new(&line(0, 0));
    // More lines than slots.
    for n in 1..20_i64 {
        let start = 1_000 * n.cast_unsigned();
        assert!(lines.publish(&line(start, 10_000 * n), start - 100, || start - 200));
        assert_eq!(utc_at(&lines, start - 1), 10_000 * (n - 1) + 999);
        assert_eq!(utc_at(&lines, start), 10_000 * n);
    }
}

#[test]
fn late_line_is_not_published() {
    let lines = Lines::new(&line(0, 0));
    assert!(!lines.publish(&line(1_000, 5_000), 900, || 900));
    assert_eq!(utc_at(&lines, 999), 999);
    assert!(lines.publish(&line(2_000, 7_000), 1_900, || 1_000), "a later start succeeds");
    assert_eq!(utc_at(&lines, 1_999), 1_999, "the end moved with it");
    assert_eq!(utc_at(&lines, 2_000), 7_000);
}

#[test]
fn readers_wait_once_for_a_missing_writer() {
    let lines = Lines::new(&line(0, 0));
    assert!(!lines.publish(&line(1_000, 5_000), 900, || 900));
    let reads = std::cell::Cell::new(0);
    let read = || {
        lines.read(
            || {
                reads.set(reads.get() + 1);
                1_500
            },
            lines::Slot::utc,
        )
    };
    assert_eq!(read().as_nanos(), 1_500, "along the line that was to end");
    assert!(reads.replace(0) > 1, "it waited");
    assert_eq!(read().as_nanos(), 1_500);
    assert_eq!(reads.get(), 1, "and does so no more");
}

#[test]
fn cancelled_line_keeps_the_old_one_valid() {
    let lines = Lines::new(&line(0, 0));
    assert!(!lines.publish(&line(1_000, 5_000), 900, || 900));
    lines.cancel();
    assert_eq!(utc_at(&lines, 1_500), 1_500);
}

#[test]
fn counter_before_all_lines_is_extrapolated_back() {
    let lines = Lines::new(&line(5_000, 5_000));
    assert!(lines.publish(&line(9_000, 9_000), 8_000, || 7_000));
    assert_eq!(utc_at(&lines, 1_000), 1_000);
    lines.replace(&line(100, 50_000));
    assert_eq!(utc_at(&lines, 200), 50_100, "set back, and known to be");
}

#[test]
fn counter_near_its_end_is_not_steered() {
    let mut wavering = RandomTimelines::new(Counter::select());
    let timeline = wavering.timeline();
    for ahead in [0, 1, 1_000, 1 << 20] {
        let now = u64::MAX - ahead;
        let mut steering = Steering::new(&timeline, now - 10);
        steering.follow(&timeline, Span::from_millis(250), || now);
        assert_eq!(steering.newest.start, now - 10, "no line was begun");
        let _ = utc_at(&steering.lines, u64::MAX);
    }
}
