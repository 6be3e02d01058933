//! Exact conversion while the system clock is slewed and stepped. Only a machine of one's own may be treated so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Span, Stamp};
use wirestamp_sys::clock::{self, ClockId};

/// Samples that are converted at once, and one second later.
const SAMPLES: u64 = 1_000_000;
/// Samples of a timeline.
const BATCH: u64 = 16;
/// Max time until a reading of a clock has a counter value. The calibration thread needs milliseconds to observe a new
/// line of the kernel, and longer on a busy host.
const VALUE_TIMEOUT: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(1);
const SECOND: i64 = 1_000_000_000;

const DISTURBANCES: usize = 9;

/// `freq` of adjtimex(2) for one part per million.
const PPM: i64 = 1 << 16;

/// A counter value between two readings of the system clock.
struct Sample {
    taken: Instant,
    raw_before: u64,
    before: i64,
    raw: u64,
    after: i64,
}

impl Sample {
    fn take(counter: Counter) -> Self {
        let (taken, raw_before) = (Instant::now(), counter.read_ordered());
        let before = clock::now(ClockId::Realtime);
        let raw = counter.read_ordered();
        Self { taken, raw_before, before, raw, after: clock::now(ClockId::Realtime) }
    }

    /// Panics if the first reading of the system clock is converted to a counter value outside the two around it. False if it is
    /// not converted, because the clock was changed around it.
    fn check_inverse(&self, service: &ClockService) -> bool {
        let stamp = RawStamp { domain: Domain::Realtime, value: self.before.unsigned_abs() };
        let Some(value) = service.counter_value(stamp) else { return false };
        // Of the inverse, 5 ns, and of a tick.
        let tolerance = service.timeline(Domain::Counter).difference().ticks(Span::from_nanos(6));
        assert!(
            (self.raw_before..=self.raw + 2 * tolerance).contains(&(value + tolerance)),
            "{value} is not in {} to {}",
            self.raw_before,
            self.raw
        );
        true
    }

    /// Panics if the system time of the sample is outside the error of `stamp`. A sample during which the clock was set
    /// is not checked.
    fn check(&self, stamp: &Stamp, when: &str) {
        let was_set = !(0..SECOND / 2).contains(&(self.after - self.before));
        let (utc, error) = (stamp.utc.as_nanos(), stamp.error.as_nanos());
        assert!(
            was_set || (utc + error >= self.before && utc - error <= self.after),
            "{when}: {utc} ± {error} ns is not in {} to {}",
            self.before,
            self.after
        );
    }
}

fn adjust(change: impl FnOnce(&mut libc::timex)) {
    let (mut timex, _) = clock::adjtimex().unwrap();
    change(&mut timex);
    clock::adjust(timex).unwrap();
}

fn set_rate(ppm: i64) {
    adjust(|timex| (timex.modes, timex.freq) = (libc::ADJ_FREQUENCY, ppm * PPM));
}

fn set_tick(micros: i64) {
    adjust(|timex| (timex.modes, timex.tick) = (libc::ADJ_TICK, micros));
}

fn step(nanos: i64) {
    clock::set_realtime(clock::now(ClockId::Realtime) + nanos).unwrap();
}

/// Sets the clock to just before midnight, with a leap second at midnight, and waits until it has passed.
fn insert_leap_second() {
    let day = 86_400 * SECOND;
    let midnight = (clock::now(ClockId::Realtime) / day + 1) * day;
    // The kernel prepares it at the beginning of a second before.
    let (lead, set) = (SECOND * 5 / 2, Instant::now());
    clock::set_realtime(midnight - lead).unwrap();
    adjust(|timex| (timex.modes, timex.status) = (libc::ADJ_STATUS, libc::STA_INS));
    while clock::now(ClockId::Realtime) < midnight + SECOND / 2 {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_secs(1));
    adjust(|timex| (timex.modes, timex.status) = (libc::ADJ_STATUS, 0));
    let gained = clock::now(ClockId::Realtime) - (midnight - lead);
    let elapsed = i64::try_from(set.elapsed().as_nanos()).unwrap();
    assert!(elapsed - gained > SECOND / 2, "{gained} ns in {elapsed} ns: no leap second");
}

