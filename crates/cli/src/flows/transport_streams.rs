//! MPEG transport streams as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wirestamp_metrics::flow::{FlowReport, TransportStreamReport};

use crate::output::count;
use crate::table::{fitting, table};

/// The columns: TR 101 290 names the errors.
const HEADER: [&str; 14] = [
    "transport stream",
    "packets",
    "sync loss",
    "sync",
    "PAT",
    "continuity",
    "PMT",
    "PID",
    "marked",
    "CRC",
    "PCR",
    "PCR accuracy",
    "PTS",
    "CAT",
];
/// The first column that a narrow terminal may leave out.
const FIRST_DISPENSABLE: usize = 2;

/// A table of the errors of each transport stream; empty without any. With a `width`, in characters, it has only the columns
/// that fit into it: first those without errors leave.
pub(super) fn text(flows: &[FlowReport], top: usize, width: Option<usize>) -> String {
    let rows: Vec<_> = flows.iter().filter_map(row).take(top).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    match width {
        None => text.push_str(&table(&HEADER, &rows)),
        Some(width) => text.push_str(&fitted(&rows, width)),
    }
    text.push_str(
        "Errors by ETSI TR 101 290; continuity: packets lost, reordered or repeated, also\n\
         those that the capture lost.\n",
    );
    let reports = flows.iter().filter_map(|flow| flow.transport_stream.as_ref());
    let reasons: BTreeSet<_> = reports.filter_map(|it| it.pcr_accuracy_unknown).collect();
    for reason in reasons {
        let _ = writeln!(text, "No PCR accuracy: {reason}.");
    }
    text + "\n"
}

/// The columns that fit, and what the others are.
fn fitted(rows: &[Vec<String>], width: usize) -> String {
    let all = |name: &str, text: &str| rows.iter().all(|row| row[column(name)] == text);
    let (mut leaving, with_errors): (Vec<_>, Vec<_>) =
        HEADER[FIRST_DISPENSABLE..].iter().copied().partition(|name| all(name, "0"));
    leaving.extend(with_errors.into_iter().rev());
    let (mut text, left_out) = fitting(&HEADER, rows, width, &leaving);
    let (clean, other): (Vec<_>, Vec<_>) = left_out.into_iter().partition(|name| all(name, "0"));
    let other = other.into_iter().filter(|name| !all(name, "-")).collect();
    for (names, meaning) in [(clean, "No errors of:"), (other, "-v also shows:")] {
        text.push_str(&listed(meaning, names, width));
    }
    text
}

/// The names after a title, in lines that fit; empty without names.
fn listed(title: &str, names: Vec<&str>, width: usize) -> String {
    let (mut text, mut line) = (String::new(), title.to_owned());
    let count = names.len();
    for (name, number) in names.into_iter().zip(1..) {
        let word = if number < count { format!(" {name},") } else { format!(" {name}\n") };
        if line.chars().count() + word.trim_end().chars().count() > width {
            let _ = writeln!(text, "{line}");
            line = " ".into();
        }
        line.push_str(&word);
    }
    if count > 0 { text + &line } else { text }
}

fn column(name: &str) -> usize {
    HEADER.iter().position(|it| *it == name).unwrap_or_default()
}

fn row(flow: &FlowReport) -> Option<Vec<String>> {
    let ts = flow.transport_stream?;
    let errors = [
        ts.packets,
        ts.sync_losses,
        ts.sync_byte_errors,
        ts.pat_errors,
        ts.continuity_errors,
        ts.pmt_errors,
        ts.pid_errors,
        ts.transport_errors,
        ts.crc_errors,
        ts.pcr_discontinuity_errors.max(ts.pcr_repetition_errors),
    ];
    let mut cells = vec![flow.flow().to_string()];
    cells.extend(errors.map(count));
    cells.push(accuracy(&ts));
    cells.extend([ts.pts_errors, ts.cat_errors].map(count));
    Some(cells)
}

