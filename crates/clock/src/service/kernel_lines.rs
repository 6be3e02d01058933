//! The kernel's own lines: observed between the anchors, and checked against them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::difference::ORDINARY_SLEW;
use crate::ratio::{ceil_nanos, nanos};
use crate::vdso::history::{Change, LineHistory, Lines};
use crate::vdso::{ExactConversion, KernelClock, KernelLine, NoExactConversion};
use crate::{Domain, Span, Timeline};

/// Interval between two observations while the lines continue each other. A change in between is in the error of the
/// stamps of this interval.
const INTERVAL: Duration = Duration::from_millis(50);

/// Interval after a change of rate. A time daemon makes the kernel change it at nearly every tick, by about a tenth of
/// a ppm: over this interval by less than a nanosecond.
const INTERVAL_OF_CHANGES: Duration = Duration::from_millis(4);

/// Time without a change after which [`INTERVAL`] applies again.
const QUIET: Duration = Duration::from_secs(10);

/// Distance of two lines that is a step, whatever the rate.
const STEP: Span = Span::from_nanos(1_000);

/// The kernel's lines from one domain to UTC.
#[derive(Debug)]
struct DomainLines {
    domain: Domain,
    history: LineHistory,
    /// The line of `CLOCK_MONOTONIC_RAW`, whose rate spans of the counter have.
    rate: Option<KernelLine>,
    /// Whether the newest anchor agrees with the lines.
    agree: bool,
}

/// The kernel's lines of the counter and of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(super) struct KernelLines {
    /// Source of the lines, or why they are not used.
    conversion: Result<Arc<ExactConversion>, Arc<NoExactConversion>>,
    counter: DomainLines,
    monotonic: DomainLines,
    /// From the counter to `CLOCK_MONOTONIC`.
    counter_to_monotonic: LineHistory,
    observed: Instant,
    changed: Option<Instant>,
}

/// Result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// All lines continue.
    Unchanged,
    /// A rate changed, or the lines cannot be used any more.
    Changed,
    /// The system clock was stepped.
    Stepped,
}

/// The published timelines with the kernel's lines.
pub(super) struct Refined {
    pub(super) counter: Arc<Timeline>,
    pub(super) monotonic: Arc<Timeline>,
    /// The lines from the counter to `CLOCK_MONOTONIC`.
    pub(super) counter_to_monotonic: Option<Arc<Lines>>,
    /// Why the kernel's lines are not used.
    pub(super) inexact: Option<Arc<NoExactConversion>>,
}

impl ExactConversion {
    /// The line from a domain to UTC, and a value of the domain at which it is in force.
    pub(super) fn line_of_domain(&self, domain: Domain) -> Option<(KernelLine, u64)> {
        match domain {
            Domain::Counter => self.counter_to(KernelClock::Realtime),
            Domain::Monotonic => self.monotonic_to_utc(),
            Domain::Realtime | Domain::Nic => None,
        }
    }
}

impl KernelLines {
    pub(super) fn new(conversion: Result<Arc<ExactConversion>, NoExactConversion>) -> Self {
        let lines = |domain, rate| DomainLines {
            domain,
            history: LineHistory::default(),
            rate,
            agree: false,
        };
        let conversion = conversion.map_err(Arc::new);
        let rate = conversion.as_ref().ok().and_then(|it| it.line(KernelClock::MonotonicRaw));
        Self {
            conversion,
            counter: lines(Domain::Counter, rate),
            monotonic: lines(Domain::Monotonic, None),
            counter_to_monotonic: LineHistory::default(),
            observed: Instant::now(),
            changed: None,
        }
    }

    /// Interval until the next observation.
    pub(super) fn interval(&self) -> Duration {
        match self.changed {
            _ if self.conversion.is_err() => Duration::MAX,
            Some(changed) if changed.elapsed() < QUIET => INTERVAL_OF_CHANGES,
            _ => INTERVAL,
        }
    }

    /// Reads the kernel's lines, and checks them against one reading of each of its clocks.
    pub(super) fn observe(&mut self) -> Observation {
        let Ok(conversion) = self.conversion.clone() else { return Observation::Unchanged };
        if let Err(why) = conversion.holds() {
            self.conversion = Err(Arc::new(why));
            self.clear();
            return Observation::Changed;
        }
        let elapsed = self.observed.elapsed();
        self.observed = Instant::now();
        let slewed = Span::try_from(elapsed).map_or(f64::INFINITY, nanos) * ORDINARY_SLEW;
        let limit = STEP + Span::from_nanos(ceil_nanos(slewed));
        match conversion.counter_to(KernelClock::Monotonic) {
            Some((line, now)) => _ = self.counter_to_monotonic.observe(line, now),
            None => self.counter_to_monotonic.clear(),
        }
        let lines = [&mut self.counter, &mut self.monotonic];
        let observations = lines.map(|lines| lines.observe(&conversion, limit));
        if observations == [Observation::Unchanged; 2] {
            return Observation::Unchanged;
        }
        self.changed = Some(self.observed);
        let stepped = observations.contains(&Observation::Stepped);
        if stepped { Observation::Stepped } else { Observation::Changed }
    }

