//! Results as IPFIX (RFC 7011).

use std::net::{IpAddr, Ipv4Addr};

use crate::protocol::ipfix::element::{
    DROPPED_PACKET_DELTA_COUNT, FLOW_END_MILLISECONDS, FLOW_END_NANOSECONDS,
    FLOW_START_MILLISECONDS, FLOW_START_NANOSECONDS, METERING_PROCESS_ID, PACKET_DELTA_COUNT,
    PATH_DELAY_MAX_DELTA_MICROSECONDS, PATH_DELAY_MEAN_DELTA_MICROSECONDS,
    PATH_DELAY_MIN_DELTA_MICROSECONDS, SAMPLING_PROBABILITY,
};
use crate::protocol::ipfix::{Element, Export, Part, Row, Value};
use wirestamp_clock::Time;
use wirestamp_metrics::flow::FlowReport;

use super::element::{self, OfSummary};
use super::flows::{self, FlowDeltas};
use super::values::{addresses, millis, nanos, number_of};
use crate::collector::{Measured, NotSynchronised, Spread, WINDOW};
use crate::task::{Measure, Tasks, without_shards};

/// Records about several domains belong to domain 0 (RFC 7011 section 3.1).
const DOMAIN: u32 = 0;

/// Max message length in bytes: UDP must avoid fragmentation (section 10.3.3).
const MAX_MESSAGE_BYTES: usize = 1400;

/// Unknown values are omitted from records, so there is a template for each combination of known values, from this ID
/// on.
const RESULTS: u16 = 256;
const HAS_DELAY: u16 = 1;
/// No delay is negative: IANA's elements are unsigned.
const HAS_PATH_DELAY: u16 = 2;
const HAS_ABOVE_MINIMUM: u16 = 4;
const HAS_VARIATION: u16 = 8;
const ALL: u16 = 15;
/// The addresses of the path's ends are known, and of this family.
const HAS_IPV4: u16 = 16;
const HAS_IPV6: u16 = 32;
/// Templates with addresses have these numbers, and their flags.
const WITH_ADDRESSES: u16 = 512;

/// Template ID of task descriptions.
const TASK: u16 = 512;

/// Export stream to one IPFIX collector.
#[derive(Debug)]
pub struct Ipfix {
    export: Export,
    deltas: FlowDeltas,
}

impl Default for Ipfix {
    fn default() -> Self {
        let export = Export::new(DOMAIN, MAX_MESSAGE_BYTES);
        Self { export, deltas: FlowDeltas::default() }
    }
}

impl Ipfix {
    /// Messages with templates and task descriptions, with this export time (seconds since 1970).
    #[must_use]
    pub fn descriptions(&mut self, tasks: &Tasks, second: u32) -> Vec<Vec<u8>> {
        let empty = Measured::default();
        let families = [0, HAS_IPV4, HAS_IPV6].into_iter();
        let combinations = families.flat_map(|family| (0..=ALL).map(move |known| family | known));
        let results = combinations.filter_map(|flags| {
            // The template does not depend on the values.
            let ends = [Ipv4Addr::UNSPECIFIED.into(); 2];
            row(0, "", (&empty, ends), flags).template(template(flags), 0).ok()
        });
        let no_task = task(0, "", ["", ""], 0.0).template(TASK, 1).ok();
        let has_flows = tasks.values().any(|it| matches!(it.task.measure, Measure::Flows { .. }));
        let of_flows = has_flows.then(flows::templates).into_iter().flatten();
        let templates = results.chain(no_task).chain(of_flows).map(|template| template.part());
        let tasks = without_shards(tasks).filter_map(|(number, entered)| {
            let (from, to, share) = match &entered.task.measure {
                Measure::PassiveDelay(it) => (it.from.to_string(), it.to.to_string(), it.share),
                Measure::ActiveDelay(it) => (it.from.to_string(), it.to.to_string(), 1.0),
                Measure::ReportedDelay(it) => (it.from.to_string(), it.to.to_string(), 1.0),
                Measure::Flows { at } => (at.to_string(), String::new(), 1.0),
                Measure::Volume { .. } | Measure::Traffic { .. } => return None,
            };
            Some(task(*number, entered.task.name.as_ref(), [&from, &to], share).part(TASK))
        });
        let parts: Vec<Part> = templates.chain(tasks).collect();
        self.export.messages(second, &parts)
    }

    /// Messages with the windows of a task, between ends with these addresses, if known.
    #[must_use]
    pub fn results(
        &mut self,
        (number, name): (u64, &str),
        ends: Option<[IpAddr; 2]>,
        results: &[Measured],
        second: u32,
    ) -> Vec<Vec<u8>> {
        let family = match ends {
            None => 0,
            Some(ends) if ends.iter().all(IpAddr::is_ipv4) => HAS_IPV4,
            Some(_) => HAS_IPV6,
        };
        let ends = ends.unwrap_or([Ipv4Addr::UNSPECIFIED.into(); 2]);
        let part = |measured: &Measured| {
            let flags = family | flags(measured);
            row(number, name, (measured, ends), flags).part(template(flags))
        };
        let parts: Vec<Part> = results.iter().map(part).collect();
        self.export.messages(second, &parts)
    }

    /// Messages with the flows of a task.
    #[must_use]
    pub fn flows(
        &mut self,
        task: (u64, &str),
        reports: &[FlowReport],
        second: u32,
    ) -> Vec<Vec<u8>> {
        let deltas = self.deltas.of(task.0, reports).into_iter();
        let records = reports.iter().zip(deltas).map(|(it, delta)| flows::record(task, it, delta));
        let parts: Vec<Part> = records.collect();
        self.export.messages(second, &parts)
    }

