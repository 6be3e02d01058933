//! The clock service: one thread that keeps the timelines of this machine's clocks fresh.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

use crate::anchor::SystemClocks;
use crate::survey::smallest_usual_step;
use crate::{Calibrator, Counter, Domain, Timeline};

/// The second sample comes this long after the first.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);

/// Intervals double up to this: long enough that a joint read of 50 ns gives the rate to 0.4 ppm,
/// short enough that the oscillator and the slewing hold still.
const LONGEST_INTERVAL: Duration = Duration::from_millis(250);

/// Calibrates the machine's clocks from a thread of its own, `ws-clock`, until dropped.
#[derive(Debug)]
pub struct ClockService {
    counter: Counter,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    stop: Condvar,
}

/// The lock is held to copy or replace an `Arc`, and never on the acquisition path.
#[derive(Debug)]
struct State {
    counter: Arc<Timeline>,
    monotonic: Arc<Timeline>,
    /// Told by the counter's timeline how often the system clock was stepped.
    realtime: Arc<Timeline>,
    stopping: bool,
}

/// The state of the counter's calibration. Serialises with these names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStatus {
    /// The counter in use, by its name.
    pub selected: &'static str,
    /// Its frequency against `CLOCK_MONOTONIC_RAW`.
    pub frequency_hz: f64,
    /// How far that frequency can be off, in parts per million.
    pub rate_error_ppm: f64,
    /// How far a stamp taken now and converted now can be off from system time.
    pub error_ns: i64,
    /// The smallest usual step of the counter, as [`crate::Source::granularity_ns`], rounded up.
    pub granularity_ns: i64,
    /// Steps of the system clock and disruptions of the counter since the start.
    pub steps: u32,
}

impl ClockService {
    /// Starts calibrating `counter` and `CLOCK_MONOTONIC`. Returns after some 0.5 ms with both
    /// usable; their bounds are wide at first and tighten over the first second.
    ///
    /// # Errors
    /// If the thread cannot be made, or a clock stands still or runs backwards.
    pub fn start(counter: Counter) -> io::Result<Self> {
        let calibrate = |clocks: SystemClocks| {
            let step = smallest_usual_step(clocks);
            Calibrator::new(clocks.domain(), clocks, step).map_err(io::Error::other)
        };
        let counter_calibrator = calibrate(SystemClocks::counter(counter))?;
        let monotonic_calibrator = calibrate(SystemClocks::monotonic())?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                counter: counter_calibrator.timeline(),
                monotonic: monotonic_calibrator.timeline(),
                realtime: Arc::new(Timeline::identity(Domain::Realtime)),
                stopping: false,
            }),
            stop: Condvar::new(),
        });
        let thread = thread::Builder::new().name("ws-clock".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.keep_fresh(counter, counter_calibrator, monotonic_calibrator)
        })?;
        Ok(Self { counter, shared, thread: Some(thread) })
    }

    /// The newest timeline of `domain`. It stays good for some seconds; a converter takes a new
    /// one for each batch.
    #[must_use]
    pub fn timeline(&self, domain: Domain) -> Arc<Timeline> {
        let state = self.shared.lock();
        Arc::clone(match domain {
            Domain::Counter => &state.counter,
            Domain::Monotonic => &state.monotonic,
            Domain::Realtime => &state.realtime,
        })
    }

    /// The counter that is calibrated.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        self.counter
    }

    /// The state of the counter's calibration at this moment.
    #[must_use]
    pub fn status(&self) -> ClockStatus {
        let timeline = self.timeline(Domain::Counter);
        let difference = timeline.difference();
        ClockStatus {
            selected: self.counter.name(),
            frequency_hz: difference.frequency_hz(),
            rate_error_ppm: difference.rate_error_ppm(),
            error_ns: timeline.convert(self.counter.read()).error.as_nanos(),
            granularity_ns: difference.granularity().as_nanos(),
            steps: timeline.steps(),
        }
    }
}

