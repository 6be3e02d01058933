//! Comparison of two capture files.

use std::error::Error;
use std::fmt::{self, Display};
use std::path::Path;

use anyhow::bail;
use wirestamp_capture::Filter;
use wirestamp_capture::file::Reader;
use wirestamp_clock::Span;
use wirestamp_metrics::{FlowTable, Outcome};
use wirestamp_packet::MatchRule;
use wirestamp_session::{Comparison, Correction, Survey, Terms, compare, survey};

use super::arguments::Arguments;
use super::clocks::{self, ClockError, Clocks, ONE_CLOCK, TOO_FEW};
use super::observed_later::ObservedLater;
use super::packet_rows::PacketRows;
use super::point::Point;
use super::result::DelayResult;
use super::round_trip::RoundTrips;
use super::rtp::RtpStreams;
use super::seconds::Seconds;
use crate::usage::usage;

/// Longest delay that a path may have. Larger differences are those of clocks.
const MAX_DELAY: Span = Span::from_secs(60);
const SECOND_NS: i64 = 1_000_000_000;

/// Error of `--align`: no packet is in both files.
#[derive(Debug)]
pub(super) struct NothingInCommon {
    a: String,
    b: String,
}

impl Display for NothingInCommon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot align: no packet of {} is in {}", self.a, self.b)
    }
}

impl Error for NothingInCommon {}

/// Compares two capture files or pipes, whose packets are recognised by `rule`. With `writes_rows`, writes the requested
/// rows of packets. Packets of `observed_later` are undetermined, not lost.
pub(super) fn compare_captures(
    arguments: &Arguments,
    points: [&Point; 2],
    rule: MatchRule,
    writes_rows: bool,
    observed_later: &mut ObservedLater,
) -> anyhow::Result<DelayResult> {
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let point_state = arguments.point_state().recognising(rule);
    let mut terms = Terms {
        correlation: arguments.correlation(),
        partial: arguments.partial,
        filter: filter.as_ref(),
        correction: Correction { offset: arguments.offset.unwrap_or(Span::ZERO), skew: None },
        state: Some(&point_state),
    };
    let mut remarks = Vec::new();
    if arguments.align || arguments.remove_skew {
        terms.correction = correction(arguments, points, &terms, &mut remarks)?;
    }
    let mut flows = arguments.flow_table();
    let [a, b] = open(points)?;
    let mut lost_outside_capture = 0;
    let mut rows = if writes_rows {
        PacketRows::create(arguments)?.without_errors()
    } else {
        PacketRows::default()
    };
    let mut seconds = arguments.per_second.then(Seconds::default);
    let found = compare(a, b, &terms, &mut |outcome: Outcome, is_outside| {
        let outcome = observed_later.correct(outcome);
        flows.record(&outcome);
        rows.record(&outcome);
        seconds.iter_mut().for_each(|seconds| seconds.record(&outcome, is_outside));
        if is_outside {
            flows.note_outside_capture(&outcome);
            lost_outside_capture += u64::from(matches!(outcome, Outcome::Lost { .. }));
        }
    })?;
    if arguments.remove_skew && found.clock_error.is_ok() {
        return Err(usage(format!(
            "--remove-skew: {ONE_CLOCK}, so that there is no skew; leave it out"
        )));
    }
    if !arguments.align && nothing_matches(&flows) {
        suggest_offset(points, &terms)?;
    }
    let mut result = DelayResult {
        lost_outside_capture,
        seconds,
        ..result(arguments, flows, found, terms.correction, remarks)
    };
    if matches!(points[1], Point::Captured(_)) {
        result.suspect_direction(arguments);
    }
    result.set_unknown_loss();
    result.reject_skew_of_identical();
    result.finish_rows(rows);
    Ok(result)
}

fn open(points: [&Point; 2]) -> anyhow::Result<[Reader; 2]> {
    let [a, b] = points.map(|point| Reader::open(point.capture().unwrap_or(Path::new(""))));
    Ok([a?, b?])
}

fn names(points: [&Point; 2]) -> [String; 2] {
    points.map(|point| point.capture().unwrap_or(Path::new("")).display().to_string())
}

