//! Exact conversion while the system clock is slewed and stepped. Only a machine of one's own may be treated so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_clock::{ClockService, Counter, Domain, Stamp};
use wirestamp_sys::clock::{self, ClockId};

/// Samples that are converted at once, and one second later.
const SAMPLES: u64 = 1_000_000;
/// Samples of a timeline.
const BATCH: u64 = 16;
const LATER: Duration = Duration::from_secs(1);
const SECOND: i64 = 1_000_000_000;

const DISTURBANCES: usize = 9;

/// `freq` of adjtimex(2) for one part per million.
const PPM: i64 = 1 << 16;

/// A counter value between two readings of the system clock.
struct Sample {
    taken: Instant,
    before: i64,
    raw: u64,
    after: i64,
}

impl Sample {
    fn take(counter: Counter) -> Self {
        let taken = Instant::now();
        let before = clock::now(ClockId::Realtime);
        let raw = counter.read_ordered();
        Self { taken, before, raw, after: clock::now(ClockId::Realtime) }
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
    let (mut later, mut exact) = (0, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| disturb(&running, &done));
        while later < SAMPLES || done.load(Ordering::Relaxed) < DISTURBANCES {
            let samples: Vec<_> = (0..BATCH).map(|_| Sample::take(counter)).collect();
            let timeline = service.timeline(Domain::Counter);
            for sample in samples {
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
    println!("{later} samples, {exact} within 3 ns; {} steps", status.steps);
    // A leap second is a step back, and the test sets the clock before it.
    assert!(status.exact && status.steps >= 4, "{status:?}");
    assert!(exact > SAMPLES / 2, "{exact}");
}
