//! Reader of anchor files. Accepts any bytes without a panic.

use std::cmp::Ordering;
use std::io::{self, BufRead, Read};
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::format::{AnchorRow, HEADER, HEADER_OF_ANCHORS, LineColumns, MONOTONIC, RowKind};
use super::lines::{LineRange, overlay};
use super::replay::{RepeatedValues, replay};
use crate::anchor::Anchor;
use crate::ratio::Rate;
use crate::{Domain, Phc, Span, Time, Timeline};

/// Far above the longest line that the writer produces.
const MAX_LINE: u64 = 1024;

/// Accepted frequencies in hertz: wide enough for any counter, narrow enough for the arithmetic.
const FREQUENCIES: std::ops::RangeInclusive<f64> = 1.0..=1e12;

/// Accepted slopes of the kernel's lines, in nanoseconds per tick: those of [`FREQUENCIES`], slewed.
const SLOPES: std::ops::RangeInclusive<f64> = 0.5e-3..=2e9;

/// Error of an anchor file.
#[derive(Debug, thiserror::Error)]
pub enum AnchorFileError {
    /// Read error.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Invalid line.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// Cause.
        reason: String,
    },
    /// The file has no anchors.
    #[error("the file has no anchors; the capture may have ended before its start")]
    Empty,
}

/// The anchors of a clock, read from a file and combined into one timeline.
#[derive(Clone, Debug)]
pub struct AnchorFile {
    clock: String,
    boot_id: String,
    timeline: Timeline,
    covered: RangeInclusive<u64>,
}

/// The columns that are equal in all lines.
#[derive(Clone, PartialEq, Eq)]
struct ClockColumns {
    clock: String,
    boot_id: String,
}

impl AnchorFile {
    /// Reads a file that [`super::AnchorWriter`] wrote.
    ///
    /// # Errors
    /// On a read error, or an invalid line.
    pub fn read(mut file: impl BufRead) -> Result<Self, AnchorFileError> {
        let mut rows: Vec<AnchorRow> = Vec::new();
        let mut lines: Vec<LineRange> = Vec::new();
        let mut clock: Option<ClockColumns> = None;
        let mut text = Vec::new();
        for line in 1.. {
            let refuse = |reason| AnchorFileError::Line { line, reason };
            let Some(text) = next_line(&mut file, &mut text)? else { break };
            let text = text.map_err(refuse)?;
            if line == 1 {
                check_header(text).map_err(refuse)?;
                continue;
            }
            let (row, of) = parse(line, text).map_err(refuse)?;
            check_same(clock.get_or_insert_with(|| of.clone()), &of).map_err(refuse)?;
            LineRange::extend(&mut lines, &row);
            if row.kind != RowKind::Anchor {
                continue;
            }
            if let Some(last) = rows.last() {
                check_order(last, &row).map_err(refuse)?;
            }
            rows.push(row);
        }
        let clock = clock.filter(|_| !rows.is_empty()).ok_or(AnchorFileError::Empty)?;
        Self::of(clock, &rows, &lines)
    }

    fn of(
        clock: ClockColumns,
        rows: &[AnchorRow],
        lines: &[LineRange],
    ) -> Result<Self, AnchorFileError> {
        let ClockColumns { clock, boot_id } = clock;
        let domain = match clock.as_str() {
            MONOTONIC => Domain::Monotonic,
            name if Phc::is_name(name) => Domain::Nic,
            _ => Domain::Counter,
        };
        let timeline = replay(domain, rows).map_err(|RepeatedValues { row }| {
            let line = rows[row].number;
            let reason = "the clock started again here and ran through the same values a second \
                          time, so that a raw value says no time: keep the stamps as they are";
            AnchorFileError::Line { line, reason: reason.to_owned() }
        })?;
        let timeline = overlay(&timeline, lines);
        let anchors = timeline.anchors().map(|anchor| anchor.raw);
        let ends = lines.iter().flat_map(|range| [range.first(), range.until]);
        let (min, max) =
            anchors.chain(ends).fold((u64::MAX, 0), |(min, max), raw| (min.min(raw), max.max(raw)));
        Ok(Self { clock, boot_id, timeline, covered: min..=max })
    }

    /// Name of the calibrated clock.
    #[must_use]
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// The boot of the machine that the anchors were taken on; empty if unknown.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// Raw values from the first anchor or line of the kernel to the last.
    #[must_use]
    pub fn covered(&self) -> RangeInclusive<u64> {
        self.covered.clone()
    }