/// Estimates the correction of B's stamps by reading both files once.
fn correction(
    arguments: &Arguments,
    points: [&Point; 2],
    terms: &Terms<'_>,
    remarks: &mut Vec<String>,
) -> anyhow::Result<Correction> {
    if points.iter().any(|point| matches!(point, Point::Pipe(_))) {
        return Err(usage(
            "--align and --remove-skew read both captures twice, which a pipe does not allow; write \
             it to a file first",
        ));
    }
    let [a, b] = open(points)?;
    let Some(survey) = survey(a, b, terms)? else {
        let [a, b] = names(points);
        bail!(NothingInCommon { a, b })
    };
    let skew = survey.skew.filter(|skew| arguments.remove_skew && skew.is_certain());
    if arguments.remove_skew && skew.is_none() {
        remarks.push(survey.skew.map_or_else(
            || format!("no skew was removed: {TOO_FEW}"),
            |skew| {
                format!(
                    "no skew was removed: {} is not distinguishable from zero",
                    clocks::ppm(&skew)
                )
            },
        ));
    }
    let offset = if arguments.align { survey.offset } else { terms.correction.offset };
    Ok(Correction { offset, skew })
}

/// Whether both files have packets, but none of them match.
fn nothing_matches(flows: &FlowTable) -> bool {
    let total = flows.total();
    let counts = total.counts();
    counts.matched == 0 && counts.sent > 0 && counts.received > 0
}

/// Fails with a suggestion if a clock offset explains why no packets match.
fn suggest_offset(points: [&Point; 2], terms: &Terms<'_>) -> anyhow::Result<()> {
    if points.iter().any(|point| matches!(point, Point::Pipe(_))) {
        return Ok(());
    }
    let [a, b] = open(points)?;
    let Some(Survey { common, offset, .. }) = survey(a, b, terms)? else { return Ok(()) };
    let given = terms.correction.offset;
    if given != Span::ZERO {
        bail!(
            "with --offset {} no packet of A matches in B, but {common} match with no or a similar offset; \
             leave it out, or try --align",
            offset_argument(given)
        );
    }
    let direction = if offset < Span::ZERO { "behind" } else { "ahead of" };
    let [name_a, name_b] = names(points);
    let longer = longer_timeout(offset).map_or_else(String::new, |seconds| {
        format!("if the path may take that long, use --timeout {seconds}s; otherwise ")
    });
    bail!(
        "{common} packets of {name_a} are also in {name_b}, but at other times: B's clock seems \
         {} {direction} A's; {longer}add --align to compare them anyway, or --offset {} if the clocks \
         differ by that",
        offset.abs(),
        offset_argument(offset),
    )
}

/// A timeout in seconds for a path whose min delay is this; none if no path takes that long.
fn longer_timeout(delay: Span) -> Option<i64> {
    let is_possible = delay > Span::ZERO && delay <= MAX_DELAY;
    is_possible.then(|| (2 * delay.as_nanos()) / SECOND_NS + 1)
}

/// Formats a span as a value of --offset.
fn offset_argument(offset: Span) -> String {
    let nanos = offset.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    format!("{sign}{seconds}.{rest:09}")
}

fn result(
    arguments: &Arguments,
    flows: FlowTable,
    mut found: Comparison,
    correction: Correction,
    mut remarks: Vec<String>,
) -> DelayResult {
    let skew = match (&found.clock_error, found.skew) {
        (Ok(_), _) => Err(ONE_CLOCK),
        // The removed skew is more useful than the remaining one.
        (Err(_), left) => correction.skew.or(left).ok_or(TOO_FEW),
    };
    remarks.extend(found.remarks);
    DelayResult {
        flows,
        clocks: Clocks {
            error: found.clock_error.map_or_else(ClockError::Unknown, ClockError::Fixed),
            skew,
            correction,
            aligned: arguments.align,
        },
        codec: arguments.codec,
        sampling: arguments.sample.clone(),
        media: RtpStreams::of_points(&mut found.states),
        round_trips: RoundTrips::of_points(&mut found.states),
        points: found.states,
        lost_outside_capture: 0,
        capture_dropped: found.capture_lost,
        undated: found.undated,
        stamped_earlier: found.stamped_earlier,
        taps: Vec::new(),
        layers: None,
        remarks,
        unknown_loss: None,
        changed_flows: None,
        has_tried_rules: false,
        rows_error: None,
        seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::clocks::offset;

    #[test]
    fn longer_timeout_is_at_least_twice_the_delay() {
        let of = |millis| longer_timeout(Span::from_millis(millis));
        assert_eq!([1500, 2400, 60_000].map(of), [Some(4), Some(5), Some(121)]);
        assert_eq!([-1500, 0, 60_001].map(of), [None; 3]);
    }

    #[test]
    fn suggested_offset_can_be_parsed() {
        for nanos in [86_400_000_000_000, -1, 1_500_000_000, -86_399_999_999_999] {
            let span = Span::from_nanos(nanos);
            assert_eq!(offset(&offset_argument(span)), Ok(span));
        }
    }
}
