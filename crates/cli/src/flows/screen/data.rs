//! The data shown on the screen.

use std::collections::HashSet;

use wirestamp_metrics::flow::{CallReport, FlowReport};

use super::graph::Graph;
use super::history::History;
use super::state::{FlowId, State};

/// The flows at the last refresh, with their source and totals.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// The file or the interface.
    pub(crate) from: String,
    /// Whether the capture is running.
    pub(crate) live: bool,
    /// The capture filter.
    pub(crate) filter: Option<String>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Packets lost by the capture, if known.
    pub(crate) capture_lost: Option<u64>,
    pub(crate) reports: Vec<FlowReport>,
    /// SIP calls, oldest first.
    pub(crate) calls: Vec<CallReport>,
    pub(crate) history: History,
}

impl Data {
    /// The flows that match the display filter, sorted. In a live capture, streams of calls that are over come last.
    pub(super) fn listed(&self, state: &State) -> Vec<&FlowReport> {
        let mut listed: Vec<_> =
            self.reports.iter().filter(|report| state.filter.matches(report)).collect();
        listed.sort_by(|one, other| state.order.compare(one, other));
        let over = self.over();
        listed.sort_by_key(|report| over.contains(&FlowId::of(report)));
        listed
    }

    /// The streams of a live capture whose calls are over. A running call may use the stream of an earlier one.
    pub(super) fn over(&self) -> HashSet<FlowId> {
        let streams = |is_over: bool| {
            let calls = self.calls.iter().filter(move |call| call.state.is_over() == is_over);
            calls
                .flat_map(|call| call.to_callee.iter().chain(&call.to_caller))
                .map(FlowId::of_stream)
        };
        let mut over: HashSet<_> = streams(true).filter(|_| self.live).collect();
        streams(false).for_each(|running| _ = over.remove(&running));
        over
    }

    /// The calls that a flow belongs to: that of an RTP stream, or those whose messages it carries. The newest first, those
    /// that are over after the others.
    pub(super) fn calls_of(&self, report: &FlowReport) -> Vec<&CallReport> {
        let key = report.flow();
        let ends = (key.source, key.destination);
        let is_of = |call: &&CallReport| match report.rtp {
            Some(_) => call.to_callee.iter().chain(&call.to_caller).any(|it| it.is_of(report)),
            None => call.messages.iter().any(|it| (it.src, it.dst) == ends),
        };
        let mut calls: Vec<_> = self.calls.iter().rev().filter(is_of).collect();
        calls.sort_by_key(|call| call.state.is_over());
        calls
    }

    /// The values of a flow over time.
    pub(super) fn over_time(&self, report: &FlowReport, graph: Graph) -> Vec<Option<f64>> {
        let rtp = report.rtp.as_ref();
        match graph {
            Graph::Rate => self.history.rates(FlowId::of(report)),
            Graph::Mos => rtp.map(|rtp| rtp.mos_over_time.clone()).unwrap_or_default(),
            Graph::Loss => rtp.map(|rtp| rtp.loss_over_time.clone()).unwrap_or_default(),
            Graph::Jitter => rtp.map(|rtp| rtp.jitter_ms_over_time.clone()).unwrap_or_default(),
        }
    }
}
