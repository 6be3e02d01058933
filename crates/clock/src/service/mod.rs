//! The clock service: one thread that keeps the timelines of this machine's clocks up to date.

mod calibration;
mod counter_values;
mod kernel_lines;

use std::process;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde::Serialize;
use wirestamp_sys::process::with_signals_blocked;

use crate::source::selection::fix_process_counter;
use crate::vdso::{ExactConversion, NoExactConversion};
use crate::wall::WallClock;
use crate::{Counter, Domain, Phc, RawStamp, Span, Stamp, Timeline};
pub use calibration::StartError;
use calibration::{Calibration, LatestTimelines, StopSignal};
pub use counter_values::CounterValues;

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

/// State of the counter's calibration. Serialises with these names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockStatus {
    /// Name of the counter in use.
    pub selected: &'static str,
    /// Frequency against `CLOCK_MONOTONIC_RAW`, in hertz.
    pub frequency_hz: f64,
    /// Bound of the frequency's error, in parts per million.
    pub rate_error_ppm: f64,
    /// Error bound against system time of a stamp that is taken and converted now, in nanoseconds.
    pub error_ns: i64,
    /// Smallest usual step of the counter, as [`crate::CounterSource::granularity_ns`], in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Steps of the system clock and disruptions of the counter since the start.
    pub steps: u32,
    /// True if stamps are converted by the kernel's own lines ([`crate::vdso`]), false if by lines between anchors.
    pub exact: bool,
}

impl ClockService {
    /// Starts the calibration of `counter` and `CLOCK_MONOTONIC`. Returns after some milliseconds with both usable,
    /// later if a read of the counter takes microseconds, as on an HPET.
    ///
    /// Stamps are converted by the kernel's own lines where there are any ([`Self::is_exact`]), with an error of 2 ns.
    /// Otherwise the bounds are wide at first and tighten within the first second; [`Self::no_exact_conversion`] gives
    /// the reason.
    ///
    /// The thread inherits the scheduling policy and the cores of the caller. Call this before the program pins its
    /// threads. The thread blocks all signals.
    ///
    /// # Errors
    /// If the process stamps with another counter already, the thread cannot be created, or a clock is stopped or
    /// runs backwards.
    pub fn start(counter: Counter) -> Result<Self, StartError> {
        Self::follow(counter, None, ExactConversion::of_machine(counter))
    }

    /// As [`Self::start`], but converts by lines between anchors even where the kernel's own lines are usable.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_by_anchors(counter: Counter) -> Result<Self, StartError> {
        Self::follow(counter, None, Err(NoExactConversion::NotRequested))
    }

    /// As [`Self::start`], and also calibrates a network card's clock for the stamps of [`Domain::Nic`].
    ///
    /// # Errors
    /// As [`Self::start`], and if the network card's clock is stopped or runs backwards.
    pub fn start_with_nic(counter: Counter, nic: Phc) -> Result<Self, StartError> {
        Self::follow(counter, Some(nic), ExactConversion::of_machine(counter))
    }

    fn follow(
        counter: Counter,
        nic: Option<Phc>,
        conversion: Result<ExactConversion, NoExactConversion>,
    ) -> Result<Self, StartError> {
        let number = nic.as_ref().map(Phc::number);
        let calibration = Calibration::spawn(counter, nic, conversion)?;
        // After the first samples, because a process keeps its counter permanently.
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
        self.newest.convert(raw)
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

    /// The newest timeline of `domain`. It is exact up to this call if [`Self::is_exact`], and stays accurate for some
    /// seconds; a converter gets a new one for each batch, after its stamps. This allocates no memory.
    ///
    /// Without a network card's clock ([`Self::nic`]), all errors of the timeline of [`Domain::Nic`] are unbounded,
    /// [`Span::MAX`].
    #[must_use]
    pub fn timeline(&self, domain: Domain) -> Timeline {
        self.newest.of(domain)
    }

    /// Converts raw values of `domain` by the newest timeline, as [`Timeline::convert_batch`]. Call it after the stamps
    /// were taken. This allocates no memory but for `out`.
    pub fn convert_batch(&self, domain: Domain, raw: &[u64], out: &mut Vec<Stamp>) {
        self.newest.convert_batch(domain, raw, out);
    }

    /// A conversion of kernel stamps to counter values, for the batches of one thread.
    #[must_use]
    pub fn counter_values(&self) -> CounterValues {
        CounterValues::new(Arc::clone(&self.newest))
    }

    /// The counter's value at the time of one stamp of the kernel, as [`CounterValues::replace`]; none if it is not
    /// known, as for times after this call.
    #[must_use]
    pub fn counter_value(&self, stamp: RawStamp) -> Option<u64> {
        self.newest.counter_value(stamp)
    }

    /// Domain of the raw values that [`CounterValues`] makes of those of `domain`: the counter's for stamps of the kernel
    /// if [`Self::is_exact`].
    #[must_use]
    pub fn raw_domain(&self, domain: Domain) -> Domain {
        match domain {
            Domain::Realtime | Domain::Monotonic if self.is_exact() => Domain::Counter,
            other => other,
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

    /// Whether the newest stamps of the counter are converted by the kernel's own lines ([`crate::vdso`]); otherwise
    /// by lines between anchors, which have larger errors.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.newest.counter.load().is_exact()
    }

    /// Reason why the kernel's own lines are not used: from the start, or since they failed a check, which is made at
    /// least every 50 ms.
    #[must_use]
    pub fn no_exact_conversion(&self) -> Option<Arc<NoExactConversion>> {
        self.newest.inexact.load_full()
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
            exact: timeline.is_exact(),
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
        self.stop.request();
        // A calibrator that panicked has already printed it to standard error.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wirestamp_sys::clock::ClockId;

    use super::*;
    use crate::Clocks;
    use crate::anchor::SystemClocks;
    use crate::phc::NicClocks;

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
    fn service_is_exact_from_the_start() {
        for _ in 0..20 {
            let service = ClockService::start(Counter::select()).unwrap();
            let why = service.no_exact_conversion();
            assert_eq!(service.is_exact(), why.is_none(), "{why:?}");
        }
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
    fn wrong_layout_is_detected_within_100_ms() {
        let counter = Counter::select();
        let Ok(conversion) = ExactConversion::of_machine(counter) else {
            return println!("skipped here: no exact conversion");
        };
        // As if the page had changed just after the proof.
        let service = ClockService::follow(counter, None, Ok(conversion.with_wrong_layout()));
        let (service, start) = (service.unwrap(), Instant::now());
        let why = loop {
            assert!(!service.is_exact(), "wrong lines are never used: they contradict the anchors");
            match service.no_exact_conversion() {
                Some(why) => break why,
                None => assert!(start.elapsed() < Duration::from_secs(10), "it was not detected"),
            }
            thread::yield_now();
        };
        assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
        assert!(why.to_string().contains("layout"), "{why}");
        let stamp = service.convert(counter.read());
        assert!(stamp.error > Span::from_nanos(3), "{stamp:?}");
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
}
