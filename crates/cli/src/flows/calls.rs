//! SIP calls as text.

use std::cmp::Ordering;
use std::fmt::Write as _;

use wirestamp_metrics::flow::{CallMessage, CallReport, CallSide, CallState, CallStream};

use crate::output::{count, mean, plural};
use crate::table::table;

/// The columns of [`row`].
const HEADER: [&str; 7] =
    ["call", "state", "ringing after", "setup", "duration", "to callee", "to caller"];

/// A table of the calls, the worst first, with `everything` followed by the messages of each; empty without calls. Of a `live`
/// capture, calls that are over come after the others.
pub(super) fn text(calls: &[CallReport], top: usize, everything: bool, live: bool) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let mut worst: Vec<_> = calls.iter().collect();
    worst
        .sort_by(|one, other| badness(one).partial_cmp(&badness(other)).unwrap_or(Ordering::Equal));
    if live {
        worst.sort_by_key(|call| call.state.is_over());
    }
    worst.truncate(top);
    let rows: Vec<_> = worst.iter().map(|call| row(call)).collect();
    let mut text = format!("\n{}", table(&HEADER, &rows));
    let all = u64::try_from(calls.len()).unwrap_or(u64::MAX);
    let one_way = calls.iter().filter(|call| call.one_way_audio == Some(true)).count();
    let over = calls.iter().filter(|call| call.state.is_over()).count();
    let all = plural(all, "call", "calls");
    let _ = writeln!(text, "{all}, {over} over, {one_way} with one-way audio");
    for call in &worst {
        if let Some(side) = call.silent_side {
            let side = if side == CallSide::Caller { "caller" } else { "callee" };
            let id = &call.call_id;
            let _ = writeln!(
                text,
                "One-way audio in call {id}: no RTP of the {side} was captured after the answer."
            );
        }
        for (side, streams) in [("caller", &call.to_callee), ("callee", &call.to_caller)] {
            for digits in streams.iter().filter_map(|stream| stream.dtmf.as_ref()) {
                let _ = writeln!(text, "Digits of the {side} in call {}: {digits}", call.call_id);
            }
        }
    }
    if everything {
        worst.iter().for_each(|call| ladder(call, &mut text));
    }
    text.push('\n');
    text
}

/// Order of calls: with one-way audio, failed, then by the lowest MOS of a stream, then by time.
fn badness(call: &CallReport) -> (bool, bool, f64, i64) {
    let streams = call.to_callee.iter().chain(&call.to_caller);
    let mos = streams.filter_map(|stream| stream.mos).fold(f64::INFINITY, f64::min);
    let is_fine = call.state != CallState::Failed;
    (call.one_way_audio != Some(true), is_fine, mos, call.begin_ns)
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

/// An address without its scheme, password and parameters.
fn short(uri: &str) -> String {
    let is_scheme =
        |word: &str| ["sip", "sips", "tel"].iter().any(|it| it.eq_ignore_ascii_case(word));
    let address = match uri.split_once(':') {
        Some((scheme, address)) if is_scheme(scheme) => address,
        _ => uri,
    };
    let without_parameters = |part: &str| part.split(';').next().unwrap_or(part).to_owned();
    match address.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or(user);
            format!("{}@{}", without_parameters(user), without_parameters(host))
        }
        None => without_parameters(address),
    }
}

/// Time from `begin_ns` to `time_ns` in seconds: `1.234 s`.
pub(super) fn since(begin_ns: i64, time_ns: i64) -> String {
    let millis = time_ns.saturating_sub(begin_ns) / 1_000_000;
    let sign = if millis < 0 { "-" } else { "" };
    format!("{sign}{}.{:03} s", millis.abs() / 1000, millis.abs() % 1000)
}

/// The messages of a call, with the time since the first.
fn ladder(call: &CallReport, text: &mut String) {
    let _ = writeln!(text, "\nCall {}", call.call_id);
    let hosts = |message: &CallMessage| format!("{} > {}", message.src, message.dst);
    let width = call.messages.iter().map(|message| hosts(message).len()).max().unwrap_or(0);
    let line = |message: &CallMessage| {
        let (time, hosts) = (since(call.begin_ns, message.time_ns), hosts(message));
        format!("{time:>10}  {hosts:<width$}  {}", message.message)
    };
    for line in with_omitted(call, line) {
        let _ = writeln!(text, "{line}");
    }
}

/// A line for each message of a call, and one in place of those that are omitted; the number of repeated ones at the end.
pub(super) fn with_omitted(
    call: &CallReport,
    line: impl Fn(&CallMessage) -> String,
) -> Vec<String> {
    let (before, after) = call.messages_around_omitted();
    let mut lines: Vec<_> = before.iter().map(&line).collect();
    if call.messages_omitted > 0 {
        lines.push(format!("... {} omitted", plural(call.messages_omitted, "message", "messages")));
    }
    lines.extend(after.iter().map(&line));
    if call.repeated_messages > 0 {
        let repeated = plural(call.repeated_messages, "message", "messages");
        lines.push(format!("{repeated} captured again"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_no_scheme_password_and_parameters() {
        for (uri, expected) in [
            ("sip:alice@example.com", "alice@example.com"),
            ("SIPS:alice:secret@example.com;transport=tls", "alice@example.com"),
            ("sip:1234;phone-context=x@gw.example.com", "1234@gw.example.com"),
            ("tel:+1234;phone-context=x", "+1234"),
            ("example.com", "example.com"),
        ] {
            assert_eq!(short(uri), expected);
        }
    }
}
