//! VLANs, labels and tunnels of flows as text.

use std::collections::HashSet;

use wirestamp_metrics::flow::{EncapsulationsReport, FlowReport};

use crate::output::{count, plural};
use crate::table::table;

/// A table of the encapsulations of each flow that has any; empty without any.
pub(super) fn text(flows: &[FlowReport], top: usize) -> String {
    let of_flow = |flow: &FlowReport| {
        let name = flow.flow().to_string();
        let counted = flow.encapsulations.iter().flat_map(counted);
        counted.map(|(text, packets)| vec![name.clone(), text, count(packets)]).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = flows.iter().flat_map(of_flow).collect();
    // The RTP streams of a flow have the same.
    let mut known = HashSet::new();
    rows.retain(|row| known.insert(row.clone()));
    rows.truncate(top);
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}\n", table(&["flow", "encapsulation", "packets"], &rows))
}

/// The encapsulations in one line: `vlan 100 (500 packets)`.
pub(super) fn line(report: &EncapsulationsReport) -> String {
    let texts = counted(report)
        .map(|(text, packets)| format!("{text} ({})", plural(packets, "packet", "packets")));
    texts.collect::<Vec<_>>().join("; ")
}

/// Each encapsulation as text, and its packets.
fn counted(report: &EncapsulationsReport) -> impl Iterator<Item = (String, u64)> {
    let kinds = report.kinds.iter().map(|kind| (kind.text(), kind.packets));
    let others = (report.others > 0).then(|| ("others".to_owned(), report.others));
    kinds.chain(others)
}
