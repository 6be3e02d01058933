//! The clock service: one thread that keeps the timelines of this machine's clocks up to date.

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
use crate::source::selection::fix_process_counter;
use crate::survey::smallest_usual_step;
use crate::wall::{Steering, WallClock};
use crate::{
    CalibrationError, Calibrator, Counter, Domain, Phc, RawStamp, SourceError, Span, Stamp,
    Timeline, VmClock,
};

/// Interval between the first two samples.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);

/// Max interval; intervals double up to it. Long enough that a joint read of 50 ns gives the rate to 0.4 ppm, short
/// enough that the oscillator and the slewing are steady.
const MAX_INTERVAL: Duration = Duration::from_millis(250);

/// Calibrates the machine's clocks on its own thread, `ws-clock`, until dropped.
///
/// # Fork
///
/// A child process has no calibrating thread. Its clocks continue from their state at the fork, with growing bounds.
/// A service that the child starts itself is independent.
#[derive(Debug)]
pub struct ClockService {
    counter: Counter,
    /// Number of the network card's clock that is calibrated too.
    nic: Option<u32>,
    newest: Arc<LatestTimelines>,
    wall_clock: WallClock,
    stop: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
    /// Process of the thread.
    process: u32,
}

/// The newest timelines. Reading takes no lock, because a child process could inherit a held one.
#[derive(Debug)]
struct LatestTimelines {
    counter: ArcSwap<Timeline>,
    monotonic: ArcSwap<Timeline>,
    /// Takes the number of steps from the counter's timeline.
    realtime: ArcSwap<Timeline>,
    /// [`Timeline::unknown`] without a network card's clock.
    nic: ArcSwap<Timeline>,
}

/// Signal that ends the thread.
#[derive(Debug, Default)]
struct StopSignal {
    requested: Mutex<bool>,
    change: Condvar,
}

/// State of the thread.
struct Calibration {
    counter: Calibrator<SystemClocks>,
    monotonic: Calibrator<SystemClocks>,
    nic: Option<Calibrator<NicClocks>>,
    steering: Steering,
    disruption_marker: Option<u64>,
    newest: Arc<LatestTimelines>,
}

/// Error of [`ClockService::start`].
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
        /// Number of its device.
        number: u32,
        /// Cause.
        cause: CalibrationError,
    },
    /// The thread cannot be created.
    #[error("cannot start the calibration thread: {0}; stop other threads or processes")]
    Thread(io::Error),
}

fn behaviour(cause: CalibrationError) -> &'static str {
    match cause {
        CalibrationError::Backwards => "runs backwards, or can no longer be read",
        CalibrationError::Stopped => "stands still",
    }
}

/// State of the counter's calibration. Serialises with these names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStatus {
    /// Name of the counter in use.
    pub selected: &'static str,
    /// Frequency against `CLOCK_MONOTONIC_RAW`.
    pub frequency_hz: f64,
    /// Bound of the frequency's error, in parts per million.
    pub rate_error_ppm: f64,
    /// Error bound against system time of a stamp that is taken and converted now.
    pub error_ns: i64,
    /// Smallest usual step of the counter, as [`crate::CounterSource::granularity_ns`], rounded up.
    pub granularity_ns: i64,
    /// Steps of the system clock and disruptions of the counter since the start.
    pub steps: u32,
}

impl ClockService {
    /// Starts the calibration of `counter` and `CLOCK_MONOTONIC`. Returns after about 0.5 ms with both usable, later
    /// if a read of the counter takes microseconds, as on an HPET. The bounds are wide at first and tighten within
    /// the first second.
    ///
    /// The thread inherits the scheduling policy and the cores of the caller. Call this before the program pins its
    /// threads. The thread blocks all signals.
    ///
    /// # Errors
    /// If the process stamps with another counter already, the thread cannot be created, or a clock is stopped or
    /// runs backwards.
    pub fn start(counter: Counter) -> Result<Self, StartError> {
        Self::follow(counter, None)
    }

    /// As [`Self::start`], and also calibrates a network card's clock for the stamps of [`Domain::Nic`].
    ///
    /// # Errors
    /// As [`Self::start`], and if the network card's clock is stopped or runs backwards.
    pub fn start_with_nic(counter: Counter, nic: Phc) -> Result<Self, StartError> {
        Self::follow(counter, Some(nic))
    }

    fn follow(counter: Counter, nic: Option<Phc>) -> Result<Self, StartError> {
        let number = nic.as_ref().map(Phc::number);
        let calibration = Calibration::spawn(counter, nic)?;
        // After the first samples, because a process keeps its counter for good.
        fix_process_counter(counter)?;
        let newest = Arc::clone(&calibration.newest);
        let wall_clock = calibration.steering.clock(counter);
        let stop = Arc::new(StopSignal::default());
        let calibrate = {
            let stop = Arc::clone(&stop);
            move || calibration.calibrate_periodically(counter, &stop)
        };
        let builder = thread::Builder::new().name("ws-clock".to_owned());
        let thread = with_signals_blocked(|| builder.spawn(calibrate));
        let (thread, process) = (Some(thread.map_err(StartError::Thread)?), process::id());
        Ok(Self { counter, nic: number, newest, wall_clock, stop, thread, process })
    }

    /// System time of a raw value of the counter, by the newest timeline; see [`Timeline::convert`]. For many values
    /// get a timeline once.
    #[must_use]
    pub fn convert(&self, raw: u64) -> Stamp {
        self.newest.counter.load().convert(raw)
    }

