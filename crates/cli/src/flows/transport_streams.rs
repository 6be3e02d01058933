//! MPEG transport streams as text.

use wirestamp_metrics::flow::FlowReport;

use crate::output::count;
use crate::table::table;

/// The columns: TR 101 290 names the errors.
const HEADER: [&str; 10] = [
    "transport stream",
    "packets",
    "sync",
    "PAT",
    "continuity",
    "PMT",
    "marked",
    "CRC",
    "PCR",
    "PTS",
];

/// A table of the errors of each transport stream; empty without any.
pub(super) fn text(flows: &[FlowReport], top: usize) -> String {
    let rows: Vec<_> = flows.iter().filter_map(row).take(top).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}Errors by ETSI TR 101 290; continuity: packets lost, reordered or repeated, also those that the capture \
         lost.\n\n",
        table(&HEADER, &rows)
    )
}

fn row(flow: &FlowReport) -> Option<Vec<String>> {
    let ts = flow.transport_stream?;
    let errors = [
        ts.packets,
        ts.sync_byte_errors,
        ts.pat_errors,
        ts.continuity_errors,
        ts.pmt_errors,
        ts.transport_errors,
        ts.crc_errors,
        ts.pcr_discontinuity_errors.max(ts.pcr_repetition_errors),
        ts.pts_errors,
    ];
    Some([flow.flow().to_string()].into_iter().chain(errors.map(count)).collect())
}
