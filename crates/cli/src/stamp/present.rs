//! The result of `wirestamp stamp`, as JSON and as text.

use std::net::SocketAddr;

use serde_json::{Value, json};
use wirestamp_active::ClockState;
use wirestamp_active::sender::{PacketSchedule, TestReport};
use wirestamp_metrics::{Quality, Summary, TwoWayCounts};

use crate::output::{count, mean, percent, plural, time};
use crate::table::table;

/// The result: its text comes from the report, its JSON is prepared.
pub(super) struct Document {
    to: SocketAddr,
    report: TestReport,
    json: Value,
}

impl serde::Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl Document {
    pub(super) fn new(
        to: SocketAddr,
        schedule: PacketSchedule,
        report: TestReport,
    ) -> anyhow::Result<Self> {
        let counts = report.both.counts;
        let (mean, is_poisson) = (schedule.mean(), matches!(schedule, PacketSchedule::Poisson(_)));
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

/// The JSON of a direction; one-way delays are null for the reason `unknown`.
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
    ["", "sent", "lost", "reordered", "duplicates", "mean delay", "p99", "p99 above min"];

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
            "round trip: min {}, mean {}, p99 {}, max {}\n",
            time(min),
            mean(trip.mean),
            time(p99),
            time(max)
        ));
    }
    if counts.answered == 0 {
        return text;
    }
    for line in notes(report, &counts) {
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

/// Notes on the results, a line each.
fn notes(report: &TestReport, counts: &TwoWayCounts) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |line: String| lines.push(line);
    match report.unknown_delay() {
        Some(reason) => add(format!(
            "One-way delays are unknown, because {reason} (run chronyd or ntpd); delays above the \
             min are valid."
        )),
        None if report.same_clock => add("Both ends use the same clock (--same-clock).".into()),
        None => {
            let errors = [&report.both.there, &report.both.back].map(Quality::clock_error);
            let error =
                errors.iter().flatten().map(|error| error.max.as_nanos()).max().unwrap_or(0);
            add(format!("One-way delays are within ±{}, as reported by both clocks.", time(error)));
        }
    }
    if report.unknown_delay().is_none() && counts.impossible_there + counts.impossible_back > 0 {
        add(format!(
            "WARNING: {} negative by more than that: a clock is less accurate than it reports.",
            plural(counts.impossible_there + counts.impossible_back, "delay is", "delays are")
        ));
    }
    if counts.undecided > 0 {
        let why = if report.both.is_counted {
            "no later packet was answered in time"
        } else {
            "the reflector does not count its answers"
        };
        add(format!("Lost in an undetermined direction: {}; {why}.", count(counts.undecided)));
    }
    if report.both.counts.answered > report.returned_by_kernel {
        let stamped = report.returned_by_kernel;
        add(format!(
            "The reflector reported kernel send times for {} of {} answers. The others have the earlier \
             time of its program, which overestimates the delay back.",
            count(stamped),
            count(report.both.counts.answered)
        ));
    }
    if counts.sent > report.stamped_by_kernel {
        add(format!(
            "The kernel reported no send time for {} of {} packets. They have the earlier time of this \
             program, which overestimates the delay there.",
            count(counts.sent - report.stamped_by_kernel),
            count(counts.sent)
        ));
    }
    let mut add_packets = |number: u64, what: &str| {
        if number > 0 {
            lines.push(format!("{} {what}", plural(number, "packet", "packets")));
        }
    };
    add_packets(counts.late, "answered after the timeout.");
    add_packets(counts.foreign + report.strange, "received that do not belong to this test.");
    add_packets(report.forged, "rejected because of a wrong authentication code.");
    add_packets(report.not_stamp, "received that are not test packets.");
    add_packets(report.failed, "could not be sent.");
    lines
}
