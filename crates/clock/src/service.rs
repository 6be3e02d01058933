//! The clock service: one thread that keeps the timelines of this machine's clocks fresh.

use std::io;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use wirestamp_sys::process::with_signals_blocked;

use crate::anchor::SystemClocks;
use crate::phc::{self, NicClocks};
use crate::source::settle;
use crate::survey::smallest_usual_step;
use crate::wall::{Steering, WallClock};
use crate::{
    CalibrationError, Calibrator, Counter, Domain, Phc, RawStamp, SourceError, Span, Stamp,
    Timeline, VmClock,
};

/// The second sample comes this long after the first.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);

/// Intervals double up to this: long enough that a joint read of 50 ns gives the rate to 0.4 ppm,
/// short enough that the oscillator and the slewing hold still.
const LONGEST_INTERVAL: Duration = Duration::from_millis(250);

/// Calibrates the machine's clocks from a thread of its own, `ws-clock`, until dropped.
///
/// # Fork
///
/// A child process has no calibrating thread. Its clocks go on along what was known at the fork,
/// with bounds that grow; a service that the child starts itself is a fresh one.
#[derive(Debug)]
pub struct ClockService {
    counter: Counter,
    /// The number of the network card's clock that is followed too.
    nic: Option<u32>,
    newest: Arc<Newest>,
    wall_clock: WallClock,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    /// The process that the thread belongs to.
    process: u32,
}

/// The newest timelines. Nobody waits for a lock to read them, which a child process could find
/// locked for ever.
#[derive(Debug)]
struct Newest {
    counter: ArcSwap<Timeline>,
    monotonic: ArcSwap<Timeline>,
    /// Told by the counter's timeline how often the system clock was stepped.
    realtime: ArcSwap<Timeline>,
    /// Without a network card's clock one that knows no time.
    nic: ArcSwap<Timeline>,
}

/// How the thread is told to end.
#[derive(Debug, Default)]
struct Stop {
    requested: Mutex<bool>,
    change: Condvar,
}

/// What the thread works on.
struct Calibration {
    counter: Calibrator<SystemClocks>,
    monotonic: Calibrator<SystemClocks>,
    nic: Option<Calibrator<NicClocks>>,
    steering: Steering,
    disruption_marker: Option<u64>,
    newest: Arc<Newest>,
}

/// Why a clock cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The process stamps with another counter.
    #[error(transparent)]
    Settled(#[from] SourceError),
    /// The counter, or a clock of the system, does not run.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The network card's clock does not run.
    #[error(
        "/dev/ptp{number}, the network card's clock, {}: `phc_ctl /dev/ptp{number} set` may start \
         it; otherwise stamp with another clock",
        behaviour(*cause)
    )]
    Nic {
        /// The number of its device.
        number: u32,
        /// What is wrong with it.
        cause: CalibrationError,
    },
    /// There is no thread to be had.
    #[error("cannot make a thread to calibrate the clock, end some others: {0}")]
    Thread(io::Error),
}