    /// Time from one raw value of the counter to another, negative if `to` was read first, and its error bound; see
    /// [`crate::DifferenceClock`].
    #[must_use]
    pub fn span(&self, from: u64, to: u64) -> (Span, Span) {
        let clock = self.newest.counter.load().difference();
        let stamp = |value| RawStamp { domain: Domain::Counter, value };
        let span = clock.span(stamp(from), stamp(to)).expect("both are of the clock's domain");
        (span, clock.error(span))
    }

    /// The newest timeline of `domain`. It stays accurate for some seconds; a converter gets a new one for each
    /// batch.
    ///
    /// Without a network card's clock ([`Self::nic`]), all errors of the timeline of [`Domain::Nic`] are unbounded,
    /// [`Span::MAX`].
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

    /// The calibrated counter.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        self.counter
    }

    /// Number of the calibrated network card's clock, `/dev/ptpN`, if any.
    #[must_use]
    pub const fn nic(&self) -> Option<u32> {
        self.nic
    }

    /// Current state of the counter's calibration.
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
            // The thread belongs to the parent: a join would never return here.
            std::mem::forget(thread);
            return;
        }
        *self.stop.lock() = true;
        self.stop.change.notify_one();
        // A calibrator that panicked has already printed it to standard error.
        let _ = thread.join();
    }
}

impl Calibration {
    fn spawn(counter: Counter, nic: Option<Phc>) -> Result<Self, StartError> {
        let calibrate = |clocks: SystemClocks| {
            let step = smallest_usual_step(clocks);
            Calibrator::new(clocks.domain(), clocks, step)
        };
        let disruption_marker = disruption_marker();
        let (counter_calibrator, monotonic) =
            (calibrate(SystemClocks::counter(counter))?, calibrate(SystemClocks::monotonic())?);
        let nic = nic.map(calibrate_nic).transpose()?;
        let nic_timeline = nic.as_ref().map(Calibrator::timeline);
        let newest = LatestTimelines {
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

    fn calibrate_periodically(mut self, counter: Counter, stop: &StopSignal) {
        let mut interval = FIRST_INTERVAL;
        while !stop.wait(jittered(interval, counter.read())) {
            let steps = self.steps();
            self.sample();
            let timeline = self.counter.timeline();
            // After a step the rates must be estimated anew, and quickly.
            let stepped = self.steps() != steps;
            interval = if stepped { FIRST_INTERVAL } else { (interval * 2).min(MAX_INTERVAL) };
            let interval = Span::try_from(interval).unwrap_or(Span::MAX);
            self.steering.follow(&timeline, interval, || counter.read_ordered());
        }
    }

    fn sample(&mut self) {
        let counter =
            if self.was_migrated() { self.counter.disrupt() } else { self.counter.sample() };
        self.newest.publish(counter, self.monotonic.sample());
        if let Some(nic) = &mut self.nic {
            self.newest.nic.store(nic.sample());
        }
    }

    /// Steps of the counter's timeline and of the network card's. Both include steps of the system clock, and each
    /// the breaks of its own clock.
    fn steps(&self) -> (u32, Option<u32>) {
        let of_nic = self.nic.as_ref().map(|nic| nic.timeline().steps());
        (self.counter.timeline().steps(), of_nic)
    }

    /// True if the hypervisor reports a migration since the last call. A marker during an update is read with the
    /// next sample.
    fn was_migrated(&mut self) -> bool {
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

impl LatestTimelines {
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

impl StopSignal {
    /// A poisoned lock holds a valid value.
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `interval`, or until the service is dropped: true in that case.
    fn wait(&self, interval: Duration) -> bool {
        let waited = self.change.wait_timeout_while(self.lock(), interval, |stop| !*stop);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The interval shortened by up to an eighth, so that sampling does not synchronise with periodic traffic. The low
/// bits of a counter are random enough for that.
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
    fn service_converts_at_once_and_stops_on_drop() {
        let service = ClockService::start(Counter::select()).unwrap();
        for domain in [Domain::Counter, Domain::Monotonic, Domain::Realtime] {
            assert_eq!(service.timeline(domain).domain(), domain);
        }
        let stamp = service.timeline(Domain::Counter).convert(service.counter().read());
        assert!(stamp.error < Span::from_millis(1), "{:?}", stamp.error);
        assert_eq!(service.status().selected, Counter::select().name());
    }

    #[test]
    fn process_keeps_its_counter() {
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
    fn converted_time_matches_the_system_clock() {
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
    fn nic_clock_is_calibrated_with_the_others() {
        let stand_in = Phc::stand_in(ClockId::Boottime);
        let service = ClockService::start_with_nic(Counter::select(), stand_in).unwrap();
        assert_eq!(service.nic(), Some(0));
        let mut clocks = NicClocks::new(Phc::stand_in(ClockId::Boottime));
        let first = service.timeline(Domain::Nic);
        // The thread also samples this clock: its newest anchor changes.
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
    fn nic_stamps_without_nic_clock_are_unbounded() {
        let service = ClockService::start(Counter::select()).unwrap();
        assert_eq!(service.nic(), None);
        assert_eq!(service.timeline(Domain::Nic).domain(), Domain::Nic);
        for raw in [0, 1, 1 << 60, u64::MAX] {
            assert_eq!(service.timeline(Domain::Nic).convert(raw).error, Span::MAX);
        }
    }

    #[test]
    fn steps_are_counted_for_kernel_stamps_too() {
        let after = |steps| Arc::new(Timeline::identity_after(Domain::Counter, steps));
        let newest = LatestTimelines {
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
            let interval = jittered(MAX_INTERVAL, value);
            assert!(interval <= MAX_INTERVAL && interval >= MAX_INTERVAL * 7 / 8);
        }
    }
}
