//! The result of `wirestamp stamp`, as JSON and as text.

use std::net::SocketAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use wirestamp_active::ClockState;
use wirestamp_active::sender::{PacketSchedule, TestReport};
use wirestamp_clock::Span;
use wirestamp_metrics::{Distribution, Quality, Summary, TwoWayCounts};

use super::seconds::{Seconds, SecondsDocument};
use crate::output::{count, mean, percent, plural, time};
use crate::quality;
use crate::table::table;

/// The result: its text comes from the report, its JSON is prepared.
pub(super) struct Document {
    to: SocketAddr,
    report: TestReport,
    json: Value,
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// Result of a two-way test with test packets to a reflector (STAMP, RFC 8762). `there` is the direction to the reflector,
/// `back` the direction to this host. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Stamp")]
pub(crate) struct Members<'a> {
    /// Address and port of the reflector.
    to: SocketAddr,
    /// Bytes of UDP payload of a test packet.
    payload_bytes: usize,
    /// Interval between two packets, or its mean, in nanoseconds.
    interval_ns: u64,
    /// Whether the intervals are those of a Poisson process (RFC 2330 section 11.1.1), instead of equal.
    poisson: bool,
    /// Packets sent.
    sent: u64,
    /// Packets with an answer within the timeout.
    answered: u64,
    /// Packets without an answer within the timeout.
    lost: u64,
    /// Lost packets that did not reach the reflector. Null if the reflector does not count its answers.
    lost_there: Option<u64>,
    /// Lost packets whose answer was lost. Null if the reflector does not count its answers.
    lost_back: Option<u64>,
    /// Lost packets of undetermined direction.
    lost_undecided: u64,
    /// Answers after the timeout.
    late: u64,
    /// Answers to packets that were not sent.
    foreign: u64,
    /// Datagrams without the correct authentication code.
    forged: u64,
    /// Datagrams that are not answers.
    not_stamp: u64,
    /// Answers of another session, or from another address.
    strange: u64,
    /// Closing packets, sent after the end and in no other count. Their answers report the outcome of the last packets.
    closing: u64,
    /// Packets that the kernel refused.
    failed: u64,
    /// The first error of the kernel. Null without errors.
    first_error: Option<&'a str>,
    /// Datagrams that the kernel dropped at the socket of this program. If they were answers, they are in `lost_back`
    /// or `lost_undecided`, although the network did not lose them.
    answers_dropped: u64,
    /// Round-trip time without the response time of the reflector, in nanoseconds.
    round_trip_ns: &'a Distribution,
    /// Response time of the reflector: from receiving a packet to sending the answer, in nanoseconds.
    response_ns: &'a Distribution,
    /// Packets to the reflector.
    there: Direction,
    /// Packets back from the reflector.
    back: Direction,
    /// Why one-way delays are unknown. Null if they are known.
    owd_reason: Option<&'a str>,
    /// Negative delays there beyond both clock errors: a clock has a larger error than it reports.
    impossible_there: u64,
    /// Negative delays back beyond both clock errors.
    impossible_back: u64,
    /// Whether both ends are configured to have the same clock (`--same-clock`).
    same_clock: bool,
    /// Clock of this host.
    clock: Clock,
    /// Clock of the reflector: the worst state in its answers. Null without answers.
    reflector_clock: Option<Clock>,
    /// Whether the reflector counts its answers, so that a loss has a direction.
    reflector_counts: bool,
    /// Packets with the kernel's send time. The others have the program's, which is earlier.
    sent_by_kernel: u64,
    /// Answers with the kernel's send time.
    returned_by_kernel: u64,
    /// Traffic class (DSCP) of the packets at the reflector. Null if it was not requested or not reported.
    dscp_there: Option<u8>,
    /// Packets and delays of each second. Only with `--per-second`.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<SecondsDocument>,
}

