//! Table of histograms: of each window, and of merged longer ones.
//!
//! Delays of unsynchronised clocks are not included.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::CompactHistogram;

use super::{Step, progress};
use crate::collector::Window;

/// Histograms of delay and delay variation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Histograms {
    /// One-way delays of the windows in which they are known.
    pub delay: CompactHistogram,
    /// Delay variation from packet to packet.
    pub variation: CompactHistogram,
    /// Values that are in no histogram.
    pub missing: Missing,
}

/// Values that were measured but are in no histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Missing {
    /// Delays with unsynchronised clocks, or from before histograms were stored.
    pub delay: u64,
    /// Variations from before histograms were stored.
    pub variation: u64,
}

impl Histograms {
    /// Adds the values of another collector.
    pub(crate) fn add(&mut self, other: &Self) {
        self.merge(other);
        self.missing.delay = self.missing.delay.saturating_add(other.missing.delay);
        self.missing.variation = self.missing.variation.saturating_add(other.missing.variation);
    }

    fn merge(&mut self, other: &Self) {
        self.delay.merge(&other.delay);
        self.variation.merge(&other.variation);
    }
}

impl From<&Window> for Histograms {
    fn from(window: &Window) -> Self {
        let delay = if window.offset.is_ok() {
            CompactHistogram::from(window.quality.delay())
        } else {
            CompactHistogram::default()
        };
        let variation = CompactHistogram::from(window.quality.variation());
        Self { delay, variation, missing: Missing::default() }
    }
}

pub(super) fn insert(
    change: &Transaction<'_>,
    (task, step, begin): (u64, Step, Time<Utc>),
    histograms: &Histograms,
) -> rusqlite::Result<()> {
    let Histograms { delay, variation, .. } = histograms;
    let query = "INSERT OR REPLACE INTO histogram VALUES (?, ?, ?, ?, ?)";
    let (task, begin) = (task.cast_signed(), begin.as_nanos());
    let values = params![task, step.seconds(), begin, delay.encode(), variation.encode()];
    change.prepare_cached(query)?.execute(values)?;
    Ok(())
}

/// Merges histograms into longer ones, and updates the percentiles of their windows.
pub(super) fn merge(
    change: &Transaction<'_>,
    task: u64,
    (of, step): (Step, Step),
    range: Range<i64>,
) -> rusqlite::Result<()> {
    let mut together: BTreeMap<_, Histograms> = BTreeMap::new();
    each(change, task, of, range, |begin, part| {
        together.entry(begin.interval_begin(step.length())).or_default().merge(part);
    })?;
    for (begin, histograms) in &together {
        let key = (task, step, *begin);
        insert(change, key, histograms)?;
        for (name, histogram) in
            [("delay", &histograms.delay), ("variation", &histograms.variation)]
        {
            set_percentiles(change, key, name, histogram)?;
        }
    }
    Ok(())
}

/// For windows whose values are all in the histogram. The exact min and max limit the percentiles.
fn set_percentiles(
    change: &Transaction<'_>,
    (task, step, begin): (u64, Step, Time<Utc>),
    name: &str,
    histogram: &CompactHistogram,
) -> rusqlite::Result<()> {
    let Some([p50, p90, p99, p999]) = histogram.percentiles() else { return Ok(()) };
    let within = |place| format!("MIN(MAX(?{place}, {name}_min), {name}_max)");
    let query = format!(
        "UPDATE window SET {name}_p50 = {}, {name}_p90 = {}, {name}_p99 = {}, {name}_p999 = {}
         WHERE task = ?1 AND step = ?2 AND begin = ?3 AND {name}_count = ?4",
        within(5),
        within(6),
        within(7),
        within(8)
    );
    let (task, begin, count) = (task.cast_signed(), begin.as_nanos(), histogram.count());
    let values = params![task, step.seconds(), begin, count.cast_signed(), p50, p90, p99, p999];
    change.prepare_cached(&query)?.execute(values)?;
    Ok(())
}

