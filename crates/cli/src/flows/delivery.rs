//! Media delivery index of videos and transport streams as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wirestamp_metrics::flow::{FlowReport, TransportDeliveryReport};

use crate::output::mean;
use crate::table::{fitting, table};

/// The columns of [`Index`].
const HEADER: [&str; 6] = ["media delivery", "Mbit/s", "DF", "max DF", "MLR", "max MLR"];
/// Those that a narrow terminal may leave out, in the order in which they leave.
const DISPENSABLE: [&str; 3] = ["MLR", "DF", "Mbit/s"];

/// The index of a stream; in RTP or in plain UDP.
#[derive(Clone, Copy)]
struct Index {
    media_rate_bps: Option<f64>,
    delay_factor_ms: Option<f64>,
    max_delay_factor_ms: Option<f64>,
    loss_rate: Option<f64>,
    max_loss_rate: Option<f64>,
}

/// A table of the index of each stream that has one; empty without any. If there is a `width`, in characters, the table has only
/// the columns that fit into it.
pub(super) fn text(flows: &[FlowReport], top: usize, width: Option<usize>) -> String {
    let rows: Vec<_> = flows.iter().filter_map(row).take(top).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    match width {
        None => text.push_str(&table(&HEADER, &rows)),
        Some(width) => {
            let (fitted, left_out) = fitting(&HEADER, &rows, width, &DISPENSABLE);
            text.push_str(&fitted);
            if !left_out.is_empty() {
                let _ = writeln!(text, "-v also shows: {}", left_out.join(", "));
            }
        }
    }
    text.push_str("RFC 4445; DF: delay factor, MLR: media packets lost per second.\n");
    let reasons: BTreeSet<_> = flows.iter().filter_map(in_udp).flat_map(reasons).collect();
    text.extend(reasons);
    text + "\n"
}

/// The line of a stream's page.
pub(super) fn line(flow: &FlowReport) -> Option<String> {
    let index = index(flow)?;
    let none = || "-".to_owned();
    let loss = index.max_loss_rate.map_or_else(none, |rate| format!("{rate:.0}"));
    Some(format!(
        "DF up to {}, MLR up to {loss} per second, at {} Mbit/s (RFC 4445)",
        factor(index.max_delay_factor_ms),
        rate(index.media_rate_bps)
    ))
}

/// Why values are unknown, a line each.
fn reasons(index: &TransportDeliveryReport) -> impl Iterator<Item = String> {
    let named = [
        ("delay factor", index.delay_factor_unknown),
        ("media loss rate", index.loss_rate_unknown),
    ];
    named.into_iter().filter_map(|(name, reason)| Some(format!("No {name}: {}.\n", reason?)))
}

fn in_udp(flow: &FlowReport) -> Option<&TransportDeliveryReport> {
    flow.transport_stream.as_ref()?.media_delivery.as_ref()
}

fn index(flow: &FlowReport) -> Option<Index> {
    let in_rtp = flow.rtp.as_ref().and_then(|rtp| rtp.media_delivery).map(|it| Index {
        media_rate_bps: Some(it.media_rate_bps),
        delay_factor_ms: it.delay_factor_ms,
        max_delay_factor_ms: it.max_delay_factor_ms,
        loss_rate: Some(it.loss_rate),
        max_loss_rate: Some(it.max_loss_rate),
    });
    in_rtp.or_else(|| {
        in_udp(flow).map(|it| Index {
            media_rate_bps: it.media_rate_bps,
            delay_factor_ms: it.delay_factor_ms,
            max_delay_factor_ms: it.max_delay_factor_ms,
            loss_rate: it.loss_rate,
            max_loss_rate: it.max_loss_rate,
        })
    })
}

fn row(flow: &FlowReport) -> Option<Vec<String>> {
    let index = index(flow)?;
    let loss = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    Some(vec![
        flow.flow().to_string(),
        rate(index.media_rate_bps),
        factor(index.delay_factor_ms),
        factor(index.max_delay_factor_ms),
        loss(index.loss_rate),
        loss(index.max_loss_rate),
    ])
}

fn rate(bps: Option<f64>) -> String {
    bps.map_or_else(|| "-".to_owned(), |bps| format!("{:.3}", bps / 1e6))
}

fn factor(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| mean(ms * 1e6))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flow(media_delivery: &serde_json::Value) -> FlowReport {
        let zeros = json!({
            "packets": 0, "null_packets": 0, "pids": 0, "sync_byte_errors": 0, "pat_errors": 0, "continuity_errors": 0,
            "pmt_errors": 0, "transport_errors": 0, "crc_errors": 0, "pcr_repetition_errors": 0,
            "pcr_discontinuity_errors": 0, "pts_errors": 0, "malformed_packets": 0, "media_delivery": media_delivery,
        });
        serde_json::from_value(json!({
            "src": "10.0.0.1", "dst": "239.255.0.1", "sport": 40050, "dport": 40050, "protocol": 17, "packets": 2,
            "bytes": 100, "first_ns": 0, "last_ns": 1, "trains": 1, "transport_stream": zeros,
        }))
        .unwrap()
    }

    #[test]
    fn index_in_udp_fits_80_columns() {
        let known = flow(&json!({
            "media_rate_bps": 2e6, "delay_factor_ms": 5.264, "max_delay_factor_ms": 123.5, "loss_rate": 0.0,
            "max_loss_rate": 28.0,
        }));
        let unknown = flow(&json!({
            "media_rate_bps": null, "media_rate_unknown": "variable-bitrate", "delay_factor_ms": null,
            "delay_factor_unknown": "variable-bitrate", "max_delay_factor_ms": null, "loss_rate": 0.0,
            "max_loss_rate": 1234.0,
        }));
        let text = text(&[known.clone(), unknown], 40, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("2.000  5.26 ms  124 ms    0       28\n"), "{text}");
        assert!(text.contains("    -        -       -    0     1234\n"), "{text}");
        assert!(text.contains("No delay factor: variable bitrate"), "{text}");
        let line = line(&known).unwrap();
        assert_eq!(line, "DF up to 124 ms, MLR up to 28 per second, at 2.000 Mbit/s (RFC 4445)");
    }

    #[test]
    fn flows_without_an_index_are_not_listed() {
        assert_eq!(text(&[flow(&json!(null))], 40, None), "");
    }
}
