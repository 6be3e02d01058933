//! The rate of each flow over the last two minutes.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use wirestamp_metrics::flow::FlowReport;

use super::state::FlowId;

/// Number of rates stored for a flow.
const MAX_RATES: usize = 120;

/// Rates between refreshes.
#[derive(Debug, Default)]
pub(crate) struct History {
    refreshed: Option<Duration>,
    flows: HashMap<FlowId, Rates>,
}

#[derive(Debug, Default)]
struct Rates {
    bytes: u64,
    bits_per_second: VecDeque<Option<f64>>,
}

impl History {
    /// Records the flows at a time since the beginning. Removes flows that are gone.
    pub(super) fn record(&mut self, reports: &[FlowReport], now: Duration) {
        let passed = self.refreshed.replace(now).map_or(0.0, |then| (now - then).as_secs_f64());
        let mut before = std::mem::take(&mut self.flows);
        for report in reports {
            let id = FlowId::of(report);
            let mut rates = before.remove(&id).unwrap_or_default();
            if passed > 0.0 {
                if rates.bits_per_second.len() == MAX_RATES {
                    rates.bits_per_second.pop_front();
                }
                let bits = bits(report.bytes.saturating_sub(rates.bytes));
                rates.bits_per_second.push_back(Some(bits / passed));
            }
            rates.bytes = report.bytes;
            self.flows.insert(id, rates);
        }
    }

    /// The rates of a flow in bits per second, newest last.
    pub(super) fn rates(&self, flow: FlowId) -> Vec<Option<f64>> {
        let rates = self.flows.get(&flow);
        rates.map(|rates| rates.bits_per_second.iter().copied().collect()).unwrap_or_default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for bars and three digits")]
fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}
