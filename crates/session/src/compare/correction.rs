//! Correction of B's stamps before they are compared with A's.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::SkewEstimate;

/// Offset and skew of B's clock that are removed from the delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    /// Offset of B's clock ahead of A's.
    pub offset: Span,
    /// Skew of B's clock. Its correction is zero at `since`, so that delays at that time do not change.
    pub skew: Option<SkewEstimate>,
}

impl Correction {
    /// The stamp `time` of B on A's clock.
    #[must_use]
    pub fn of_b(&self, time: Time<Utc>) -> Time<Utc> {
        time - self.offset - self.gained(time)
    }

    /// Gain of B's clock through the skew until `time`.
    fn gained(&self, time: Time<Utc>) -> Span {
        let Some(SkewEstimate { ppm, floor, since, .. }) = self.skew else { return Span::ZERO };
        // `since` is in A's time. Adding `floor`, the delay at that time, converts it to B's time.
        let elapsed = time - (since + floor);
        share(elapsed, ppm / (1e6 + ppm))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a small share of a span: beyond 104 days it is rounded; the way back saturates"
)]
fn share(span: Span, share: f64) -> Span {
    Span::from_nanos((span.as_nanos() as f64 * share).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_correction_the_stamps_stay() {
        let time = Time::from_nanos(1_700_000_000_123_456_789);
        assert_eq!(Correction::default().of_b(time), time);
    }

    #[test]
    fn a_clock_that_gains_is_taken_back_to_the_rate_of_the_other() {
        let start: Time<Utc> = Time::from_nanos(1_700_000_000_000_000_000);
        let (offset, delay) = (Span::from_secs(86_400), Span::from_millis(3));
        let skew = SkewEstimate { ppm: 100.0, error_ppm: 0.1, floor: offset + delay, since: start };
        let correction = Correction { offset, skew: Some(skew) };
        for seconds in [0, 1, 3600] {
            let sent = start + Span::from_secs(seconds);
            let gained = Span::from_micros(100 * seconds);
            assert_eq!(correction.of_b(sent + offset + delay + gained), sent + delay);
        }
    }
}