/// The lines of a stream's page: names and texts.
pub(super) fn lines(ts: &TransportStreamReport) -> Vec<(&'static str, String)> {
    let [packets, nulls, pids] = [ts.packets, ts.null_packets, ts.pids].map(count);
    let first = [
        ("sync loss", ts.sync_losses),
        ("sync", ts.sync_byte_errors),
        ("PAT", ts.pat_errors),
        ("continuity", ts.continuity_errors),
        ("PMT", ts.pmt_errors),
        ("PID", ts.pid_errors),
    ];
    let second = [
        ("marked", ts.transport_errors),
        ("CRC", ts.crc_errors),
        ("PCR", ts.pcr_discontinuity_errors.max(ts.pcr_repetition_errors)),
        ("PTS", ts.pts_errors),
        ("CAT", ts.cat_errors),
    ];
    let text = |errors: &[(&str, u64)]| {
        let errors: Vec<_> =
            errors.iter().map(|(name, errors)| format!("{name} {}", count(*errors))).collect();
        errors.join(", ")
    };
    let mut lines = vec![
        ("MPEG-TS", format!("packets {packets}, null {nulls}, PIDs {pids} (ETSI TR 101 290)")),
        ("first priority", text(&first)),
        ("second priority", format!("{}, PCR accuracy {}", text(&second), accuracy(ts))),
    ];
    if let Some(reason) = ts.pcr_accuracy_unknown {
        lines.push(("", format!("No PCR accuracy: {reason}")));
    }
    lines
}

fn accuracy(ts: &TransportStreamReport) -> String {
    ts.pcr_accuracy_errors.map_or_else(|| "-".to_owned(), count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flow(errors: &[(&str, u64)]) -> FlowReport {
        let keys = [
            "packets",
            "null_packets",
            "pids",
            "sync_byte_errors",
            "pat_errors",
            "continuity_errors",
            "pmt_errors",
            "transport_errors",
            "crc_errors",
            "pcr_repetition_errors",
            "pcr_discontinuity_errors",
            "pts_errors",
            "malformed_packets",
        ];
        let mut stream: serde_json::Map<_, _> =
            keys.iter().map(|key| ((*key).to_owned(), json!(0))).collect();
        stream.insert("pcr_accuracy_unknown".into(), json!("variable-bitrate"));
        for (key, value) in errors {
            stream.insert((*key).to_owned(), json!(value));
        }
        serde_json::from_value(json!({
            "src": "10.0.0.1", "dst": "239.255.0.1", "sport": 40050, "dport": 40050, "protocol": 17, "packets": 2,
            "bytes": 100, "first_ns": 0, "last_ns": 1, "trains": 1, "transport_stream": stream,
        }))
        .unwrap()
    }

    #[test]
    fn columns_without_errors_leave_a_narrow_terminal() {
        let flows =
            [flow(&[("packets", 12_345), ("continuity_errors", 7)]), flow(&[("pid_errors", 3)])];
        let text = text(&flows, 40, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("continuity  PID  PCR  PTS  CAT\n"), "{text}");
        let clean = "No errors of: sync loss, sync, PAT, PMT, marked, CRC\n";
        assert!(text.contains(clean), "{text}");
        assert!(text.contains("No PCR accuracy: variable bitrate"), "{text}");
    }

    #[test]
    fn lists_are_wrapped() {
        assert_eq!(listed("No:", vec!["one", "two"], 10), "No: one,\n  two\n");
        assert_eq!(listed("No:", vec!["one", "two"], 12), "No: one, two\n");
        assert_eq!(listed("No:", vec![], 10), "");
    }

    #[test]
    fn wide_output_has_all_columns() {
        let all = text(&[flow(&[])], 40, None);
        assert!(HEADER.iter().all(|name| all.contains(name)), "{all}");
        assert_eq!(text(&[], 40, None), "");
    }
}
