//! The page of one flow, with all values.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use strum::VariantArray;
use wirestamp_metrics::Summary;
use wirestamp_metrics::flow::{
    CallReport, FlowReport, Iperf3Report, RtpReport, TcpReport, WirestampReport,
};

use super::super::super::{delivery, encapsulations, rtcp, transport_streams, video};
use super::super::REFRESH_INTERVAL;
use super::super::data::Data;
use super::super::graph::Graph;
use super::format::{NONE, payload, rate};
use super::ladder;
use super::theme::Theme;
use crate::output::rated_by;
use crate::output::{count, mean, percent, plural, time};

/// Column where the values begin.
const INDENT: usize = 16;

/// Max number of calls on a page.
const MAX_CALLS: usize = 20;

/// Max length of a percentile bar.
const BARS: f64 = 32.0;

/// Draws the page from line `scrolled` on; returns the number of lines that do not fit.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    scrolled: usize,
    lines: &[Line<'static>],
) -> usize {
    let hidden = lines.len().saturating_sub(usize::from(area.height));
    let shown = lines[scrolled.min(hidden)..].to_vec();
    frame.render_widget(Paragraph::new(shown), area);
    hidden
}

/// The lines of a flow's page.
pub(super) fn lines(report: &FlowReport, data: &Data, theme: Theme) -> Vec<Line<'static>> {
    let mut page = Page { lines: Vec::new(), theme };
    page.lines.push(Line::styled(report.flow().to_string(), theme.strong()));
    page.figure(
        "volume",
        format!(
            "{}, {}",
            plural(report.packets, "packet", "packets"),
            plural(report.bytes, "byte", "bytes")
        ),
    );
    page.figure("rate", report.throughput_bps.map_or(NONE.into(), rate));
    if let Some(encapsulations) = &report.encapsulations {
        page.figure("encapsulation", encapsulations::line(encapsulations));
    }
    if let Some(rtp) = &report.rtp {
        page.voice(report, rtp);
    }
    for (name, text) in report.transport_stream.iter().flat_map(transport_streams::lines) {
        page.figure(name, text);
    }
    if let Some(text) = delivery::line(report) {
        page.figure("delivery index", text);
    }
    for (name, text) in report.video.iter().flat_map(video::lines) {
        page.figure(name, text);
    }
    for (name, text) in report.rtcp.iter().flat_map(rtcp::lines) {
        page.figure(name, text);
    }
    if let Some(tcp) = &report.tcp {
        page.round_trips(tcp);
    }
    if let Some(test) = &report.iperf3 {
        page.iperf3(report, test);
    }
    if let Some(test) = &report.wirestamp {
        page.wirestamp(report, test);
    }
    let longest = report.max_gap_ns.map_or(NONE.into(), time);
    page.figure("trains", format!("{}, longest gap {longest}", count(report.trains)));
    page.graphs(report, data);
    if let Some(times) = &report.interarrival_ns {
        page.distribution("between packets", times);
    }
    if let Some(times) = report.tcp.as_ref().and_then(|tcp| tcp.rtt_ns.as_ref()) {
        page.distribution("round trip", times);
    }
    data.calls_of(report).into_iter().take(MAX_CALLS).for_each(|call| page.call(call));
    page.lines
}

struct Page {
    lines: Vec<Line<'static>>,
    theme: Theme,
}

impl Page {
    fn figure(&mut self, name: &str, text: impl Into<String>) {
        self.styled(name, text, Style::new());
    }

    fn styled(&mut self, name: &str, text: impl Into<String>, style: Style) {
        let name = Span::styled(format!("{name:<INDENT$}"), self.theme.strong());
        self.lines.push(Line::from(vec![name, Span::styled(text.into(), style)]));
    }

    /// A call and its messages.
    fn call(&mut self, call: &CallReport) {
        let text = format!("{} > {}, {}", call.caller, call.callee, call.state.name());
        self.lines.push(Line::default());
        self.figure("call", text);
        self.lines.extend(ladder::lines(call).into_iter().map(Line::from));
    }

    /// The lines of RTP.
    fn voice(&mut self, report: &FlowReport, rtp: &RtpReport) {
        let rated = rtp.clock_rate_hz.map_or(String::new(), |hertz| format!(" at {hertz} Hz"));
        let codec = payload(report);
        let text = format!("{codec}{rated}, type {}, source 0x{:08x}", rtp.payload_type, rtp.ssrc);
        self.figure("payload", text);
        if let (Some(mos), Some(r)) = (rtp.mos, rtp.r_factor) {
            let range = mos_range(rtp);
            let model = rated_by(rtp.r_scale);
            let text = format!("MOS {mos:.2}{range}, R-factor {r:.1} ({model})");
            self.styled("quality", text, self.theme.mos(mos));
        }
        self.losses(report, rtp);
        let [now, mean, most] = [rtp.jitter_ms, rtp.mean_jitter_ms, rtp.max_jitter_ms].map(millis);
        self.figure("jitter", format!("now {now}, mean {mean}, max {most} (RFC 3550)"));
        self.figure("max delta", millis(Some(rtp.max_delta_ms)));
        let [now, most] = [rtp.skew_ms, rtp.max_skew_ms].map(millis);
        self.figure("skew", format!("now {now}, max {most}"));
    }

