//! Calibration of the clocks, on the service's thread.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::kernel_lines::{KernelLines, Observation, Refined};
use crate::anchor::SystemClocks;
use crate::phc::{self, NicClocks};
use crate::survey::smallest_usual_step;
use crate::vdso::history::{INVERSE_ERROR, Lines};
use crate::vdso::{ExactConversion, KernelClock, NoExactConversion};
use crate::wall::Steering;
use crate::{
    CalibrationError, Calibrator, Counter, Domain, Phc, SourceError, Span, Stamp, Timeline, VmClock,
};

/// Interval between the first two samples.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);

/// Max interval; intervals double up to it. Long enough that a joint read of 50 ns gives the rate to 0.4 ppm, short
/// enough that the oscillator and the slewing are steady.
const MAX_INTERVAL: Duration = Duration::from_millis(250);

/// The newest timelines. Reading takes no lock, because a child process could inherit a held one.
#[derive(Debug)]
pub(super) struct LatestTimelines {
    /// Extends timelines of the kernel's lines up to now.
    pub(super) conversion: Option<Arc<ExactConversion>>,
    pub(super) counter: ArcSwap<Timeline>,
    pub(super) monotonic: ArcSwap<Timeline>,
    /// Its number of steps is that of the counter's timeline.
    pub(super) realtime: ArcSwap<Timeline>,
    /// [`Timeline::unknown`] without a network card's clock.
    pub(super) nic: ArcSwap<Timeline>,
    /// The kernel's lines from the counter to `CLOCK_MONOTONIC`, if the counter's timeline is exact.
    pub(super) counter_to_monotonic: ArcSwapOption<Lines>,
    /// Why the kernel's lines are not used.
    pub(super) inexact: ArcSwapOption<NoExactConversion>,
}

/// Signal that ends the thread.
#[derive(Debug, Default)]
pub(super) struct StopSignal {
    requested: Mutex<bool>,
    change: Condvar,
}

/// State of the thread.
pub(super) struct Calibration {
    counter: Calibrator<SystemClocks>,
    monotonic: Calibrator<SystemClocks>,
    nic: Option<Calibrator<NicClocks>>,
    lines: KernelLines,
    pub(super) steering: Steering,
    disruption_marker: Option<u64>,
    pub(super) newest: Arc<LatestTimelines>,
}

/// Error of [`super::ClockService::start`].
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

impl Calibration {
    pub(super) fn spawn(
        counter: Counter,
        nic: Option<Phc>,
        conversion: Result<ExactConversion, NoExactConversion>,
    ) -> Result<Self, StartError> {
        let conversion = conversion.map(Arc::new);
        let calibrate = |clocks: SystemClocks| {
            let step = smallest_usual_step(clocks);
            Calibrator::new(clocks.domain(), clocks, step)
        };
        let disruption_marker = disruption_marker();
        let mut lines = KernelLines::new(conversion.clone());
        lines.observe();
        let (counter_calibrator, monotonic) =
            (calibrate(SystemClocks::counter(counter))?, calibrate(SystemClocks::monotonic())?);
        let nic = nic.map(calibrate_nic).transpose()?;
        let nic_timeline = nic.as_ref().map(Calibrator::timeline);
        lines.observe();
        let newest = LatestTimelines {
            conversion: conversion.ok(),
            counter: ArcSwap::new(counter_calibrator.timeline()),
            monotonic: ArcSwap::new(monotonic.timeline()),
            realtime: ArcSwap::from_pointee(Timeline::realtime()),
            nic: ArcSwap::new(nic_timeline.unwrap_or_else(|| Arc::new(Timeline::unknown()))),
            counter_to_monotonic: ArcSwapOption::empty(),
            inexact: ArcSwapOption::empty(),
        };
        lines.compare(&newest.counter.load(), &newest.monotonic.load());
        newest.publish(lines.refine(&newest.counter.load(), &newest.monotonic.load()));
        Ok(Self {
            steering: Steering::new(&newest.counter.load(), counter.read_ordered()),
            lines,
            counter: counter_calibrator,
            monotonic,
            nic,
            disruption_marker,
            newest: Arc::new(newest),
        })
    }

    pub(super) fn calibrate_periodically(mut self, counter: Counter, stop: &StopSignal) {
        let mut interval = FIRST_INTERVAL;
        let mut next_sample = Instant::now() + jittered(interval, counter.read());
        loop {
            let until_sample = next_sample.saturating_duration_since(Instant::now());
            if stop.wait(until_sample.min(self.lines.interval())) {
                return;
            }
            let observation = self.lines.observe();
            if observation != Observation::Stepped && Instant::now() < next_sample {
                if observation == Observation::Changed {
                    self.publish();
                }
                continue;
            }
            let steps = self.steps();
            self.sample();
            self.publish();
            // After a step the rates must be estimated anew, and quickly.
            let stepped = self.steps() != steps;
            interval = if stepped { FIRST_INTERVAL } else { (interval * 2).min(MAX_INTERVAL) };
            next_sample = Instant::now() + jittered(interval, counter.read());
            let interval = Span::try_from(interval).unwrap_or(Span::MAX);
            self.steering.follow(&self.newest.counter.load(), interval, || counter.read_ordered());
        }
    }