    /// Records the flows of a task that existed before the export started, at `since`, so that their earlier packets
    /// are not exported as new ones.
    pub fn start_flows(&mut self, task: u64, reports: &[FlowReport], since: i64) {
        self.deltas.start(task, reports, since);
    }
}

/// Known values of a window, as flags.
fn flags(measured: &Measured) -> u16 {
    let Measured { delay_ns, above_minimum_ns, variation_ns, .. } = measured;
    [
        (HAS_DELAY, delay_ns.is_some()),
        (HAS_PATH_DELAY, delay_ns.is_some_and(|delay| delay.min >= 0)),
        (HAS_ABOVE_MINIMUM, above_minimum_ns.is_some()),
        (HAS_VARIATION, variation_ns.is_some()),
    ]
    .into_iter()
    .filter(|(_, is_known)| *is_known)
    .fold(0, |flags, (one, _)| flags | one)
}

fn template(flags: u16) -> u16 {
    if flags > ALL { WITH_ADDRESSES + flags } else { RESULTS + flags }
}

fn row<'a>(
    number: u64,
    name: &'a str,
    (measured, ends): (&Measured, [IpAddr; 2]),
    flags: u16,
) -> Row<'a> {
    let mut row = counts(number, name, measured);
    if flags & (HAS_IPV4 | HAS_IPV6) != 0 {
        row.extend(addresses(ends, flags & HAS_IPV6 != 0));
    }
    let delay = measured.delay_ns.unwrap_or_default();
    if flags & HAS_DELAY != 0 {
        let error = measured.error_ns.unwrap_or(0).unsigned_abs();
        row.push((element::DELAY_ERROR, Value::U64(error)));
        row.extend(summary(element::DELAY, &delay));
    }
    if flags & HAS_PATH_DELAY != 0 {
        row.extend([
            (PATH_DELAY_MEAN_DELTA_MICROSECONDS, micros(nanos(delay.mean))),
            (PATH_DELAY_MIN_DELTA_MICROSECONDS, micros(delay.min)),
            (PATH_DELAY_MAX_DELTA_MICROSECONDS, micros(delay.max)),
        ]);
    }
    if flags & HAS_ABOVE_MINIMUM != 0 {
        let above = measured.above_minimum_ns.unwrap_or_default();
        row.extend(summary(element::ABOVE_MINIMUM, &above));
    }
    if flags & HAS_VARIATION != 0 {
        row.extend(summary(element::VARIATION, &measured.variation_ns.unwrap_or_default()));
    }
    Row(row)
}

/// Elements of every record.
fn counts<'a>(number: u64, name: &'a str, measured: &Measured) -> Vec<(Element, Value<'a>)> {
    let Measured { counts, .. } = measured;
    let begin = Time::from_nanos(measured.begin_ns);
    let clocks = match measured.not_synchronised {
        None => 0,
        Some(NotSynchronised::First) => 1,
        Some(NotSynchronised::Second) => 2,
        Some(NotSynchronised::Unknown) => 3,
    };
    // Section 6.1.5: 1 is true and 2 is false.
    let contradicted = if measured.contradicts_the_clocks { 1 } else { 2 };
    vec![
        (METERING_PROCESS_ID, number_of(number)),
        (element::TASK_NAME, Value::Text(name)),
        (FLOW_START_NANOSECONDS, Value::Time(begin)),
        (FLOW_END_NANOSECONDS, Value::Time(begin + WINDOW)),
        // nfdump and pmacct support no finer ones.
        (FLOW_START_MILLISECONDS, millis(begin)),
        (FLOW_END_MILLISECONDS, millis(begin + WINDOW)),
        (PACKET_DELTA_COUNT, Value::U64(counts.sent)),
        (DROPPED_PACKET_DELTA_COUNT, Value::U64(counts.lost)),
        (element::RECEIVED, Value::U64(counts.received)),
        (element::MATCHED, Value::U64(counts.matched)),
        (element::DUPLICATED, Value::U64(counts.duplicated)),
        (element::REORDERED, Value::U64(counts.reordered)),
        (element::UNEXPECTED, Value::U64(counts.unexpected)),
        (element::UNDETERMINED_SENT, Value::U64(counts.undetermined_sent)),
        (element::UNDETERMINED_RECEIVED, Value::U64(counts.undetermined_received)),
        (element::IDENTICAL, Value::U64(counts.identical)),
        (element::CLOCK_STATE, Value::U8(clocks)),
        (element::CLOCKS_CONTRADICTED, Value::U8(contradicted)),
    ]
}

fn summary<'a>(of: OfSummary, it: &Spread) -> [(Element, Value<'a>); 8] {
    // In measured windows they are always known.
    let [p50, p90, p99, p999] = [it.p50, it.p90, it.p99, it.p999].map(Option::unwrap_or_default);
    let values = [it.min, nanos(it.mean), nanos(it.stddev), p50, p90, p99, p999, it.max];
    std::array::from_fn(|nth| (of[nth], Value::I64(values[nth])))
}

/// Description of a task; its number is the scope.
fn task<'a>(number: u64, name: &'a str, [first, second]: [&'a str; 2], share: f64) -> Row<'a> {
    Row(vec![
        (METERING_PROCESS_ID, number_of(number)),
        (element::TASK_NAME, Value::Text(name)),
        (element::FIRST_POINT_NAME, Value::Text(first)),
        (element::SECOND_POINT_NAME, Value::Text(second)),
        (SAMPLING_PROBABILITY, Value::F64(share)),
    ])
}

/// Microseconds of a non-negative time, limited to 32 bits (more than an hour).
fn micros(nanos: i64) -> Value<'static> {
    Value::U32(u32::try_from(nanos.max(0) / 1000).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