    fn losses(&mut self, report: &FlowReport, rtp: &RtpReport) {
        let lost = report.lost.unwrap_or_default();
        let text = format!(
            "{} of {} ({}), in {} runs, burst ratio {:.2}",
            count(lost),
            count(rtp.expected),
            percent(lost, rtp.expected),
            count(rtp.loss_periods),
            rtp.burst_ratio
        );
        self.styled("lost", text, self.theme.loss(report.loss_ratio().unwrap_or_default()));
        let counted = |value: Option<u64>| value.map_or(NONE.into(), count);
        let text = format!(
            "{} too late, {} reordered, {} duplicates, {} stray, {} restarts",
            counted(rtp.late),
            counted(report.reordered),
            counted(report.duplicated),
            count(rtp.stray),
            count(rtp.restarts)
        );
        self.figure("others", text);
        self.capture_losses(rtp.capture_lost, rtp.lost_uncertainty);
    }

    /// Capture losses, and losses that may be the capture's or the network's.
    fn capture_losses(&mut self, lost: u64, undecided: u64) {
        if lost > 0 {
            let text = format!("{}, excluded from all other values", count(lost));
            self.styled("capture lost", text, self.theme.bad());
        }
        if undecided > 0 {
            let text = format!("± {} network losses", count(undecided));
            self.figure("uncertainty", text);
        }
    }

    /// The lines of iperf3.
    fn iperf3(&mut self, report: &FlowReport, test: &Iperf3Report) {
        self.figure("payload", format!("iperf3, counts of {} bits", test.counter_bits));
        let text = format!(
            "{} of {} ({}), {} out of order (as iperf3 counts)",
            count(test.lost),
            count(test.sent),
            percent(test.lost, test.sent),
            count(test.out_of_order)
        );
        self.styled("lost", text, self.theme.loss(report.loss_ratio().unwrap_or_default()));
        self.figure("jitter", millis(Some(test.jitter_ms)));
        self.capture_losses(test.capture_lost, test.lost_uncertainty);
    }

    /// The lines of a test of `wirestamp send`.
    fn wirestamp(&mut self, report: &FlowReport, test: &WirestampReport) {
        self.figure("payload", "test of wirestamp send");
        let text = format!(
            "{} of {} ({}), {} out of order",
            count(test.lost),
            count(test.sent),
            percent(test.lost, test.sent),
            count(test.out_of_order)
        );
        self.styled("lost", text, self.theme.loss(report.loss_ratio().unwrap_or_default()));
        self.figure("jitter", format!("{} (by the send times)", millis(Some(test.jitter_ms))));
        self.capture_losses(test.capture_lost, test.lost_uncertainty);
    }

    /// The lines of TCP.
    fn round_trips(&mut self, tcp: &TcpReport) {
        self.figure("retransmitted", format!("{} segments", count(tcp.retransmitted)));
        self.figure("handshake", tcp.handshake_ns.map_or(NONE.into(), time));
    }

    /// The available graphs.
    fn graphs(&mut self, report: &FlowReport, data: &Data) {
        for &graph in Graph::VARIANTS {
            let values = data.over_time(report, graph);
            if values.iter().any(Option::is_some) {
                let line = graph.line(&values, values.len());
                let (range, bar) = (range(graph, &values), bar(report, graph));
                self.figure(graph.name(), format!("{line}  {range}, a bar is {bar}"));
            }
        }
    }

    /// The percentiles as bars.
    fn distribution(&mut self, name: &str, times: &Summary) {
        self.figure(name, format!("mean {}, {} times", mean(times.mean), count(times.count)));
        let Summary { min, p50, p90, p99, p999, max, .. } = *times;
        let percentiles =
            [("min", min), ("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
        for (name, value) in percentiles {
            let bar = "█".repeat(length(value, max));
            self.lines.push(Line::from(format!(
                "{:INDENT$}{name:>6} {:>9} {bar}",
                "",
                time(value)
            )));
        }
    }
}

/// The bar's length for a share of the total.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "0 to 32"
)]
fn length(value: i64, whole: i64) -> usize {
    if whole <= 0 {
        0
    } else {
        (value as f64 / whole as f64 * BARS).clamp(0.0, BARS).round() as usize
    }
}

/// The bounds of the MOS, if they differ in the shown digits.
fn mos_range(rtp: &RtpReport) -> String {
    let bounds = [rtp.mos_lowest, rtp.mos_highest];
    let [lowest, highest] = bounds.map(|it| it.map_or(NONE.into(), |mos| format!("{mos:.2}")));
    if lowest == highest { String::new() } else { format!(" ({lowest} to {highest})") }
}

fn millis(value: Option<f64>) -> String {
    value.map_or(NONE.into(), |ms| mean(ms * 1e6))
}

/// The time that a bar stands for.
fn bar(report: &FlowReport, graph: Graph) -> String {
    let rtp = report.rtp.as_ref().filter(|_| graph != Graph::Rate);
    rtp.map_or_else(
        || mean(REFRESH_INTERVAL.as_secs_f64() * 1e9),
        |rtp| millis(Some(rtp.interval_ms)),
    )
}

/// The min and max of the values.
fn range(graph: Graph, values: &[Option<f64>]) -> String {
    let (least, most) = values
        .iter()
        .flatten()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(*it), most.max(*it)));
    let text = |value: f64| match graph {
        Graph::Rate => rate(value),
        Graph::Mos => format!("{value:.2}"),
        Graph::Jitter => millis(Some(value)),
        Graph::Loss => format!("{:.2} %", value * 100.0),
    };
    format!("{} to {}", text(least), text(most))
}