    fn sample(&mut self) {
        let counter = if self.was_migrated() {
            self.lines.clear();
            self.counter.disrupt()
        } else {
            self.counter.sample()
        };
        let monotonic = self.monotonic.sample();
        // After the anchors, which then lie between two observations.
        self.lines.observe();
        self.lines.compare(&counter, &monotonic);
        if let Some(nic) = &mut self.nic {
            self.newest.nic.store(nic.sample());
        }
    }

    fn publish(&self) {
        self.newest
            .publish(self.lines.refine(&self.counter.timeline(), &self.monotonic.timeline()));
    }

    /// Steps of the counter's timeline and of the network card's. Both include steps of the system clock, and each
    /// the breaks of its own clock.
    fn steps(&self) -> (u32, Option<u32>) {
        let of_nic = self.nic.as_ref().map(|nic| nic.timeline().steps());
        (self.counter.timeline().steps(), of_nic)
    }

    /// True if the hypervisor reports a migration since the last call. A marker that is being updated is read with the
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
    /// The timeline of a domain. One of the kernel's lines is extended up to now.
    pub(super) fn of(&self, domain: Domain) -> Timeline {
        let newest = self.published(domain).load();
        self.extended(domain, &newest).unwrap_or_else(|| Timeline::clone(&newest))
    }

    /// The lines from the counter to a clock of the kernel, extended up to now.
    pub(super) fn lines_to(&self, clock: KernelClock) -> Option<Lines> {
        let conversion = self.conversion.as_ref()?;
        let (line, now) = conversion.counter_to(clock)?;
        match clock {
            KernelClock::Realtime => self.counter.load().kernel_lines()?.extended(&line, now),
            KernelClock::Monotonic => {
                self.counter_to_monotonic.load().as_ref()?.extended(&line, now)
            }
            _ => None,
        }
    }

    /// System time of a raw value of the counter.
    pub(super) fn convert(&self, raw: u64) -> Stamp {
        let newest = self.counter.load();
        match self.extended(Domain::Counter, &newest) {
            Some(extended) => extended.convert(raw),
            None => newest.convert(raw),
        }
    }

    /// Converts raw values of a domain, in their order.
    pub(super) fn convert_batch(&self, domain: Domain, raw: &[u64], out: &mut Vec<Stamp>) {
        let newest = self.published(domain).load();
        match self.extended(domain, &newest) {
            Some(extended) => extended.convert_batch(raw, out),
            None => newest.convert_batch(raw, out),
        }
    }

    fn extended(&self, domain: Domain, newest: &Timeline) -> Option<Timeline> {
        let conversion = self.conversion.as_ref().filter(|_| newest.is_exact())?;
        let (line, now) = conversion.line_of_domain(domain)?;
        newest.extended(&line, now)
    }

    fn published(&self, domain: Domain) -> &ArcSwap<Timeline> {
        match domain {
            Domain::Counter => &self.counter,
            Domain::Monotonic => &self.monotonic,
            Domain::Realtime => &self.realtime,
            Domain::Nic => &self.nic,
        }
    }

    /// Publishes the timelines. Spans between stamps of the kernel are measured by the counter, if its timeline is
    /// exact.
    fn publish(&self, refined: Refined) {
        let Refined { counter, mut monotonic, counter_to_monotonic, inexact } = refined;
        let steps = counter.steps();
        let mut realtime = Timeline::identity_after(Domain::Realtime, steps);
        if counter.is_exact() {
            let difference = counter.difference().with_stamp_error(INVERSE_ERROR);
            realtime = realtime.with_difference(difference);
            monotonic = Arc::new(Timeline::clone(&monotonic).with_difference(difference));
        }
        self.realtime.store(Arc::new(realtime));
        self.counter.store(counter);
        self.monotonic.store(monotonic);
        self.counter_to_monotonic.store(counter_to_monotonic);
        self.inexact.store(inexact);
    }
}

impl StopSignal {
    /// Ends the thread.
    pub(super) fn request(&self) {
        *self.lock() = true;
        self.change.notify_one();
    }

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
    use super::*;

    #[test]
    fn steps_are_counted_for_kernel_stamps_too() {
        let after = |steps| Arc::new(Timeline::identity_after(Domain::Counter, steps));
        let newest = LatestTimelines {
            conversion: None,
            counter: ArcSwap::new(after(0)),
            monotonic: ArcSwap::new(after(0)),
            realtime: ArcSwap::new(after(0)),
            nic: ArcSwap::from_pointee(Timeline::unknown()),
            counter_to_monotonic: ArcSwapOption::empty(),
            inexact: ArcSwapOption::empty(),
        };
        for steps in [0, 1, 1, 3] {
            let (counter, monotonic) = (after(steps), after(0));
            newest.publish(Refined {
                counter,
                monotonic,
                counter_to_monotonic: None,
                inexact: None,
            });
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
