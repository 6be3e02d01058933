//! Reports of the far ends by RTCP as text.

use std::fmt::Write as _;

use wirestamp_metrics::flow::{FlowReport, RoundTripReport, RtcpReport, VoipReport};

use super::document::Document;
use crate::output::{count, mean, plural, time};
use crate::table::table;

/// The columns of [`row`].
const HEADER: [&str; 11] = [
    "RTCP of stream",
    "reports",
    "lost here",
    "lost there",
    "last interval",
    "lost beyond",
    "jitter here",
    "jitter there",
    "to receiver",
    "to sender",
    "MOS there",
];

/// A table of the reports on each RTP stream; empty without any.
pub(super) fn text(document: &Document, top: usize) -> String {
    let mut text = String::new();
    let rows: Vec<_> = document.flows.iter().filter_map(row).take(top).collect();
    if !rows.is_empty() {
        text = format!(
            "\n{}here: of the stream at this point; there: in the receiver's last report; lost beyond: between this point \
             and the receiver, of the packets that both counted; to receiver, to sender: shortest round trip between \
             this point and that end.\n",
            table(&HEADER, &rows)
        );
    }
    let unmatched = document.rtcp_unmatched_reports;
    if unmatched > 0 {
        let _ = writeln!(
            text,
            "{} about no captured RTP stream.",
            plural(unmatched, "report by RTCP is", "reports by RTCP are")
        );
    }
    let unreadable = document.rtcp_unreadable_packets;
    if unreadable > 0 {
        let _ = writeln!(
            text,
            "{} of ends that only receive RTP cannot be read: encrypted (SRTCP), cut off, or damaged.",
            plural(unreadable, "RTCP packet", "RTCP packets")
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn row(flow: &FlowReport) -> Option<Vec<String>> {
    let rtcp = flow.rtcp.as_ref()?;
    let none = || "-".to_owned();
    let trip = |trip: Option<RoundTripReport>| trip.map_or_else(none, |it| time(it.min_ns));
    let stream = flow.rtp.as_ref().map_or_else(String::new, |it| format!(" 0x{:08x}", it.ssrc));
    let jitter = flow.rtp.as_ref().and_then(|it| it.jitter_ms);
    Some(vec![
        format!("{}{stream}", flow.flow()),
        count(rtcp.receiver_reports),
        flow.lost.map_or_else(none, count),
        rtcp.cumulative_lost.map_or_else(none, |lost| lost.to_string()),
        rtcp.fraction_lost.map_or_else(none, |share| format!("{:.1} %", 100.0 * share)),
        lost_beyond(rtcp),
        jitter.map_or_else(none, |ms| mean(ms * 1e6)),
        rtcp.jitter_ns.map_or_else(none, time),
        trip(rtcp.round_trip_to_receiver),
        trip(rtcp.round_trip_to_sender),
        rtcp.voip_metrics.as_ref().and_then(mos).unwrap_or_else(none),
    ])
}

/// `5 of 950`.
fn lost_beyond(rtcp: &RtcpReport) -> String {
    rtcp.loss_comparison.map_or_else(
        || "-".to_owned(),
        |it| format!("{} of {}", count(it.lost_beyond), count(it.expected)),
    )
}

/// MOS for listening and for conversational quality: `LQ 4.1 CQ 4.0`.
fn mos(voip: &VoipReport) -> Option<String> {
    let named = [("LQ", voip.mos_lq), ("CQ", voip.mos_cq)];
    let known = named.into_iter().filter_map(|(name, mos)| Some(format!("{name} {:.1}", mos?)));
    let known: Vec<_> = known.collect();
    (!known.is_empty()).then(|| known.join(" "))
}

/// The lines of a stream's page: names and texts.
pub(super) fn lines(rtcp: &RtcpReport) -> Vec<(&'static str, String)> {
    let none = || "-".to_owned();
    let share = |share: Option<f64>| share.map_or_else(none, |it| format!("{:.1} %", 100.0 * it));
    let trip = |trip: Option<RoundTripReport>| {
        trip.map_or_else(none, |it| format!("{} (min {})", time(it.last_ns), time(it.min_ns)))
    };
    let mut lines = vec![
        (
            "RTCP",
            format!(
                "{}: {} lost, last interval {}, jitter {}",
                plural(rtcp.receiver_reports, "report", "reports"),
                rtcp.cumulative_lost.map_or_else(none, |lost| lost.to_string()),
                share(rtcp.fraction_lost),
                rtcp.jitter_ns.map_or_else(none, time)
            ),
        ),
        ("lost beyond", lost_beyond(rtcp)),
        ("to receiver", trip(rtcp.round_trip_to_receiver)),
        ("to sender", trip(rtcp.round_trip_to_sender)),
    ];
    if let Some(voip) = &rtcp.voip_metrics {
        let text = format!(
            "MOS {}, R-factor {}, buffer {} ms, up to {} ms",
            mos(voip).unwrap_or_else(none),
            voip.r_factor.map_or_else(none, |r| r.to_string()),
            voip.jitter_buffer_nominal_ms,
            voip.jitter_buffer_max_ms
        );
        lines.push(("RTCP XR", text));
    }
    lines
}