    /// Discards the lines, after a disruption of the counter.
    pub(super) fn clear(&mut self) {
        self.counter.clear();
        self.monotonic.clear();
        self.counter_to_monotonic.clear();
    }

    /// Compares the lines with the newest anchors.
    pub(super) fn compare(&mut self, counter: &Timeline, monotonic: &Timeline) {
        self.counter.compare(counter);
        self.monotonic.compare(monotonic);
    }

    /// The two timelines with the kernel's lines, where these agree with the anchors.
    pub(super) fn refine(&self, counter: &Arc<Timeline>, monotonic: &Arc<Timeline>) -> Refined {
        let counter = self.counter.refine(counter);
        let inverse = self.counter_to_monotonic.lines().filter(|_| counter.is_exact());
        Refined {
            counter,
            monotonic: self.monotonic.refine(monotonic),
            counter_to_monotonic: inverse.map(Arc::new),
            inexact: self.conversion.as_ref().err().cloned(),
        }
    }
}

impl DomainLines {
    fn observe(&mut self, conversion: &ExactConversion, step: Span) -> Observation {
        let Some((line, now)) = conversion.line_of_domain(self.domain) else {
            self.clear();
            return Observation::Changed;
        };
        match self.history.observe(line, now) {
            Change::None | Change::Began => Observation::Unchanged,
            Change::By(distance) if distance > step => Observation::Stepped,
            Change::By(_) => Observation::Changed,
        }
    }

    fn clear(&mut self) {
        self.history.clear();
        self.agree = false;
    }

    fn compare(&mut self, by_anchors: &Timeline) {
        let newest = self.history.lines().zip(by_anchors.anchors().next_back());
        self.agree = newest.is_some_and(|(lines, anchor)| {
            if anchor.raw < lines.first() {
                return false;
            }
            let stamp = by_anchors.with_kernel_lines(lines, None).convert(anchor.raw);
            (stamp.utc - anchor.utc).abs() <= stamp.error + anchor.error
        });
    }

    fn refine(&self, by_anchors: &Arc<Timeline>) -> Arc<Timeline> {
        match self.history.lines().filter(|_| self.agree) {
            Some(lines) => {
                let granularity = by_anchors.difference().granularity();
                let difference = self.rate.and_then(|line| line.difference_clock(granularity));
                Arc::new(by_anchors.with_kernel_lines(lines, difference))
            }
            None => Arc::clone(by_anchors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Time};

    /// Anchors of a clock of 1 GHz that shows `utc` at 0.
    fn by_anchors(utc: i64) -> Timeline {
        use crate::anchor::Anchor;
        use crate::history::History;
        use crate::ratio::Rate;
        let anchor = |nanos: i64| Anchor {
            raw: nanos.unsigned_abs(),
            utc: Time::from_nanos(utc + nanos),
            monotonic_raw: Time::from_nanos(nanos),
            error: Span::from_nanos(30),
        };
        let rate = Rate { nanos_per_tick: 1.0, error: 1e-6 };
        let mut history = History::new(Domain::Counter, anchor(0), rate, Span::from_nanos(1));
        history.push(anchor(1_000_000_000));
        history.timeline()
    }

    #[test]
    fn lines_that_contradict_the_anchors_are_not_used() {
        let line = KernelLine::nominal(1_000_000_000, 1_000_000_000);
        for (ahead, agree) in [(0, true), (30, true), (1_000, false), (-1_000_000, false)] {
            let mut history = LineHistory::default();
            history.observe(line, 1_000_000_000);
            let domain = Domain::Counter;
            let mut lines = DomainLines { domain, history, rate: None, agree: false };
            let by_anchors = Arc::new(by_anchors(ahead));
            lines.compare(&by_anchors);
            assert_eq!(lines.agree, agree, "{ahead}");
            assert_eq!(lines.refine(&by_anchors).is_exact(), agree, "{ahead}");
        }
    }

    #[test]
    fn lines_of_this_machine_are_observed() {
        let conversion = ExactConversion::of_machine(Counter::select()).map(Arc::new);
        let is_exact = conversion.is_ok();
        let mut lines = KernelLines::new(conversion);
        let observation = lines.observe();
        assert_eq!(observation, Observation::Unchanged);
        assert_eq!(lines.counter.history.lines().is_some(), is_exact);
        assert_eq!(lines.interval() == Duration::MAX, !is_exact);
    }
}