impl Drop for ClockService {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A calibrator that panicked has said so on standard error; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A poisoned lock holds a whole state all the same: it is only ever replaced by fields.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_fresh(
        &self,
        counter: Counter,
        mut counter_calibrator: Calibrator<SystemClocks>,
        mut monotonic_calibrator: Calibrator<SystemClocks>,
    ) {
        let mut interval = FIRST_INTERVAL;
        let mut steps = 0;
        while !self.wait(jittered(interval, counter.read())) {
            let counter = counter_calibrator.sample();
            let monotonic = monotonic_calibrator.sample();
            // After a step the rates have to be found anew, and quickly.
            let seen = counter.steps();
            interval =
                if seen == steps { (interval * 2).min(LONGEST_INTERVAL) } else { FIRST_INTERVAL };
            steps = seen;
            self.publish(counter, monotonic);
        }
    }

    /// Makes these the newest timelines.
    fn publish(&self, counter: Arc<Timeline>, monotonic: Arc<Timeline>) {
        let mut state = self.lock();
        if counter.steps() != state.realtime.steps() {
            let steps = counter.steps();
            state.realtime = Arc::new(Timeline::identity_after(Domain::Realtime, steps));
        }
        state.counter = counter;
        state.monotonic = monotonic;
    }

    /// Waits for `interval`, or until the service is dropped: true in that case.
    fn wait(&self, interval: Duration) -> bool {
        let state = self.lock();
        self.stop
            .wait_timeout_while(state, interval, |state| !state.stopping)
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .stopping
    }
}

/// An interval up to an eighth shorter, so that sampling does not keep step with traffic of a
/// fixed period. The low bits of a counter are random enough for that.
fn jittered(interval: Duration, counter: u64) -> Duration {
    let scrambled = counter.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let part = u32::try_from(scrambled).unwrap_or(0);
    interval - interval * part / (8 * 256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clocks, Span};

    #[test]
    fn a_service_converts_at_once_and_stops_when_dropped() {
        for counter in [Counter::select(), Counter::Os] {
            let service = ClockService::start(counter).unwrap();
            for domain in [Domain::Counter, Domain::Monotonic, Domain::Realtime] {
                assert_eq!(service.timeline(domain).domain(), domain);
            }
            let stamp = service.timeline(Domain::Counter).convert(service.counter().read());
            assert!(stamp.error < Span::from_millis(1), "{:?}", stamp.error);
            assert_eq!(service.status().selected, counter.name());
        }
    }

    #[test]
    fn converted_time_lies_between_two_readings_of_the_system_clock() {
        let service = ClockService::start(Counter::select()).unwrap();
        let mut clocks = [SystemClocks::counter(service.counter()), SystemClocks::monotonic()];
        for round in 0..1_000 {
            let clock = &mut clocks[round % 2];
            let before = clock.utc();
            let raw = clock.raw();
            let after = clock.utc();
            let stamp = service.timeline(clock.domain()).convert(raw);
            assert!(stamp.utc + stamp.error >= before, "{stamp:?} read after {before:?}");
            assert!(stamp.utc - stamp.error <= after, "{stamp:?} read before {after:?}");
        }
    }

    #[test]
    fn a_step_that_the_counter_sees_is_told_of_the_kernels_stamps_too() {
        let after = |steps| Arc::new(Timeline::identity_after(Domain::Counter, steps));
        let state =
            State { counter: after(0), monotonic: after(0), realtime: after(0), stopping: false };
        let shared = Shared { state: Mutex::new(state), stop: Condvar::new() };
        for steps in [0, 1, 1, 3] {
            shared.publish(after(steps), after(0));
            let realtime = Arc::clone(&shared.lock().realtime);
            assert_eq!(realtime.steps(), steps);
        }
    }

    #[test]
    fn jitter_shortens_by_at_most_an_eighth() {
        for value in 0..10_000 {
            let interval = jittered(LONGEST_INTERVAL, value);
            assert!(interval <= LONGEST_INTERVAL && interval >= LONGEST_INTERVAL * 7 / 8);
        }
    }
}
