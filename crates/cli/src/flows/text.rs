//! The text output of `flows`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wirestamp_metrics::flow::FlowReport;

use super::calls;
use super::document::Document;
use super::{delivery, encapsulations, rtcp, transport_streams, video};
use crate::output::{count, mean, percent, plural, rated_by, time};
use crate::table::{fitting, table};
use crate::tap;

/// The columns of [`row`].
const HEADER: [&str; 12] = [
    "flow",
    "payload",
    "packets",
    "Mbit/s",
    "lost",
    "reordered",
    "duplicates",
    "jitter",
    "max. gap",
    "round trip",
    "late",
    "MOS",
];

/// Those that a narrow terminal does not show, in the order in which they leave.
const DISPENSABLE: [&str; 8] =
    ["duplicates", "reordered", "max. gap", "round trip", "late", "Mbit/s", "packets", "payload"];

/// The table of flows, worst first, and notes on the results.
/// With `everything`, also the messages of each call, the frames of videos, the encapsulations, and the reports of the far
/// ends.
/// If there is a `width`, in characters, the table has only the columns that fit into it.
pub(super) fn of(
    document: &Document,
    top: usize,
    everything: bool,
    width: Option<usize>,
) -> String {
    let rows: Vec<_> = document.flows.iter().take(top).map(row).collect();
    let mut text = fitted(&rows, width.filter(|_| !everything));
    let more = document.flows.len().saturating_sub(top);
    if more > 0 {
        let _ = writeln!(text, "... and {more} more; --top {} shows all", document.flows.len());
    }
    let narrow = width.filter(|_| !everything);
    text.push_str(&transport_streams::text(&document.flows, top, narrow));
    let delivery = delivery::text(&document.flows, top, narrow);
    if !delivery.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text.push_str(&delivery);
    text.push_str(&calls::text(&document.calls, top, everything, document.tap.is_some()));
    if everything {
        text.push_str(resolution(&document.flows));
        text.push_str(&encapsulations::text(&document.flows, top));
        text.push_str(&video::text(&document.flows, top));
        text.push_str(&rtcp::text(document, top));
    }
    let _ = writeln!(
        text,
        "{}, {} in {}",
        plural(document.packets, "packet", "packets"),
        plural(document.bytes, "byte", "bytes"),
        time(document.duration_ns)
    );
    if let Some(it) = &document.tap {
        let _ = writeln!(text, "{}", tap::line(&it.tap));
        text.push_str(&tap::problems(&it.tap.ledger));
    }
    text + &caveats(document)
}

/// The table of these rows.
fn fitted(rows: &[Vec<String>], width: Option<usize>) -> String {
    let Some(width) = width else { return table(&HEADER, rows) };
    let (mut text, left_out) = fitting(&HEADER, rows, width, &DISPENSABLE);
    if !left_out.is_empty() {
        let _ = writeln!(text, "-v also shows: {}", left_out.join(", "));
    }
    text
}

fn row(flow: &FlowReport) -> Vec<String> {
    let none = || "-".to_owned();
    let counted = |value: Option<u64>| value.map_or_else(none, count);
    let rtp = flow.rtp.as_ref();
    let round_trip = flow.tcp.as_ref().and_then(|tcp| tcp.rtt_ns);
    vec![
        flow.flow().to_string(),
        payload(flow).unwrap_or_else(none),
        count(flow.packets),
        flow.throughput_bps.map_or_else(none, |bps| format!("{:.3}", bps / 1e6)),
        flow.lost.map_or_else(none, |lost| lost_of(flow, lost)),
        counted(flow.reordered),
        counted(flow.duplicated),
        jitter(flow).map_or_else(none, |ms| mean(ms * 1e6)),
        flow.max_gap_ns.map_or_else(none, time),
        round_trip.map_or_else(none, |it| time(it.p50)),
        counted(rtp.and_then(|rtp| rtp.late)),
        rtp.and_then(|rtp| rtp.mos).map_or_else(none, |mos| format!("{mos:.2}")),
    ]
}

/// `PCMU 0x1234abcd`, or the program of a UDP test.
fn payload(flow: &FlowReport) -> Option<String> {
    let Some(rtp) = &flow.rtp else {
        let program = flow.udp_test().map(|it| it.program);
        return program.or(flow.transport_stream.map(|_| "MPEG-TS")).map(str::to_owned);
    };
    Some(match &rtp.codec {
        Some(codec) => format!("{codec} 0x{:08x}", rtp.ssrc),
        None => format!("RTP {} 0x{:08x}", rtp.payload_type, rtp.ssrc),
    })
}

/// Jitter in milliseconds: the mean of RTP, or the final value of a UDP test.
fn jitter(flow: &FlowReport) -> Option<f64> {
    let of_rtp = flow.rtp.as_ref().and_then(|rtp| rtp.mean_jitter_ms);
    of_rtp.or(flow.udp_test().map(|test| test.jitter_ms))
}

/// A note on the round trips in the table; empty without any.
fn resolution(flows: &[FlowReport]) -> &'static str {
    let has_round_trip = |flow: &FlowReport| flow.tcp.is_some_and(|tcp| tcp.rtt_ns.is_some());
    if flows.iter().any(has_round_trip) { "round trip: median, within 3 %.\n" } else { "" }
}