impl Document {
    pub(super) fn new(
        to: SocketAddr,
        schedule: PacketSchedule,
        report: TestReport,
        seconds: Option<Seconds>,
    ) -> anyhow::Result<Self> {
        let counts = report.both.counts;
        let (mean, is_poisson) = (schedule.mean(), matches!(schedule, PacketSchedule::Poisson(_)));
        let located = |count: u64| report.both.is_counted.then_some(count);
        let reason = report.unknown_delay();
        let direction = |quality: &Quality| Direction::of(quality, reason.is_some());
        let members = Members {
            to,
            payload_bytes: report.length,
            interval_ns: u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX),
            poisson: is_poisson,
            sent: counts.sent,
            answered: counts.answered,
            lost: counts.lost,
            lost_there: located(counts.lost_there),
            lost_back: located(counts.lost_back),
            lost_undecided: counts.undecided,
            late: counts.late,
            foreign: counts.foreign,
            forged: report.forged,
            not_stamp: report.not_stamp,
            strange: report.strange,
            closing: report.closing,
            failed: report.failed,
            first_error: report.first_error.as_deref(),
            answers_dropped: report.answers_dropped,
            round_trip_ns: &report.both.round_trip,
            response_ns: &report.both.response,
            there: direction(&report.both.there)?,
            back: direction(&report.both.back)?,
            owd_reason: reason.as_deref(),
            impossible_there: counts.impossible_there,
            impossible_back: counts.impossible_back,
            same_clock: report.same_clock,
            clock: report.own.into(),
            reflector_clock: report.peer.clock.map(Clock::from),
            reflector_counts: report.both.is_counted,
            sent_by_kernel: report.stamped_by_kernel,
            returned_by_kernel: report.returned_by_kernel,
            dscp_there: report.peer.class.map(|class| class.received),
            per_second: seconds.map(|seconds| seconds.document(report.unknown_scale())),
        };
        let json = serde_json::to_value(members)?;
        Ok(Self { to, report, json })
    }

    pub(super) fn answered(&self) -> u64 {
        self.report.both.counts.answered
    }
}

/// Members of a direction that are null if one-way delays are unknown.
const OF_DELAY: [&str; 3] = ["owd_ns", "clock_error_ns", "clock_error_mean_ns"];

/// Quality of one direction.
#[derive(Serialize)]
#[serde(transparent)]
struct Direction(Value);

impl Direction {
    fn of(quality: &Quality, is_delay_unknown: bool) -> serde_json::Result<Self> {
        quality::without(quality, if is_delay_unknown { &OF_DELAY } else { &[] }).map(Self)
    }
}

impl JsonSchema for Direction {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Direction".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        quality::schema(generator, &OF_DELAY)
    }
}

/// State of a clock.
#[derive(Serialize, JsonSchema)]
struct Clock {
    /// Whether it is synchronised to UTC.
    synchronised: bool,
    /// Bound of its distance from UTC as it reports it, in nanoseconds. Null if it is unknown.
    error_ns: Option<i64>,
}

impl From<ClockState> for Clock {
    fn from(state: ClockState) -> Self {
        let error = Some(state.error).filter(|error| *error < Span::MAX);
        Self { synchronised: state.synchronised, error_ns: error.map(Span::as_nanos) }
    }
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
    if report.answers_dropped > 0 {
        add(format!(
            "{} dropped by the kernel at this socket: up to that many of the packets lost back were not lost \
             by the network.",
            plural(report.answers_dropped, "answer was", "answers were")
        ));
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use wirestamp_active::sender::{PacketFormat, Session, TestConfig};

    use super::*;

    /// The report of a test without packets.
    fn report(own: ClockState) -> TestReport {
        let end = SocketAddr::from((Ipv4Addr::LOCALHOST, 862));
        let test = TestConfig {
            to: end,
            from: end,
            packets: None,
            lasting: None,
            schedule: PacketSchedule::Periodic(Duration::from_millis(1)),
            timeout: Span::from_secs(1),
            format: PacketFormat::default(),
            same_clock: false,
        };
        Session::new(&test, own).finish()
    }

    #[test]
    fn unknown_clock_error_is_null() {
        let state = |error| ClockState { synchronised: false, error, tai: None };
        assert_eq!(Clock::from(state(Span::MAX)).error_ns, None);
        assert_eq!(Clock::from(state(Span::from_micros(7))).error_ns, Some(7000));
    }

    #[test]
    fn answers_dropped_at_the_socket_are_reported() {
        let own = ClockState { synchronised: true, error: Span::ZERO, tai: None };
        let none = report(own);
        let is_dropped = |line: &String| line.contains("dropped by the kernel at this socket");
        assert!(!notes(&none, &none.both.counts).iter().any(is_dropped));
        let some = TestReport { answers_dropped: 3, ..none };
        let lines = notes(&some, &some.both.counts);
        assert!(lines.iter().any(|line| is_dropped(line) && line.starts_with("3 answers were")));
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 862));
        let schedule = PacketSchedule::Periodic(Duration::from_millis(1));
        let document = Document::new(to, schedule, some, None).unwrap();
        assert_eq!(document.json["answers_dropped"], 3);
    }
}
