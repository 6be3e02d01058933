//! Selection of calls by their parties (`--caller`, `--callee`).

use clap::Args;
use wirestamp_metrics::flow::{CallReport, FlowReport};

use super::document::Document;
use crate::output::count;

#[derive(Args)]
pub(super) struct Parties {
    /// Show only the SIP calls whose caller's address contains this text, and their RTP streams
    #[arg(long, value_name = "TEXT")]
    caller: Option<String>,
    /// The same for the callee's address
    #[arg(long, value_name = "TEXT")]
    callee: Option<String>,
}

impl Parties {
    /// Removes all other calls and flows from the document, and counts them. Totals stay those of all packets.
    pub(super) fn select(&self, document: &mut Document) {
        let before = document.calls.len();
        if !self.keep(&mut document.calls, &mut document.flows) {
            return;
        }
        let left_out = before - document.calls.len();
        document.calls_not_selected = u64::try_from(left_out).ok();
        document.remarks.push(format!(
            "{} of {} calls selected by --caller and --callee",
            count(u64::try_from(document.calls.len()).unwrap_or(u64::MAX)),
            count(u64::try_from(before).unwrap_or(u64::MAX))
        ));
    }

    /// Removes all other calls, and flows that are no stream of one that remains. Returns whether calls are selected.
    pub(super) fn keep(&self, calls: &mut Vec<CallReport>, flows: &mut Vec<FlowReport>) -> bool {
        let selects = self.caller.is_some() || self.callee.is_some();
        if selects {
            calls.retain(|call| self.are_of(call));
            flows.retain(|flow| calls.iter().any(|call| has(call, flow)));
        }
        selects
    }

    fn are_of(&self, call: &CallReport) -> bool {
        let contains = |address: &str, text: Option<&str>| {
            text.is_none_or(|text| address.to_lowercase().contains(&text.to_lowercase()))
        };
        contains(&call.caller, self.caller.as_deref())
            && contains(&call.callee, self.callee.as_deref())
    }
}

/// Whether the flow is an RTP stream of the call.
fn has(call: &CallReport, flow: &FlowReport) -> bool {
    call.to_callee.iter().chain(&call.to_caller).any(|stream| stream.is_of(flow))
}
