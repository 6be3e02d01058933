//! Two captures that are files, at the latest when they are compared.

use std::path::Path;

use anyhow::bail;
use wirestamp_capture::Filter;
use wirestamp_capture::file::Reader;
use wirestamp_clock::Span;
use wirestamp_metrics::{FlowTable, Outcome};
use wirestamp_session::{Comparison, Correction, Survey, Terms, compare, survey};

use super::beyond::Beyond;
use super::clocks::{self, ClockError, Clocks, ONE_CLOCK, TOO_FEW};
use super::findings::Findings;
use super::media::Media;
use super::point::Point;
use super::round_trip::RoundTrips;
use super::{Arguments, flow_table};
use crate::usage::usage;

/// Compares two captures.
pub(super) fn compared(arguments: &Arguments, points: [&Point; 2]) -> anyhow::Result<Findings> {
    let filter = arguments.filter.as_deref().map(Filter::compile).transpose()?;
    let sight = arguments.sight();
    let mut terms = Terms {
        correlation: arguments.correlation(),
        partial: arguments.partial,
        filter: filter.as_ref(),
        correction: Correction { offset: arguments.offset.unwrap_or(Span::ZERO), skew: None },
        sight: Some(&sight),
    };
    let mut remarks = Vec::new();
    if arguments.align || arguments.remove_skew {
        terms.correction = correction(arguments, points, &terms, &mut remarks)?;
    }
    let mut flows = flow_table();
    let [a, b] = open(points)?;
    let mut beyond = Beyond::default();
    let found = compare(a, b, &terms, &mut |outcome: Outcome| {
        flows.record(&outcome);
        beyond.record(&outcome);
    })?;
    if arguments.remove_skew && found.clock_error.is_ok() {
        return Err(usage(format!("--remove-skew: {ONE_CLOCK}, and has no skew: leave it out")));
    }
    if !arguments.align && nothing_meets(&flows) {
        explain(points, &terms)?;
    }
    let lost_beyond = beyond.lost();
    Ok(Findings { lost_beyond, ..findings(arguments, flows, found, terms.correction, remarks) })
}

fn open(points: [&Point; 2]) -> anyhow::Result<[Reader; 2]> {
    let [a, b] = points.map(|point| Reader::open(point.capture().unwrap_or(Path::new(""))));
    Ok([a?, b?])
}

/// What is to be taken off B's stamps, by a look at both files before they are compared.
fn correction(
    arguments: &Arguments,
    points: [&Point; 2],
    terms: &Terms<'_>,
    remarks: &mut Vec<String>,
) -> anyhow::Result<Correction> {
    if points.iter().any(|point| matches!(point, Point::Pipe(_))) {
        return Err(usage(
            "--align and --remove-skew read both captures twice, and a pipe can be read once: write \
             it to a file first",
        ));
    }
    let [a, b] = open(points)?;
    let Some(survey) = survey(a, b, terms)? else {
        bail!("no packet of {} is in {}, so that nothing can be aligned", arguments.a, arguments.b)
    };
    let skew = survey.skew.filter(|skew| arguments.remove_skew && skew.is_certain());
    if arguments.remove_skew && skew.is_none() {
        remarks.push(survey.skew.map_or_else(
            || format!("no skew was removed: {TOO_FEW}"),
            |skew| format!("no skew was removed: {} cannot be told from none", clocks::ppm(&skew)),
        ));
    }
    let offset = if arguments.align { survey.offset } else { terms.correction.offset };
    Ok(Correction { offset, skew })
}

/// Whether both files have packets, and none of the one is where it should be in the other.
fn nothing_meets(flows: &FlowTable) -> bool {
    let total = flows.total();
    let counts = total.counts();
    counts.matched == 0 && counts.sent > 0 && counts.received > 0
}

/// The error that says so, if it is only the clocks.
fn explain(points: [&Point; 2], terms: &Terms<'_>) -> anyhow::Result<()> {
    if points.iter().any(|point| matches!(point, Point::Pipe(_))) {
        return Ok(());
    }
    let [a, b] = open(points)?;
    let Some(Survey { common, offset, .. }) = survey(a, b, terms)? else { return Ok(()) };
    let given = terms.correction.offset;
    if given != Span::ZERO {
        bail!(
            "with --offset {} no packet of A is where it should be in B, and {common} are without it \
             or near: leave it out, or try --align",
            offset_argument(given)
        );
    }
    let direction = if offset < Span::ZERO { "behind" } else { "ahead of" };
    let [name_a, name_b] = points.map(|point| point.capture().unwrap_or(Path::new("")).display());
    bail!(
        "{common} packets of {name_a} are in {name_b} too, but not where they should be: B's clock \
         seems {} {direction} A's; add --align to compare them all the same, or --offset {} if that is \
         by how much the clocks differ",
        offset.abs(),
        offset_argument(offset),
    )
}

/// A span as --offset takes it.
fn offset_argument(offset: Span) -> String {
    let nanos = offset.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    format!("{sign}{seconds}.{rest:09}")
}

fn findings(
    arguments: &Arguments,
    flows: FlowTable,
    mut found: Comparison,
    correction: Correction,
    mut remarks: Vec<String>,
) -> Findings {
    let skew = match (&found.clock_error, found.skew) {
        (Ok(_), _) => Err(ONE_CLOCK),
        // What was removed says more than what is left of it.
        (Err(_), left) => correction.skew.or(left).ok_or(TOO_FEW),
    };
    remarks.extend(found.remarks);
    Findings {
        flows,
        clocks: Clocks {
            error: found.clock_error.map_or_else(ClockError::Unknown, ClockError::OfFiles),
            skew,
            correction,
            aligned: arguments.align,
        },
        codec: arguments.codec,
        sampling: arguments.sample.clone(),
        media: Media::seen(&mut found.sights),
        round_trips: RoundTrips::seen(&mut found.sights),
        sights: found.sights,
        lost_beyond: 0,
        capture_dropped: found.capture_lost,
        undated: found.undated,
        taps: Vec::new(),
        layers: None,
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::clocks::offset;

    #[test]
    fn an_offset_that_is_suggested_can_be_given() {
        for nanos in [86_400_000_000_000, -1, 1_500_000_000, -86_399_999_999_999] {
            let span = Span::from_nanos(nanos);
            assert_eq!(offset(&offset_argument(span)), Ok(span));
        }
    }
}
