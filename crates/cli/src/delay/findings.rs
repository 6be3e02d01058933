//! What `delay` found, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wirestamp_clock::Span;
use wirestamp_metrics::{FlowTable, Quality};
use wirestamp_packet::FlowKey;
use wirestamp_study::TapReport;

use crate::output::time;
use crate::quality;
use crate::table::table;
use crate::tap;

/// What was found, by files or by interfaces.
pub(super) struct Findings {
    pub(super) flows: FlowTable,
    pub(super) clock_error: ClockError,
    pub(super) unidentified: u64,
    /// What the captures themselves lost at each point: never the network's loss.
    pub(super) capture_dropped: [u64; 2],
    /// Those of them of which it is not known when.
    pub(super) undated: [u64; 2],
    /// The two captures; none for files.
    pub(super) taps: Vec<TapReport>,
    pub(super) remarks: Vec<String>,
}

/// How wrong a delay can be because of the clocks.
pub(super) enum ClockError {
    /// Each delay has a bound of its own.
    OfEachDelay,
    /// One bound holds for every delay.
    OfFiles(Span),
    /// There is no bound, for this reason.
    Unknown(String),
}

impl ClockError {
    /// The greatest bound among a quality's delays, in nanoseconds.
    fn greatest(&self, quality: &Quality) -> Option<i64> {
        let own = quality.clock_error()?;
        match self {
            Self::OfEachDelay => Some(own.max.as_nanos()),
            Self::OfFiles(error) => Some(error.as_nanos()),
            Self::Unknown(_) => None,
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Unknown(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Findings {
    pub(super) fn document(&self) -> anyhow::Result<Value> {
        let mut document = self.quality(self.flows.total())?;
        let flows: anyhow::Result<Vec<_>> = self
            .flows
            .flows()
            .into_iter()
            .map(|(flow, quality)| self.flow(&flow, quality))
            .collect();
        let rest = json!({
            "clock_error_reason": self.clock_error.reason(),
            "unidentified": self.unidentified,
            "capture_dropped": self.capture_dropped,
            "capture_dropped_undated": self.undated,
            "taps": self.taps,
            "flows": flows?,
            "other_flows": self.quality(self.flows.others())?,
        });
        merge(&mut document, rest);
        Ok(document)
    }

    fn flow(&self, flow: &FlowKey, quality: &Quality) -> anyhow::Result<Value> {
        let mut row = json!({
            "src": flow.source.ip(),
            "dst": flow.destination.ip(),
            "sport": flow.source.port(),
            "dport": flow.destination.port(),
            "protocol": flow.protocol,
        });
        merge(&mut row, self.quality(quality)?);
        Ok(row)
    }

    /// A quality with the clock error that holds here.
    fn quality(&self, quality: &Quality) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(quality)?;
        if !matches!(self.clock_error, ClockError::OfEachDelay) {
            let error = self.clock_error.greatest(quality);
            merge(&mut value, json!({"clock_error_ns": error, "clock_error_mean_ns": null}));
        }
        Ok(value)
    }

    pub(super) fn text(&self) -> String {
        let flows = self.flows.flows();
        let row = |name: String, quality: &Quality| {
            quality::row(name, quality, self.clock_error.greatest(quality))
        };
        let mut rows: Vec<_> =
            flows.iter().map(|(flow, quality)| row(flow.to_string(), quality)).collect();
        if self.flows.others().counts().sent > 0 {
            rows.push(row("other flows".into(), self.flows.others()));
        }
        let total = self.flows.total();
        if rows.len() != 1 {
            rows.push(row("all".into(), total));
        }
        let mut text = table(&quality::HEADER, &rows);
        for tap in &self.taps {
            let _ = writeln!(text, "{}", tap::line(tap));
            text.push_str(&tap::complaints(&tap.ledger));
        }
        text + &self.reservations(total)
    }

    /// What has to be known before the figures are believed, a line each.
    fn reservations(&self, total: &Quality) -> String {
        let mut text = String::new();
        if let Some(reason) = self.clock_error.reason() {
            let _ = writeln!(text, "The clocks' error is not known: {reason}.");
        }
        let [a, b] = self.capture_dropped;
        if a + b > 0 {
            let _ = writeln!(
                text,
                "The captures lost {a} packets at A and {b} at B: what only the other point saw at \
                 that time counts neither as lost nor as unexpected."
            );
        }
        let [a, b] = self.undated;
        if a + b > 0 {
            let _ = writeln!(
                text,
                "Of {a} of them at A and {b} at B it is not known when: so many of the packets \
                 counted as lost, or as seen at B only, may be theirs."
            );
        }
        if let Some(early) = self.negative(total) {
            let _ = writeln!(
                text,
                "The shortest delay is {}, below zero by more than the clocks' error: stamps at A \
                 were taken later after the packet than stamps at B.",
                time(early)
            );
        }
        let unexpected = total.counts().unexpected;
        if unexpected > 0 {
            let _ = writeln!(text, "{unexpected} packets were seen at B only.");
        }
        if self.unidentified > 0 {
            let _ = writeln!(
                text,
                "{} packets took no part: not IP, or cut too short to be recognised.",
                self.unidentified
            );
        }
        text
    }

    /// The shortest delay, where it is negative by more than the clocks explain.
    fn negative(&self, total: &Quality) -> Option<i64> {
        let shortest = total.delay().summary()?.min;
        (shortest < -self.clock_error.greatest(total)?).then_some(shortest)
    }
}

/// Adds the members of `more` to `object`, in place of those with the same name.
fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
