//! What has to be known before the figures are believed.

use wirestamp_metrics::Quality;
use wirestamp_session::PointState;

use super::findings::Findings;
use crate::output::time;

impl Findings {
    /// All of it, a line each.
    pub(super) fn reservations(&self, total: &Quality) -> Vec<String> {
        let mut lines = self.sample(total);
        lines.extend(self.voices());
        lines.extend(self.clocks.statements());
        lines.extend(self.capture_losses());
        if self.lost_beyond > 0 {
            lines.push(format!(
                "{} of the lost packets left A before the first or after the last packet that was seen \
                 at B: if B's capture did not run then, the network did not lose them.",
                self.lost_beyond
            ));
        }
        lines.extend(self.below_zero(total));
        lines.extend(coarse(total));
        if self.layers.is_some() {
            lines.push(
                "Looking at packets behind B begins before they are stamped there: delays are longer by \
                 what that takes."
                    .into(),
            );
        }
        lines.extend(self.left_out(total));
        lines
    }

    /// What the captures lost.
    fn capture_losses(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let [a, b] = self.capture_dropped;
        if a + b > 0 {
            lines.push(format!(
                "The captures lost {a} packets at A and {b} at B: what only the other point saw at \
                 that time counts neither as lost nor as unexpected."
            ));
        }
        let [a, b] = self.undated;
        if a + b > 0 {
            lines.push(format!(
                "Of {a} of them at A and {b} at B it is not known when: so many of the packets \
                 counted as lost, or as seen at B only, may be theirs."
            ));
        }
        lines
    }

    /// What is in no figure.
    fn left_out(&self, total: &Quality) -> Vec<String> {
        let mut lines = Vec::new();
        let unexpected = total.counts().unexpected;
        if unexpected > 0 {
            lines.push(format!("{unexpected} packets were seen at B only."));
        }
        let given_up: u64 = self.sights.iter().map(PointState::given_up).sum();
        if given_up > 0 {
            lines.push(format!(
                "For want of room, {given_up} flows that were idle for longest were forgotten: if they \
                 carried RTP, or had round trips of TCP, these are not shown."
            ));
        }
        let unidentified = self.unidentified();
        if unidentified > 0 {
            lines.push(format!(
                "{unidentified} packets took no part: not IP, or cut too short to be recognised."
            ));
        }
        lines
    }
}

/// Says so, where clocks are so far apart that percentiles of the delay tell little of its variation.
fn coarse(total: &Quality) -> Option<String> {
    let delay = total.delay().summary()?;
    let largest = delay.min.unsigned_abs().max(delay.max.unsigned_abs());
    // Percentiles are within a 2048th of themselves.
    let within = i64::try_from(largest / 2048).unwrap_or(i64::MAX);
    (delay.above_minimum().p99 < within.saturating_mul(20)).then(|| {
        format!(
            "Percentiles are within {}, which is much beside so little variation: mean, least and most \
             are exact, and between files --align makes all of them so.",
            time(within)
        )
    })
}
