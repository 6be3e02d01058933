//! Clock error, skew and correction between the two points.

use wirestamp_clock::Span;
use wirestamp_metrics::{Quality, SkewEstimate};
use wirestamp_session::Correction;

/// The clocks of the two points.
pub(super) struct Clocks {
    /// Error bound of a delay.
    pub(super) error: ClockError,
    /// The estimated skew, or why there is none.
    pub(super) skew: Result<SkewEstimate, &'static str>,
    /// The correction subtracted from B's stamps.
    pub(super) correction: Correction,
    /// Whether the clocks were aligned so that the min delay is zero: one-way delays are unknown.
    pub(super) aligned: bool,
}

/// Error bound of a delay because of the clocks.
pub(super) enum ClockError {
    /// Each delay has its own bound.
    PerDelay,
    /// One bound for all delays.
    Fixed(Span),
    /// No bound, for this reason.
    Unknown(String),
}

// Reasons for a missing skew.
pub(super) const ONE_CLOCK: &str = "both points were stamped by the same clock";
pub(super) const TOO_FEW: &str = "too few packets or too short a time";

impl Clocks {
    /// One clock for both points.
    pub(super) fn of_one_host(error: ClockError) -> Self {
        let correction = Correction::default();
        Self { error, skew: Err(ONE_CLOCK), correction, aligned: false }
    }

    /// The max bound among a quality's delays, in nanoseconds.
    pub(super) fn max_error(&self, quality: &Quality) -> Option<i64> {
        let own = quality.clock_error()?;
        match self.error {
            ClockError::PerDelay => Some(own.max.as_nanos()),
            ClockError::Fixed(error) => Some(error.as_nanos()),
            ClockError::Unknown(_) => None,
        }
    }

    /// Why the error is unknown; none if it is known.
    pub(super) fn reason(&self) -> Option<&str> {
        match &self.error {
            ClockError::Unknown(reason) => Some(reason),
            _ => None,
        }
    }

    /// Why one-way delays are unknown; none if they are known.
    pub(super) fn relative(&self) -> Option<&'static str> {
        self.aligned.then_some(
            "the clocks were aligned by the packets themselves, so that the subtracted offset \
             contains the min delay",
        )
    }

    /// Notes on the clocks and their correction, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Correction { offset, skew: removed } = self.correction;
        if self.aligned {
            lines.push(format!(
                "B's clock was set back by {offset}, which makes the min delay zero: delays are relative \
                 to the min, one-way delays are unknown."
            ));
        } else if offset != Span::ZERO {
            lines.push(format!("B's clock was set back by {offset}, as requested."));
        }
        match (removed, self.skew) {
            (Some(removed), _) => lines.push(format!(
                "B's clock gained {} on A's. This skew was removed; delays are relative to the clocks when \
                 the first packet was sent.",
                ppm(&removed)
            )),
            (None, Ok(found)) if found.is_certain() => lines.push(format!(
                "B's clock gains {} on A's; for two files, --remove-skew removes this.",
                ppm(&found)
            )),
            _ => {}
        }
        if let Some(reason) = self.reason() {
            lines.push(format!("The clock error is unknown: {reason}."));
        }
        lines
    }
}

/// A skew with its error.
pub(super) fn ppm(skew: &SkewEstimate) -> String {
    // Two digits of the error; the skew with as many decimals.
    let decimals = if skew.error_ppm < 0.1 { 3 } else { 1 };
    format!("{:.decimals$} ± {:.decimals$} ppm", skew.ppm, skew.error_ppm)
}

/// Parses a number of seconds of either sign.
pub(super) fn offset(text: &str) -> Result<Span, String> {
    /// A century.
    const MAX: f64 = 3.2e9;
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(-MAX..=MAX).contains(&seconds) {
        return Err("expected a number of seconds, at most a century".into());
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most a century, which fits")]
    let nanos = (seconds * 1e9).round() as i64;
    Ok(Span::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_is_seconds_of_either_sign() {
        assert_eq!(offset("86400"), Ok(Span::from_secs(86_400)));
        assert_eq!(offset("-0.000000001"), Ok(Span::from_nanos(-1)));
        for wrong in ["", "a day", "nan", "inf", "1e30"] {
            assert!(offset(wrong).is_err(), "{wrong}");
        }
    }
}
