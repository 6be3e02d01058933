//! SIP calls as text.

use std::fmt::Write as _;

use wirestamp_metrics::flow::{CallReport, CallStream};

use crate::output::{count, mean};
use crate::table::table;

/// The columns of [`row`].
const HEADER: [&str; 7] =
    ["call", "state", "ringing after", "setup", "duration", "to callee", "to caller"];

/// A table of the calls, with `everything` followed by the messages of each; empty without calls.
pub(super) fn text(calls: &[CallReport], top: usize, everything: bool) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = calls.iter().take(top).map(row).collect();
    let mut text = format!("\n{}", table(&HEADER, &rows));
    if calls.len() > top {
        let more = calls.len() - top;
        let _ = writeln!(text, "... and {more} more calls; --top {} shows all", calls.len());
    }
    for call in calls.iter().take(top).filter(|call| call.one_way_audio == Some(true)) {
        let silent = if call.to_caller.is_empty() { "callee" } else { "caller" };
        let _ = writeln!(
            text,
            "One-way audio in call {}: no RTP of the {silent} was captured.",
            call.call_id
        );
    }
    if everything {
        calls.iter().take(top).for_each(|call| ladder(call, &mut text));
    }
    text.push('\n');
    text
}

fn row(call: &CallReport) -> Vec<String> {
    let millis = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| mean(ms * 1e6));
    let state = match call.status {
        Some(status) if status >= 300 => format!("{} ({status})", call.state.name()),
        _ => call.state.name().to_owned(),
    };
    vec![
        format!("{} > {}", short(&call.caller), short(&call.callee)),
        state,
        millis(call.ringing_ms),
        millis(call.setup_ms),
        millis(call.duration_ms),
        direction(&call.to_callee),
        direction(&call.to_caller),
    ]
}

/// `PCMU 1.2 % lost 4.21`, of several streams the one with the most packets.
fn direction(streams: &[CallStream]) -> String {
    let Some(stream) = streams.iter().max_by_key(|stream| stream.packets) else {
        return "-".into();
    };
    let codec = stream.codec.as_deref().unwrap_or("RTP");
    let lost =
        stream.loss_ratio.map_or_else(|| "?".to_owned(), |ratio| format!("{:.1} %", 100.0 * ratio));
    let more = match streams.len() {
        1 => String::new(),
        all => format!(" (+{})", count(u64::try_from(all - 1).unwrap_or(u64::MAX))),
    };
    let mos = stream.mos.map_or_else(String::new, |mos| format!(" MOS {mos:.2}"));
    format!("{codec} {lost} lost{mos}{more}")
}

/// An address without its scheme and parameters.
fn short(uri: &str) -> &str {
    let address = uri.split_once(':').map_or(uri, |(_, address)| address);
    address.split(';').next().unwrap_or(address)
}

/// The messages of a call, with the time since the first.
fn ladder(call: &CallReport, text: &mut String) {
    let _ = writeln!(text, "\nCall {}", call.call_id);
    let hosts: Vec<_> = call.messages.iter().map(|it| format!("{} > {}", it.src, it.dst)).collect();
    let width = hosts.iter().map(String::len).max().unwrap_or(0);
    for (message, hosts) in call.messages.iter().zip(hosts) {
        let millis = (message.time_ns - call.begin_ns) / 1_000_000;
        let sign = if millis < 0 { "-" } else { "" };
        let time = format!("{sign}{}.{:03} s", millis.abs() / 1000, millis.abs() % 1000);
        let _ = writeln!(text, "{time:>10}  {hosts:<width$}  {}", message.message);
    }
    if call.repeated_messages + call.messages_omitted > 0 {
        let _ = writeln!(
            text,
            "{} repeated, {} omitted",
            count(call.repeated_messages),
            count(call.messages_omitted)
        );
    }
}
