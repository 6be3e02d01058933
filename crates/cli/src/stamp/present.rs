//! The result of `wirestamp stamp`, as JSON and as text.

use std::net::SocketAddr;

use serde_json::{Value, json};
use wirestamp_active::ClockState;
use wirestamp_active::sender::{Report, Rhythm};
use wirestamp_metrics::{Quality, Summary, TwoWayCounts};

use crate::output::{count, mean, percent, plural, time};
use crate::table::table;

/// What is printed.
pub(super) struct Document {
    to: SocketAddr,
    report: Report,
    json: Value,
}

impl serde::Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl Document {
    pub(super) fn new(to: SocketAddr, rhythm: Rhythm, report: Report) -> anyhow::Result<Self> {
        let counts = report.both.counts;
        let (mean, is_poisson) = (rhythm.mean(), matches!(rhythm, Rhythm::Poisson(_)));
        let located = |count: u64| report.both.is_counted.then_some(count);
        let reason = report.unknown_delay();
        let direction = |quality: &Quality| direction(quality, reason.as_deref());
        let json = json!({
            "to": to,
            "payload_bytes": report.length,
            "interval_ns": u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX),
            "poisson": is_poisson,
            "sent": counts.sent,
            "answered": counts.answered,
            "lost": counts.lost,
            "lost_there": located(counts.lost_there),
            "lost_back": located(counts.lost_back),
            "lost_undecided": counts.undecided,
            "late": counts.late,
            "foreign": counts.foreign,
            "forged": report.forged,
            "not_stamp": report.not_stamp,
            "strange": report.strange,
            "closing": report.closing,
            "failed": report.failed,
            "first_error": report.first_error,
            "round_trip_ns": report.both.round_trip,
            "response_ns": report.both.response,
            "there": direction(&report.both.there)?,
            "back": direction(&report.both.back)?,
            "owd_reason": reason,
            "impossible_there": counts.impossible_there,
            "impossible_back": counts.impossible_back,
            "same_clock": report.same_clock,
            "clock": clock(Some(report.own)),
            "reflector_clock": clock(report.peer.clock),
            "reflector_counts": report.both.is_counted,
            "sent_by_kernel": report.stamped_by_kernel,
            "returned_by_kernel": report.returned_by_kernel,
            "dscp_there": report.peer.class.map(|class| class.received),
        });
        Ok(Self { to, report, json })
    }

    pub(super) fn answered(&self) -> u64 {
        self.report.both.counts.answered
    }
}

/// A direction; without what takes two right clocks, if they are not.
fn direction(quality: &Quality, unknown: Option<&str>) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(quality)?;
    if unknown.is_some()
        && let Some(fields) = value.as_object_mut()
    {
        for field in ["owd_ns", "clock_error_ns", "clock_error_mean_ns"] {
            fields.insert(field.into(), Value::Null);
        }
    }
    Ok(value)
}

fn clock(state: Option<ClockState>) -> Value {
    state.map_or(
        Value::Null,
        |state| json!({"synchronised": state.synchronised, "error_ns": state.error.as_nanos()}),
    )
}

const HEADER: [&str; 8] =
    ["", "sent", "lost", "reordered", "doubled", "mean delay", "99 %", "above least 99 %"];

pub(super) fn text(document: &Document) -> String {
    let Document { to, report, .. } = document;
    let (both, counts) = (&report.both, report.both.counts);
    let mut text = format!(
        "{} to {to}, {} answered, {} lost ({})\n",
        plural(counts.sent, "packet", "packets"),
        count(counts.answered),
        count(counts.lost),
        percent(counts.lost, counts.sent),
    );
    let is_known = report.unknown_delay().is_none();
    let row = |name, quality, lost| row(name, quality, both.is_counted.then_some(lost), is_known);
    let rows =
        [row("there", &both.there, counts.lost_there), row("back", &both.back, counts.lost_back)];
    text.push_str(&table(&HEADER, &rows));
    if let Some(trip) = both.round_trip.summary() {
        let Summary { min, p99, max, .. } = trip;
        text.push_str(&format!(
            "round trip: least {}, mean {}, 99 % {}, greatest {}\n",
            time(min),
            mean(trip.mean),
            time(p99),
            time(max)
        ));
    }
    if counts.answered == 0 {
        return text;
    }
    for line in statements(report, &counts) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn row(name: &str, quality: &Quality, lost: Option<u64>, is_known: bool) -> Vec<String> {
    let none = || "-".to_owned();
    let counts = quality.counts();
    let delay = quality.delay().summary();
    let known = delay.filter(|_| is_known);
    vec![
        name.to_owned(),
        count(counts.sent),
        lost.map_or_else(none, count),
        count(counts.reordered),
        count(counts.duplicated),
        known.map_or_else(none, |delay| mean(delay.mean)),
        known.map_or_else(none, |delay| time(delay.p99)),
        delay.map_or_else(none, |delay| time(delay.above_minimum().p99)),
    ]
}

/// What one should know of the figures, a line each.
fn statements(report: &Report, counts: &TwoWayCounts) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    match report.unknown_delay() {
        Some(reason) => say(format!(
            "One-way delays are not known, because {reason} (chronyd and ntpd do that); delays \
             above the least are."
        )),
        None if report.same_clock => say("Both ends are said to have the same clock.".into()),
        None => {
            let errors = [&report.both.there, &report.both.back].map(Quality::clock_error);
            let error =
                errors.iter().flatten().map(|error| error.max.as_nanos()).max().unwrap_or(0);
            say(format!("One-way delays are within ±{} by both clocks' word.", time(error)));
        }
    }
    if report.unknown_delay().is_none() && counts.impossible_there + counts.impossible_back > 0 {
        say(format!(
            "ALARM: {} below zero by more than that: a clock is not as right as it says.",
            plural(counts.impossible_there + counts.impossible_back, "delay is", "delays are")
        ));
    }
    if counts.undecided > 0 {
        let why = if report.both.is_counted {
            "nothing came back behind them, or it came late"
        } else {
            "the reflector does not say how many packets it returned"
        };
        say(format!("Lost in an unknown direction: {}; {why}.", count(counts.undecided)));
    }
    if report.both.counts.answered > report.returned_by_kernel {
        let told = report.returned_by_kernel;
        say(format!(
            "The reflector told of {} of {} answers when they really left. For the others its \
             program's time is taken, which is earlier, so that the way back seems longer.",
            count(told),
            count(report.both.counts.answered)
        ));
    }
    if counts.sent > report.stamped_by_kernel {
        say(format!(
            "Of {} of {} packets the kernel did not say when they left. This program's time is taken, \
             which is earlier, so that the way there seems longer.",
            count(counts.sent - report.stamped_by_kernel),
            count(counts.sent)
        ));
    }
    let mut tell = |number: u64, what: &str| {
        if number > 0 {
            lines.push(format!("{} {what}", plural(number, "packet", "packets")));
        }
    };
    tell(counts.late, "came back after the time-out.");
    tell(counts.foreign + report.strange, "came that do not belong to this test.");
    tell(report.forged, "came without the right code and were refused.");
    tell(report.not_stamp, "came that were no test packets.");
    tell(report.failed, "could not be sent.");
    lines
}