/// Histograms of a time range, merged from all window lengths.
pub(super) fn found(
    database: &Connection,
    task: u64,
    range: Range<i64>,
) -> rusqlite::Result<Histograms> {
    let settled_until = progress::progress(database, task)?.settled_until.as_nanos();
    let (from, until) = (range.start.max(0), range.end.min(settled_until));
    let mut together = Histograms::default();
    let mut measured = Missing::default();
    for (step, part) in parts(&[Step::Hour, Step::Minute, Step::AsMeasured], from..until) {
        each(database, task, step, part.clone(), |_, histograms| together.merge(histograms))?;
        let query = "SELECT TOTAL(delay_count), TOTAL(variation_count) FROM window
                     WHERE task = ? AND step = ? AND begin >= ? AND begin < ?";
        let values = params![task.cast_signed(), step.seconds(), part.start, part.end];
        let mut statement = database.prepare_cached(query)?;
        let [delay, variation] =
            statement.query_row(values, |row| Ok([row.get(0)?, row.get(1)?]))?;
        measured.delay += whole(delay);
        measured.variation += whole(variation);
    }
    together.missing = Missing {
        delay: measured.delay.saturating_sub(together.delay.count()),
        variation: measured.variation.saturating_sub(together.variation.count()),
    };
    Ok(together)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of counts")]
fn whole(total: f64) -> u64 {
    total as u64
}

/// Splits a time range into the longest windows inside of it, and shorter ones at its ends.
fn parts(steps: &[Step], range: Range<i64>) -> Vec<(Step, Range<i64>)> {
    let Range { start, end } = range;
    let [step, shorter @ ..] = steps else { return Vec::new() };
    if start >= end {
        return Vec::new();
    }
    if shorter.is_empty() {
        return vec![(*step, range)];
    }
    let length = step.length().as_nanos();
    let first = start.saturating_add(length - 1) / length * length;
    let behind = end / length * length;
    if first >= behind {
        return parts(shorter, range);
    }
    let mut all = parts(shorter, start..first);
    all.push((*step, first..behind));
    all.extend(parts(shorter, behind..end));
    all
}

/// Calls `act` for each histogram of a task in a time range, in order.
fn each(
    database: &Connection,
    task: u64,
    step: Step,
    range: Range<i64>,
    mut act: impl FnMut(Time<Utc>, &Histograms),
) -> rusqlite::Result<()> {
    let query = "SELECT begin, delay, variation FROM histogram
                 WHERE task = ? AND step = ? AND begin >= ? AND begin < ? ORDER BY begin";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), step.seconds(), range.start, range.end];
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let (delay, variation) = (decoded(row, 1)?, decoded(row, 2)?);
        let histograms = Histograms { delay, variation, missing: Missing::default() };
        act(Time::from_nanos(row.get(0)?), &histograms);
    }
    Ok(())
}

pub(super) fn decoded(row: &Row<'_>, column: usize) -> rusqlite::Result<CompactHistogram> {
    let bytes = row.get_ref(column)?.as_blob()?;
    CompactHistogram::decode(bytes)
        .map_err(|why| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 3] = [Step::Hour, Step::Minute, Step::AsMeasured];

    fn seconds(from: i64, until: i64) -> Vec<(i64, i64, i64)> {
        let [from, until] = [from, until].map(|it| it * 1_000_000_000);
        let parts = parts(&STEPS, from..until).into_iter();
        let of = |(step, part): (Step, Range<i64>)| {
            (step.seconds(), part.start / 1_000_000_000, part.end / 1_000_000_000)
        };
        parts.map(of).collect()
    }

    #[test]
    fn time_range_is_split_into_longest_windows() {
        assert_eq!(seconds(7, 7), []);
        assert_eq!(seconds(7, 50), [(0, 7, 50)]);
        assert_eq!(seconds(7, 130), [(0, 7, 60), (60, 60, 120), (0, 120, 130)]);
        assert_eq!(seconds(3600, 7200), [(3600, 3600, 7200)]);
        assert_eq!(
            seconds(3595, 10_870),
            [(0, 3595, 3600), (3600, 3600, 10_800), (60, 10_800, 10_860), (0, 10_860, 10_870)]
        );
    }
}
