//! The rate of each flow over the last minutes, which no report has.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use wirestamp_metrics::flow::FlowReport;

use super::state::FlowId;

/// Rates that are kept of a flow.
const KEPT: usize = 120;

/// Rates between one look at the flows and the next.
#[derive(Debug, Default)]
pub(crate) struct History {
    looked: Option<Duration>,
    flows: HashMap<FlowId, Rates>,
}

#[derive(Debug, Default)]
struct Rates {
    bytes: u64,
    bits_per_second: VecDeque<Option<f64>>,
}

impl History {
    /// Takes a look at the flows, so long after the beginning. Forgets those that are gone.
    pub(super) fn look(&mut self, reports: &[FlowReport], now: Duration) {
        let passed = self.looked.replace(now).map_or(0.0, |then| (now - then).as_secs_f64());
        let mut before = std::mem::take(&mut self.flows);
        for report in reports {
            let id = FlowId::of(report);
            let mut rates = before.remove(&id).unwrap_or_default();
            if passed > 0.0 {
                if rates.bits_per_second.len() == KEPT {
                    rates.bits_per_second.pop_front();
                }
                let bits = bits(report.bytes.saturating_sub(rates.bytes));
                rates.bits_per_second.push_back(Some(bits / passed));
            }
            rates.bytes = report.bytes;
            self.flows.insert(id, rates);
        }
    }

    /// The rates of a flow in bits per second, the newest last.
    pub(super) fn rates(&self, flow: FlowId) -> Vec<Option<f64>> {
        let rates = self.flows.get(&flow);
        rates.map(|rates| rates.bits_per_second.iter().copied().collect()).unwrap_or_default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for bars and three digits")]
fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}
