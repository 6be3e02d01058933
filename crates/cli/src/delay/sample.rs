//! What has to be said where a sample of the packets was measured.

use wirestamp_metrics::Quality;

use super::findings::Findings;
use crate::output::count;

impl Findings {
    /// Which packets the figures are of, and what that means for them, a line each.
    pub(super) fn sample(&self, total: &Quality) -> Vec<String> {
        let Some(sampling) = &self.sampling else { return Vec::new() };
        let counts = total.counts();
        let [a, b] = [(counts.sent, 0), (counts.received, 1)].map(|(chosen, point)| {
            let all = chosen + self.sights[point].not_chosen;
            format!("{} of {}", count(chosen), count(all))
        });
        let mut lines = vec![
            format!(
                "{sampling}, chosen by hash, the same at both points: {a} at A, {b} at B. Counts, bytes \
                 and rates are of these; their delays and their share of losses are those of all, \
                 to within the error of a sample."
            ),
            "Delay variation (IPDV), reordering, loss runs and gaps are those between packets that \
             were chosen, which were not neighbours on the way."
                .to_owned(),
        ];
        if self.flows.flows().iter().any(|(flow, _)| self.voice(flow).is_some()) {
            lines.push("R and MOS do not know, then, which losses came in runs.".to_owned());
        }
        if self.capture_dropped != [0, 0] {
            lines.push(
                "What the captures lost they lost of all packets: it may account for more losses \
                 of the sample than are theirs."
                    .to_owned(),
            );
        }
        lines
    }
}