/// What a time daemon or a person may do to the clock: all of it once, then again until `running` is false. `done` is
/// the number of disturbances.
fn disturb(running: &AtomicBool, done: &AtomicUsize) {
    let disturbances: [fn(); DISTURBANCES] = [
        || set_rate(500),
        || set_rate(-500),
        || set_tick(10_500),
        || set_tick(9_500),
        || set_tick(10_000),
        || set_rate(0),
        || step(SECOND),
        || step(-SECOND),
        insert_leap_second,
    ];
    for disturb in disturbances.iter().cycle() {
        if !running.load(Ordering::Relaxed) {
            break;
        }
        disturb();
        done.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(300));
    }
    set_tick(10_000);
    set_rate(0);
}

#[test]
fn stamps_are_exact_while_the_clock_is_slewed_and_stepped() {
    let counter = Counter::select();
    let service = ClockService::start(counter).unwrap();
    assert!(service.is_exact(), "{:?}", service.no_exact_conversion());
    let (running, done) = (AtomicBool::new(true), AtomicUsize::new(0));
    let mut waiting: VecDeque<Sample> = VecDeque::new();
    let (mut later, mut exact, mut inverted) = (0, 0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| disturb(&running, &done));
        while later < SAMPLES || done.load(Ordering::Relaxed) < DISTURBANCES {
            let samples: Vec<_> = (0..BATCH).map(|_| Sample::take(counter)).collect();
            let timeline = service.timeline(Domain::Counter);
            for sample in samples {
                inverted += u64::from(sample.check_inverse(&service));
                let stamp = timeline.convert(sample.raw);
                sample.check(&stamp, "at once");
                exact += u64::from(stamp.error.as_nanos() <= 3);
                waiting.push_back(sample);
            }
            while let Some(sample) = waiting.pop_front_if(|sample| sample.taken.elapsed() > LATER) {
                sample.check(&timeline.convert(sample.raw), "1 s later");
                later += 1;
            }
        }
        running.store(false, Ordering::Relaxed);
    });
    let status = service.status();
    let steps = status.steps;
    println!("{later} samples, {exact} within 3 ns, {inverted} inverted; {steps} steps");
    // A leap second is a step back, and the test sets the clock before it.
    assert!(status.exact && status.steps >= 4, "{status:?}");
    assert!(exact > SAMPLES / 2 && inverted > SAMPLES / 2, "{exact}, {inverted}");
}

/// Reading of `CLOCK_REALTIME` as a stamp of the kernel, with its counter value, and the time by `CLOCK_MONOTONIC_RAW`
/// before and after it. Around a change of the kernel's line a stamp gets no counter value until the change is observed:
/// then the clock is read again.
fn kernel_stamp(service: &ClockService) -> (Stamp, [i64; 2]) {
    let started = Instant::now();
    let mut readings = 0;
    while started.elapsed() < VALUE_TIMEOUT {
        let before = clock::now(ClockId::MonotonicRaw);
        let value = clock::now(ClockId::Realtime).unsigned_abs();
        let after = clock::now(ClockId::MonotonicRaw);
        let mut stamps = [service.timeline(Domain::Realtime).convert(value)];
        service.counter_values().replace(&mut stamps);
        let [stamp] = stamps;
        if stamp.raw.domain == Domain::Counter {
            println!("{readings} readings without a counter value, {:?}", started.elapsed());
            return (stamp, [before, after]);
        }
        readings += 1;
        thread::sleep(Duration::from_millis(1));
    }
    panic!("no counter value for {readings} readings: {:?}", service.status());
}

#[test]
fn spans_of_kernel_stamps_are_right_during_a_slew() {
    let service = ClockService::start(Counter::select()).unwrap();
    set_rate(500);
    thread::sleep(Duration::from_secs(1));
    let (first, raw_of_first) = kernel_stamp(&service);
    thread::sleep(Duration::from_secs(10));
    let (last, raw_of_last) = kernel_stamp(&service);
    set_rate(0);
    let clock = service.timeline(Domain::Realtime).difference();
    let (span, error) = clock.elapsed(&first, &last);
    let min = raw_of_last[0] - raw_of_first[1];
    let max = raw_of_last[1] - raw_of_first[0];
    let by_system_clock = (last.utc - first.utc).as_nanos();
    println!("{span:?} ± {error:?}, by the system clock {by_system_clock} ns, true {min} to {max}");
    let bound = max / 1_000_000 + 10;
    assert!((min - bound..=max + bound).contains(&span.as_nanos()));
    assert!(by_system_clock > max + max / 4_000, "the slew was not in force");
    let granularity = clock.granularity() + clock.granularity();
    assert!(error.as_nanos() <= bound + granularity.as_nanos(), "{error:?}");
}
