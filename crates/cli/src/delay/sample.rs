//! Notes on results of a packet sample.

use wirestamp_metrics::Quality;

use super::result::DelayResult;
use crate::output::count;

impl DelayResult {
    /// The sampled share and its effect on the results, a line each.
    pub(super) fn sample(&self, total: &Quality) -> Vec<String> {
        let Some(sampling) = &self.sampling else { return Vec::new() };
        let counts = total.counts();
        let [a, b] = [(counts.sent, 0), (counts.received, 1)].map(|(chosen, point)| {
            let all = chosen + self.points[point].not_chosen;
            format!("{} of {}", count(chosen), count(all))
        });
        let mut lines = vec![
            format!(
                "{sampling}, selected by hash, the same at both points: {a} at A, {b} at B. Counts, bytes \
                 and rates are those of the sample; delays and the loss ratio hold for all packets, \
                 within the sampling error."
            ),
            "Delay variation (IPDV), reordering, loss runs and gaps are between sampled packets, which were \
             not consecutive on the network."
                .to_owned(),
        ];
        if self.flows.flows().iter().any(|(flow, _)| self.voice(flow).is_some()) {
            lines.push("R and MOS therefore ignore loss bursts.".to_owned());
        }
        if self.capture_dropped.iter().flatten().any(|lost| *lost > 0) {
            lines.push(
                "Capture losses are those of all packets: they may explain more of the sampled losses than \
                 they caused."
                    .to_owned(),
            );
        }
        lines
    }
}
