//! Reads a file of anchors, whatever may be in it.

use std::cmp::Ordering;
use std::io::{self, BufRead, Read};
use std::str::FromStr;

use super::replay::{Twice, replay};
use super::{HEADER, MONOTONIC, Row};
use crate::anchor::Anchor;
use crate::rate::Rate;
use crate::{Domain, Phc, Span, Time, Timeline};

/// No line of ours comes near that.
const LONGEST_LINE: u64 = 1024;

/// The frequencies that a clock may be said to have, in hertz: wide enough for anything that
/// counts, narrow enough for arithmetic.
const FREQUENCIES: std::ops::RangeInclusive<f64> = 1.0..=1e12;

/// Why a file of anchors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnchorFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line makes no sense.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What was wrong with it.
        reason: String,
    },
    /// There is no anchor in it.
    #[error("it has no anchors: was the capture ended before it began?")]
    Empty,
}

/// The anchors of a clock, read back and made into one timeline.
#[derive(Clone, Debug)]
pub struct AnchorFile {
    clock: String,
    boot_id: String,
    timeline: Timeline,
}

/// The columns that are the same in all lines.
#[derive(Clone, PartialEq, Eq)]
struct Calibrated {
    clock: String,
    boot_id: String,
}

impl AnchorFile {
    /// Reads a file as [`super::AnchorWriter`] writes it.
    ///
    /// # Errors
    /// When it cannot be read, or a line is not what it should be.
    pub fn read(mut file: impl BufRead) -> Result<Self, AnchorFileError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut clock: Option<Calibrated> = None;
        let mut text = Vec::new();
        for line in 1.. {
            let refuse = |reason| AnchorFileError::Line { line, reason };
            let Some(text) = next_line(&mut file, &mut text)? else { break };
            let text = text.map_err(refuse)?;
            if line == 1 {
                check_header(text).map_err(refuse)?;
                continue;
            }
            let (row, of) = parse(text).map_err(refuse)?;
            if let Some(last) = rows.last() {
                check_order(last, &row).map_err(refuse)?;
            }
            check_same(clock.get_or_insert_with(|| of.clone()), &of).map_err(refuse)?;
            rows.push(row);
        }
        Self::of(clock.ok_or(AnchorFileError::Empty)?, &rows)
    }

    fn of(clock: Calibrated, rows: &[Row]) -> Result<Self, AnchorFileError> {
        let Calibrated { clock, boot_id } = clock;
        let domain = match clock.as_str() {
            MONOTONIC => Domain::Monotonic,
            name if Phc::is_name(name) => Domain::Nic,
            _ => Domain::Counter,
        };
        let timeline = replay(domain, rows).map_err(|Twice { row }| {
            let reason = "the clock started again here and ran through the same values a second \
                          time, so that a raw value says no time: keep the stamps as they are";
            AnchorFileError::Line { line: row as u64 + 2, reason: reason.to_owned() }
        })?;
        Ok(Self { clock, boot_id, timeline })
    }

    /// The calibrated clock by its name.
    #[must_use]
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// The boot of the machine that the anchors were taken on; empty if unknown.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// What converts every raw value between the anchors that bracket it.
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
    file.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(match line.split_last() {
        Some((b'\n', text)) => str::from_utf8(text.strip_suffix(b"\r").unwrap_or(text))
            .map_err(|_| "it is no text: is this a file of anchors?".to_owned()),
        _ if line.len() as u64 == LONGEST_LINE => Err("it is too long for an anchor".to_owned()),
        _ => Err("it is cut short: delete it to use the anchors before".to_owned()),
    }))
}

fn check_header(text: &str) -> Result<(), String> {
    if text == HEADER {
        return Ok(());
    }
    let first = HEADER.split(',').next().unwrap_or(HEADER);
    Err(format!("not the header of a file of anchors, whose first column is {first}"))
}

fn check_same(first: &Calibrated, here: &Calibrated) -> Result<(), String> {
    if first == here {
        return Ok(());
    }
    let said = |of: &Calibrated| format!("{} of boot {:?}", of.clock, of.boot_id);
    Err(format!("an anchor of {}, where those before are of {}", said(here), said(first)))
}

fn check_order(last: &Row, here: &Row) -> Result<(), String> {
    let ascends = here.anchor.monotonic_raw > last.anchor.monotonic_raw;
    match here.epoch.cmp(&last.epoch) {
        Ordering::Less => Err("epoch descends".to_owned()),
        Ordering::Equal if !ascends => Err("monotonic_raw_ns does not ascend".to_owned()),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Result<(Row, Calibrated), String> {
    let columns: Vec<&str> = text.split(',').collect();
    let Ok(columns) = <[&str; 10]>::try_from(columns) else {
        return Err(format!("expected {} columns", HEADER.split(',').count()));
    };
    let [raw, utc, monotonic, error, epoch, clock, boot_id, granularity, hertz, ppm] = columns;
    let anchor = Anchor {
        raw: number("raw_ticks", raw)?,
        utc: Time::from_nanos(number("utc_ns", utc)?),
        monotonic_raw: Time::from_nanos(number("monotonic_raw_ns", monotonic)?),
        error: size("error_ns", error)?,
    };
    let rate = rate(number("frequency_hz", hertz)?, number("rate_error_ppm", ppm)?)?;
    let granularity = size("granularity_ns", granularity)?;
    let row = Row { anchor, epoch: number("epoch", epoch)?, rate, granularity };
    Ok((row, Calibrated { clock: clock.to_owned(), boot_id: boot_id.to_owned() }))
}

fn number<T: FromStr>(column: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{column} cannot be {text:?}"))
}

/// A span that has no sign.
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