fn lost_of(flow: &FlowReport, lost: u64) -> String {
    if flow.tcp.is_some() {
        // At one point, only the sender's reaction is known.
        return format!("{} ({}) retransmitted", count(lost), percent(lost, flow.sent()));
    }
    format!("{} ({})", count(lost), percent(lost, flow.sent()))
}

/// Notes on the results, a line each.
fn caveats(document: &Document) -> String {
    let mut text = String::new();
    let mut scales = document.flows.iter().filter_map(|flow| flow.rtp.as_ref()?.r_scale).peekable();
    if scales.peek().is_some() {
        let _ = writeln!(
            text,
            "MOS by {}, for an assumed delay of {} ms and a de-jitter buffer of {} (--delay, \
             --jitter-buffer); late: packets that came too late for it.",
            rated_by(scales),
            document.assumed_delay_ms,
            document.assumed_jitter_buffer
        );
    }
    text.push_str(&unrated(&document.flows));
    text.push_str(&capture_losses(document.capture_dropped, document.capture_dropped_dated));
    if document.out_of_order > 0 {
        let _ = writeln!(
            text,
            "{} stamped before the packet captured before; jitter and gaps use the capture order.",
            plural(document.out_of_order, "packet is", "packets are")
        );
    }
    if document.datagrams_not_joined > 0 {
        let _ = writeln!(
            text,
            "{}: fragments are missing; RTP packets among them count as lost.",
            plural(
                document.datagrams_not_joined,
                "UDP datagram in fragments is incomplete",
                "UDP datagrams in fragments are incomplete"
            )
        );
    }
    if document.evicted.flows > 0 {
        let _ = writeln!(
            text,
            "{} with {} evicted (--max-flows).",
            plural(document.evicted.flows, "idle flow", "idle flows"),
            plural(document.evicted.packets, "packet", "packets")
        );
    }
    if document.evicted_calls > 0 {
        let _ = writeln!(
            text,
            "The oldest {} evicted (--max-flows).",
            plural(document.evicted_calls, "call is", "calls are")
        );
    }
    if document.not_ip > 0 {
        let _ = writeln!(
            text,
            "{} without a flow: not IP, or captured too short.",
            plural(document.not_ip, "frame is", "frames are")
        );
    }
    text
}

/// Why streams have no MOS, a line for each reason.
fn unrated(flows: &[FlowReport]) -> String {
    let mut reasons = BTreeMap::<_, u64>::new();
    for reason in flows.iter().filter_map(|flow| flow.rtp.as_ref()?.mos_unknown) {
        *reasons.entry(reason.to_string()).or_default() += 1;
    }
    let line = |(reason, streams): (String, u64)| {
        format!("No MOS for {}: {reason}.\n", plural(streams, "RTP stream", "RTP streams"))
    };
    reasons.into_iter().map(line).collect()
}

/// Notes on packets that the capture lost, `dated` of them at known times.
fn capture_losses(dropped: Option<u64>, dated: u64) -> String {
    let Some(dropped) = dropped else {
        return "The number of packets that the capture lost is unknown: such packets count as lost.\n".into();
    };
    let undated = dropped.saturating_sub(dated);
    let mut text = String::new();
    if dated > 0 {
        let _ = writeln!(
            text,
            "The capture lost {}, which the losses of RTP and UDP tests do not include.",
            plural(dated, "packet", "packets")
        );
    }
    if undated > 0 {
        let names = if dated > 0 { ("more packet", "more packets") } else { ("packet", "packets") };
        let _ = writeln!(
            text,
            "The capture lost {} at unknown times: up to that many of the lost packets may be capture \
             losses.",
            plural(undated, names.0, names.1)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn round_trips_have_their_resolution() {
        let flow = |rtt_ns| -> FlowReport {
            let report = json!({
                "src": "10.0.0.1", "dst": "10.0.0.2", "sport": 1, "dport": 2, "protocol": 6, "packets": 2, "bytes": 100,
                "first_ns": 0, "last_ns": 1, "trains": 1, "segments": 2, "retransmitted": 0, "rtt_ns": rtt_ns,
            });
            serde_json::from_value(report).unwrap()
        };
        let known = json!({
            "count": 1, "min": 5, "mean": 5.0, "stddev": 0.0, "p50": 5, "p90": 5, "p99": 5, "p999": 5, "max": 5,
        });
        assert_eq!(resolution(&[flow(known)]), "round trip: median, within 3 %.\n");
        assert_eq!(resolution(&[flow(json!(null))]), "");
    }

    #[test]
    fn only_undated_capture_losses_make_losses_uncertain() {
        assert_eq!(capture_losses(Some(0), 0), "");
        let excluded =
            "The capture lost 7 packets, which the losses of RTP and UDP tests do not include.\n";
        assert_eq!(capture_losses(Some(7), 7), excluded);
        let uncertain = capture_losses(Some(9), 0);
        assert!(uncertain.starts_with("The capture lost 9 packets at unknown times"));
        let both = capture_losses(Some(16), 7);
        assert!(both.starts_with(excluded) && both.contains("lost 9 more packets"), "{both}");
    }
}