    /// Timeline that converts every raw value between the anchors around it.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

/// The next line without its end; `None` at the end of the file.
fn next_line<'a>(
    file: &mut impl BufRead,
    line: &'a mut Vec<u8>,
) -> io::Result<Option<Result<&'a str, String>>> {
    line.clear();
    file.by_ref().take(MAX_LINE).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(match line.split_last() {
        Some((b'\n', text)) => str::from_utf8(text.strip_suffix(b"\r").unwrap_or(text))
            .map_err(|_| "it is no text: is this a file of anchors?".to_owned()),
        _ if line.len() as u64 == MAX_LINE => Err("it is too long for an anchor".to_owned()),
        _ => Err("it is cut short: delete it to use the anchors before".to_owned()),
    }))
}

fn check_header(text: &str) -> Result<(), String> {
    if [HEADER, HEADER_OF_ANCHORS].contains(&text) {
        return Ok(());
    }
    let first = HEADER.split(',').next().unwrap_or(HEADER);
    Err(format!("not the header of a file of anchors, whose first column is {first}"))
}

fn check_same(first: &ClockColumns, here: &ClockColumns) -> Result<(), String> {
    if first == here {
        return Ok(());
    }
    let said = |of: &ClockColumns| format!("{} of boot {:?}", of.clock, of.boot_id);
    Err(format!("an anchor of {}, where those before are of {}", said(here), said(first)))
}

fn check_order(last: &AnchorRow, here: &AnchorRow) -> Result<(), String> {
    let ascends = here.anchor.monotonic_raw > last.anchor.monotonic_raw;
    match here.epoch.cmp(&last.epoch) {
        Ordering::Less => Err("epoch descends".to_owned()),
        Ordering::Equal if !ascends => Err("monotonic_raw_ns does not ascend".to_owned()),
        _ => Ok(()),
    }
}

fn parse(number_of_line: u64, text: &str) -> Result<(AnchorRow, ClockColumns), String> {
    let columns: Vec<&str> = text.split(',').collect();
    let (columns, [kind, slope, line_error]) = match columns.as_slice() {
        [of_anchor @ .., kind, slope, error] if of_anchor.len() == 10 => {
            (of_anchor, [*kind, *slope, *error])
        }
        of_anchor => (of_anchor, ["anchor", "", ""]),
    };
    let &[raw, utc, monotonic, error, epoch, clock, boot_id, granularity, hertz, ppm] = columns
    else {
        return Err(format!("expected {} columns", HEADER.split(',').count()));
    };
    let anchor = Anchor {
        raw: number("raw_ticks", raw)?,
        utc: Time::from_nanos(number("utc_ns", utc)?),
        monotonic_raw: Time::from_nanos(number("monotonic_raw_ns", monotonic)?),
        error: size("error_ns", error)?,
    };
    let rate = rate(number("frequency_hz", hertz)?, number("rate_error_ppm", ppm)?)?;
    let granularity = size("granularity_ns", granularity)?;
    let (kind, line) = (number("row", kind)?, line(slope, line_error)?);
    if line.is_none() && kind != RowKind::Anchor {
        return Err("a row of a line needs line_ns_per_tick and line_error_ns".to_owned());
    }
    let epoch = number("epoch", epoch)?;
    let row = AnchorRow { number: number_of_line, kind, line, anchor, epoch, rate, granularity };
    Ok((row, ClockColumns { clock: clock.to_owned(), boot_id: boot_id.to_owned() }))
}

/// The line of the kernel in a row; none if both columns are empty.
fn line(slope: &str, error: &str) -> Result<Option<LineColumns>, String> {
    if slope.is_empty() && error.is_empty() {
        return Ok(None);
    }
    let nanos_per_tick: f64 = number("line_ns_per_tick", slope)?;
    if !SLOPES.contains(&nanos_per_tick) {
        return Err(format!("line_ns_per_tick cannot be {nanos_per_tick}"));
    }
    Ok(Some(LineColumns { nanos_per_tick, error: size("line_error_ns", error)? }))
}

fn number<T: FromStr>(column: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{column} cannot be {text:?}"))
}

/// A span that is not negative.
fn size(column: &str, text: &str) -> Result<Span, String> {
    let nanos: i64 = number(column, text)?;
    if nanos < 0 { Err(format!("{column} cannot be {nanos}")) } else { Ok(Span::from_nanos(nanos)) }
}

fn rate(hertz: f64, error_ppm: f64) -> Result<Rate, String> {
    if !FREQUENCIES.contains(&hertz) {
        return Err(format!("frequency_hz cannot be {hertz}"));
    }
    if !(0.0..f64::INFINITY).contains(&error_ppm) {
        return Err(format!("rate_error_ppm cannot be {error_ppm}"));
    }
    let nanos_per_tick = 1e9 / hertz;
    Ok(Rate { nanos_per_tick, error: nanos_per_tick * error_ppm * 1e-6 })
}