fn behaviour(cause: CalibrationError) -> &'static str {
    match cause {
        CalibrationError::Backwards => "runs backwards, or can no longer be read",
        CalibrationError::Stopped => "stands still",
    }
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
    /// usable (later if a read of the counter takes microseconds, as of an HPET); their bounds are
    /// wide at first and tighten over the first second.
    ///
    /// The thread has the scheduling policy and the cores of the one that calls this, so that is
    /// better done before a program pins its threads. It takes no signals.
    ///
    /// # Errors
    /// If the process stamps with another counter already, the thread cannot be made, or a clock
    /// stands still or runs backwards.
    pub fn start(counter: Counter) -> Result<Self, StartError> {
        Self::follow(counter, None)
    }

    /// As [`Self::start`], and follows a network card's clock as well, for the stamps of
    /// [`Domain::Nic`].
    ///
    /// # Errors
    /// As [`Self::start`], and if the network card's clock stands still or runs backwards.
    pub fn start_with_nic(counter: Counter, nic: Phc) -> Result<Self, StartError> {
        Self::follow(counter, Some(nic))
    }

    fn follow(counter: Counter, nic: Option<Phc>) -> Result<Self, StartError> {
        let number = nic.as_ref().map(Phc::number);
        let calibration = Calibration::begin(counter, nic)?;
        // Not before it is known to run: a process keeps it.
        settle(counter)?;
        let newest = Arc::clone(&calibration.newest);
        let wall_clock = calibration.steering.clock(counter);
        let stop = Arc::new(Stop::default());
        let calibrate = {
            let stop = Arc::clone(&stop);
            move || calibration.keep_fresh(counter, &stop)
        };
        let builder = thread::Builder::new().name("ws-clock".to_owned());
        let thread = with_signals_blocked(|| builder.spawn(calibrate));
        let (thread, process) = (Some(thread.map_err(StartError::Thread)?), process::id());
        Ok(Self { counter, nic: number, newest, wall_clock, stop, thread, process })
    }

    /// The system time of a raw value of the counter, by the newest timeline; see
    /// [`Timeline::convert`]. For many values take a timeline once.
    #[must_use]
    pub fn convert(&self, raw: u64) -> Stamp {
        self.newest.counter.load().convert(raw)
    }

    /// The time from one raw value of the counter to another, negative if `to` was read first, and
    /// how far off it can be; see [`crate::DifferenceClock`].
    #[must_use]
    pub fn span(&self, from: u64, to: u64) -> (Span, Span) {
        let clock = self.newest.counter.load().difference();
        let stamp = |value| RawStamp { domain: Domain::Counter, value };
        let span = clock.span(stamp(from), stamp(to)).expect("both are of the clock's domain");
        (span, clock.error(span))
    }

    /// The newest timeline of `domain`. It stays good for some seconds; a converter takes a new
    /// one for each batch.
    ///
    /// That of [`Domain::Nic`] knows nothing if no network card's clock is followed ([`Self::nic`]):
    /// all its errors are unbounded, [`Span::MAX`].
    #[must_use]
    pub fn timeline(&self, domain: Domain) -> Arc<Timeline> {
        match domain {
            Domain::Counter => self.newest.counter.load_full(),
            Domain::Monotonic => self.newest.monotonic.load_full(),
            Domain::Realtime => self.newest.realtime.load_full(),
            Domain::Nic => self.newest.nic.load_full(),
        }
    }

    /// The time of day, read from the counter. It may outlive the service.
    #[must_use]
    pub fn wall_clock(&self) -> WallClock {
        self.wall_clock.clone()
    }

    /// The counter that is calibrated.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        self.counter
    }

    /// The number of the network card's clock that is followed, `/dev/ptpN`, if there is one.
    #[must_use]
    pub const fn nic(&self) -> Option<u32> {
        self.nic
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
        let Some(thread) = self.thread.take() else { return };
        if process::id() != self.process {
            // The thread is the parent's: nobody would ever end it here.
            std::mem::forget(thread);
            return;
        }
        *self.stop.lock() = true;
        self.stop.change.notify_one();
        // A calibrator that panicked has said so on standard error; there is nothing to add.
        let _ = thread.join();
    }
}

impl Calibration {
    fn begin(counter: Counter, nic: Option<Phc>) -> Result<Self, StartError> {
        let calibrate = |clocks: SystemClocks| {
            let step = smallest_usual_step(clocks);
            Calibrator::new(clocks.domain(), clocks, step)
        };
        let disruption_marker = disruption_marker();
        let (counter_calibrator, monotonic) =
            (calibrate(SystemClocks::counter(counter))?, calibrate(SystemClocks::monotonic())?);
        let nic = nic.map(calibrate_nic).transpose()?;
        let nic_timeline = nic.as_ref().map(Calibrator::timeline);
        let newest = Newest {
            counter: ArcSwap::new(counter_calibrator.timeline()),
            monotonic: ArcSwap::new(monotonic.timeline()),
            realtime: ArcSwap::from_pointee(Timeline::realtime()),
            nic: ArcSwap::new(nic_timeline.unwrap_or_else(|| Arc::new(Timeline::unknown()))),
        };
        Ok(Self {
            steering: Steering::new(&counter_calibrator.timeline(), counter.read_ordered()),
            counter: counter_calibrator,
            monotonic,
            nic,
            disruption_marker,
            newest: Arc::new(newest),
        })
    }

    fn keep_fresh(mut self, counter: Counter, stop: &Stop) {
        let mut interval = FIRST_INTERVAL;
        while !stop.wait(jittered(interval, counter.read())) {
            let steps = self.steps();
            self.sample();
            let timeline = self.counter.timeline();
            // After a step the rates have to be found anew, and quickly.
            let stepped = self.steps() != steps;
            interval = if stepped { FIRST_INTERVAL } else { (interval * 2).min(LONGEST_INTERVAL) };
            let interval = Span::try_from(interval).unwrap_or(Span::MAX);
            self.steering.follow(&timeline, interval, || counter.read_ordered());
        }
    }

    fn sample(&mut self) {
        let counter = if self.was_moved() { self.counter.disrupt() } else { self.counter.sample() };
        self.newest.publish(counter, self.monotonic.sample());
        if let Some(nic) = &mut self.nic {
            self.newest.nic.store(nic.sample());
        }
    }

    /// Steps of the counter's timeline and of the network card's, which see a step of the system clock
    /// both, and each what only its own clock does.
    fn steps(&self) -> (u32, Option<u32>) {
        let of_nic = self.nic.as_ref().map(|nic| nic.timeline().steps());
        (self.counter.timeline().steps(), of_nic)
    }

