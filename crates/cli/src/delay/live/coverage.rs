//! Capture times of both points, to exclude packets that the other point could not capture.

use std::sync::atomic::{AtomicI64, Ordering};

use wirestamp_clock::{ClockService, Time, Utc};
use wirestamp_metrics::{Config, Outcome, Point};

/// The intervals in which the captures were complete. Unbounded until they are set.
pub(super) struct Coverage {
    of_a: CaptureInterval,
    of_b: CaptureInterval,
    rule: Config,
}

struct CaptureInterval {
    from: AtomicI64,
    until: AtomicI64,
}

impl Coverage {
    /// For packets matched by `rule`: a packet of A arrives at B from the allowed skew before it
    /// (packets from B to A) to the timeout after it.
    pub(super) const fn new(rule: Config) -> Self {
        Self { of_a: CaptureInterval::unknown(), of_b: CaptureInterval::unknown(), rule }
    }

    /// The capture at `point` is complete from `time` on.
    pub(super) fn begins(&self, point: Point, time: Time<Utc>) {
        self.of(point).from.store(time.as_nanos(), Ordering::Release);
    }

    /// The capture at `point` is complete until `time`.
    pub(super) fn ends(&self, point: Point, time: Time<Utc>) {
        self.of(point).until.store(time.as_nanos(), Ordering::Release);
    }

    const fn of(&self, point: Point) -> &CaptureInterval {
        match point {
            Point::A => &self.of_a,
            Point::B => &self.of_b,
        }
    }

    /// The outcome; undetermined if the packet may have passed the other point while that did not
    /// capture.
    pub(super) fn exclude_uncaptured(&self, outcome: Outcome) -> Outcome {
        outcome.where_captured(&self.rule, |point, from, until| self.of(point).covers(from, until))
    }
}

impl CaptureInterval {
    const fn unknown() -> Self {
        Self { from: AtomicI64::new(i64::MIN), until: AtomicI64::new(i64::MAX) }
    }

    fn covers(&self, from: Time<Utc>, until: Time<Utc>) -> bool {
        from.as_nanos() >= self.from.load(Ordering::Acquire)
            && until.as_nanos() <= self.until.load(Ordering::Acquire)
    }
}

/// Current UTC time by the stamping clock.
pub(super) fn now(clock: &ClockService) -> Time<Utc> {
    let counter = clock.counter();
    clock.timeline(counter.domain()).convert(counter.read()).utc
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp};
    use wirestamp_metrics::{Observation, UndeterminedReason};
    use wirestamp_packet::{FlowKey, PacketId};

    use super::*;

    fn seen(at: i64) -> Observation {
        let utc = Time::from_nanos(at);
        let raw = RawStamp { domain: Domain::Counter, value: 0 };
        let flow = FlowKey {
            source: ([10, 77, 1, 1], 1).into(),
            destination: ([10, 77, 2, 2], 1).into(),
            protocol: 17,
        };
        let stamp = Stamp { raw, utc, error: Span::ZERO };
        Observation { id: PacketId(1), flow, length: 60, stamp }
    }

    fn is_excluded(coverage: &Coverage, outcome: Outcome) -> bool {
        matches!(
            coverage.exclude_uncaptured(outcome),
            Outcome::Undetermined { reason: UndeterminedReason::NotCaptured, .. }
        )
    }

    #[test]
    fn packets_outside_the_other_capture_are_undetermined() {
        let (timeout, skew) = (Span::from_nanos(10), Span::from_nanos(5));
        let coverage = Coverage::new(Config { timeout, skew, ..Config::default() });
        let lost = |at| is_excluded(&coverage, Outcome::Lost { sent: seen(at), sequence: 0 });
        let unexpected = |at| is_excluded(&coverage, Outcome::Unexpected { received: seen(at) });
        assert!(!lost(0) && !unexpected(0), "the capture times are not set yet");
        for point in [Point::A, Point::B] {
            coverage.begins(point, Time::from_nanos(100));
            coverage.ends(point, Time::from_nanos(200));
        }
        assert_eq!([104, 105, 190, 191].map(lost), [true, false, false, true]);
        assert_eq!([109, 110, 195, 196].map(unexpected), [true, false, false, true]);
    }
}
