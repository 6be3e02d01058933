//! What the screen is drawn from.

use wirestamp_metrics::flow::FlowReport;

use super::graph::Graph;
use super::history::History;
use super::state::{FlowId, State};

/// The flows as they were at the last look, and what is to be said of all of them.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// The file or the interface.
    pub(crate) from: String,
    /// Whether there may be more to come.
    pub(crate) live: bool,
    /// The filter that packets had to pass to get here.
    pub(crate) filter: Option<String>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// What the capture lost itself.
    pub(crate) capture_lost: u64,
    pub(crate) reports: Vec<FlowReport>,
    pub(crate) history: History,
}

impl Data {
    /// The flows that are shown, in the order in which they are.
    pub(super) fn listed(&self, state: &State) -> Vec<&FlowReport> {
        let mut listed: Vec<_> =
            self.reports.iter().filter(|report| state.pick.takes(report)).collect();
        listed.sort_by(|one, other| state.order.compare(one, other));
        listed
    }

    /// A figure of a flow over time.
    pub(super) fn over_time(&self, report: &FlowReport, graph: Graph) -> Vec<Option<f64>> {
        let rtp = report.rtp.as_ref();
        match graph {
            Graph::Rate => self.history.rates(FlowId::of(report)),
            Graph::Opinion => rtp.map(|rtp| rtp.mos_over_time.clone()).unwrap_or_default(),
            Graph::Loss => rtp.map(|rtp| rtp.loss_over_time.clone()).unwrap_or_default(),
            Graph::Jitter => rtp
                .map(|rtp| rtp.jitter_ms_over_time.iter().copied().map(Some).collect())
                .unwrap_or_default(),
        }
    }
}