    /// Whether the hypervisor says that the machine was moved since it was asked last. A marker that
    /// is just being changed is looked at with the next sample.
    fn was_moved(&mut self) -> bool {
        let Some(marker) = disruption_marker() else { return false };
        self.disruption_marker.replace(marker).is_some_and(|before| before != marker)
    }
}

fn calibrate_nic(nic: Phc) -> Result<Calibrator<NicClocks>, StartError> {
    let number = nic.number();
    let calibrator = Calibrator::new(Domain::Nic, NicClocks::new(nic), phc::STEP);
    calibrator.map_err(|cause| StartError::Nic { number, cause })
}

fn disruption_marker() -> Option<u64> {
    VmClock::of_machine().ok().and_then(VmClock::disruption_marker)
}

impl Newest {
    fn publish(&self, counter: Arc<Timeline>, monotonic: Arc<Timeline>) {
        let steps = counter.steps();
        if steps != self.realtime.load().steps() {
            let realtime = Timeline::identity_after(Domain::Realtime, steps);
            self.realtime.store(Arc::new(realtime));
        }
        self.counter.store(counter);
        self.monotonic.store(monotonic);
    }
}

impl Stop {
    /// A poisoned lock holds a whole value all the same.
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `interval`, or until the service is dropped: true in that case.
    fn wait(&self, interval: Duration) -> bool {
        let waited = self.change.wait_timeout_while(self.lock(), interval, |stop| !*stop);
        *waited.unwrap_or_else(PoisonError::into_inner).0
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
    use std::time::Instant;

    use wirestamp_sys::clock::ClockId;

    use super::*;
    use crate::Clocks;

    #[test]
    fn a_service_converts_at_once_and_stops_when_dropped() {
        let service = ClockService::start(Counter::select()).unwrap();
        for domain in [Domain::Counter, Domain::Monotonic, Domain::Realtime] {
            assert_eq!(service.timeline(domain).domain(), domain);
        }
        let stamp = service.timeline(Domain::Counter).convert(service.counter().read());
        assert!(stamp.error < Span::from_millis(1), "{:?}", stamp.error);
        assert_eq!(service.status().selected, Counter::select().name());
    }

    #[test]
    fn a_process_keeps_its_counter() {
        let counter = Counter::select();
        let service = ClockService::start(counter).unwrap();
        drop(service);
        assert!(ClockService::start(counter).is_ok(), "the same one may be started again");
        if counter != Counter::Os {
            let refused = ClockService::start(Counter::Os).unwrap_err().to_string();
            assert!(refused.contains(counter.name()) && refused.contains("os"), "{refused}");
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
    fn a_network_cards_clock_is_followed_beside_the_others() {
        let stand_in = Phc::stand_in(ClockId::Boottime);
        let service = ClockService::start_with_nic(Counter::select(), stand_in).unwrap();
        assert_eq!(service.nic(), Some(0));
        let mut clocks = NicClocks::new(Phc::stand_in(ClockId::Boottime));
        let first = service.timeline(Domain::Nic);
        // The thread goes on with it: its newest anchor becomes another.
        let deadline = Instant::now() + Duration::from_secs(10);
        while service.timeline(Domain::Nic).anchors().len() == first.anchors().len() {
            assert!(Instant::now() < deadline, "nothing was sampled");
            thread::yield_now();
        }
        for _ in 0..1_000 {
            let before = clocks.utc();
            let raw = clocks.raw();
            let after = clocks.utc();
            let stamp = service.timeline(Domain::Nic).convert(raw);
            assert_eq!(stamp.raw.domain, Domain::Nic);
            assert!(stamp.utc + stamp.error >= before, "{stamp:?} read after {before:?}");
            assert!(stamp.utc - stamp.error <= after, "{stamp:?} read before {after:?}");
        }
    }

    #[test]
    fn without_a_network_cards_clock_its_stamps_have_no_known_time() {
        let service = ClockService::start(Counter::select()).unwrap();
        assert_eq!(service.nic(), None);
        assert_eq!(service.timeline(Domain::Nic).domain(), Domain::Nic);
        for raw in [0, 1, 1 << 60, u64::MAX] {
            assert_eq!(service.timeline(Domain::Nic).convert(raw).error, Span::MAX);
        }
    }

    #[test]
    fn a_step_that_the_counter_sees_is_told_of_the_kernels_stamps_too() {
        let after = |steps| Arc::new(Timeline::identity_after(Domain::Counter, steps));
        let newest = Newest {
            counter: ArcSwap::new(after(0)),
            monotonic: ArcSwap::new(after(0)),
            realtime: ArcSwap::new(after(0)),
            nic: ArcSwap::from_pointee(Timeline::unknown()),
        };
        for steps in [0, 1, 1, 3] {
            newest.publish(after(steps), after(0));
            assert_eq!(newest.realtime.load().steps(), steps);
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
