//! What is known of the clocks of the two points, and what was done about them.

use wirestamp_clock::Span;
use wirestamp_metrics::{Quality, SkewEstimate};
use wirestamp_session::Correction;

/// The clocks of the two points.
pub(super) struct Clocks {
    /// How wrong a delay can be because of them.
    pub(super) error: ClockError,
    /// The skew between them that was found, or why there is none to tell.
    pub(super) skew: Result<SkewEstimate, &'static str>,
    /// What was taken off B's stamps.
    pub(super) correction: Correction,
    /// Whether that is such that delays are above zero, and nothing more is known of them.
    pub(super) aligned: bool,
}

/// How wrong a delay can be because of the clocks.
pub(super) enum ClockError {
    /// Each delay has a bound of its own.
    OfEachDelay,
    /// One bound holds for every delay.
    OfFiles(Span),
    /// There is no bound, for this reason.
    Unknown(String),
}

/// Why there is no skew.
pub(super) const ONE_CLOCK: &str = "the stamps of both points are of one clock";
pub(super) const TOO_FEW: &str = "too few packets, or too little time between them";

impl Clocks {
    /// One clock for both points.
    pub(super) fn of_one_host(error: ClockError) -> Self {
        let correction = Correction::default();
        Self { error, skew: Err(ONE_CLOCK), correction, aligned: false }
    }

    /// The greatest bound among a quality's delays, in nanoseconds.
    pub(super) fn greatest(&self, quality: &Quality) -> Option<i64> {
        let own = quality.clock_error()?;
        match self.error {
            ClockError::OfEachDelay => Some(own.max.as_nanos()),
            ClockError::OfFiles(error) => Some(error.as_nanos()),
            ClockError::Unknown(_) => None,
        }
    }

    /// Why the error is not known, if it is not.
    pub(super) fn reason(&self) -> Option<&str> {
        match &self.error {
            ClockError::Unknown(reason) => Some(reason),
            _ => None,
        }
    }

    /// Why one-way delays are not known, if they are not.
    pub(super) fn relative(&self) -> Option<&'static str> {
        self.aligned.then_some(
            "the clocks were aligned by the packets themselves, so that the least delay is part of \
             what was taken off",
        )
    }

    /// What was found and done, a line each.
    pub(super) fn statements(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Correction { offset, skew: removed } = self.correction;
        if self.aligned {
            lines.push(format!(
                "B's clock was set back by {offset}, by which the fastest packet that is in both has \
                 no delay: delays are relative to the least, one-way delays are not known."
            ));
        } else if offset != Span::ZERO {
            lines.push(format!("B's clock was set back by {offset}, as asked for."));
        }
        match (removed, self.skew) {
            (Some(removed), _) => lines.push(format!(
                "B's clock gained {} on A's: this was taken out, so that delays are as they were when \
                 the first packet was sent.",
                ppm(&removed)
            )),
            (None, Ok(found)) if found.is_certain() => lines.push(format!(
                "B's clock gains {} on A's; between files --remove-skew takes that out.",
                ppm(&found)
            )),
            _ => {}
        }
        if let Some(reason) = self.reason() {
            lines.push(format!("The clocks' error is not known: {reason}."));
        }
        lines
    }
}

/// A skew with its error.
pub(super) fn ppm(skew: &SkewEstimate) -> String {
    // Two digits of the error, and the skew to the same place.
    let decimals = if skew.error_ppm < 0.1 { 3 } else { 1 };
    format!("{:.decimals$} ± {:.decimals$} ppm", skew.ppm, skew.error_ppm)
}

/// Seconds on the command line, of either sign.
pub(super) fn offset(text: &str) -> Result<Span, String> {
    /// A century.
    const MOST: f64 = 3.2e9;
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(-MOST..=MOST).contains(&seconds) {
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
    fn offsets_are_seconds_of_either_sign() {
        assert_eq!(offset("86400"), Ok(Span::from_secs(86_400)));
        assert_eq!(offset("-0.000000001"), Ok(Span::from_nanos(-1)));
        for wrong in ["", "a day", "nan", "inf", "1e30"] {
            assert!(offset(wrong).is_err(), "{wrong}");
        }
    }
}
