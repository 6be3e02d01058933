//! Table of windows, including merged longer ones.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Counts;

use super::histograms::{self, Histograms};
use super::shard_windows::ShardWindow;
use super::{Measured, ResultRange, Spread, Step, return_paths, spreads};
use crate::collector::Window;
use crate::database::unsigned;

/// Number of columns before the two distributions.
const AHEAD: usize = 16;

pub(super) fn insert(
    change: &Transaction<'_>,
    task: u64,
    begin: Time<Utc>,
    window: &Window,
) -> rusqlite::Result<()> {
    let counts = window.quality.counts();
    let Counts { sent, received, matched, lost, duplicated, reordered, unexpected, .. } = *counts;
    let Counts { undetermined_sent, undetermined_received, identical, .. } = *counts;
    let key = [task.cast_signed(), Step::AsMeasured.seconds(), begin.as_nanos()];
    let counts = [
        sent,
        received,
        matched,
        lost,
        duplicated,
        reordered,
        unexpected,
        undetermined_sent,
        undetermined_received,
        identical,
    ];
    let numbers = key.into_iter().chain(counts.map(u64::cast_signed));
    let mut values: Vec<Value> = numbers.map(Value::from).collect();
    let error = window.error();
    values.push(error.ok().map(Span::as_nanos).into());
    values.push(error.err().map(|why| why.as_ref().to_owned()).into());
    values.push(window.contradicts_the_clocks().into());
    for distribution in [window.quality.delay(), window.quality.variation()] {
        let spread = distribution.summary().as_ref().map(Spread::from);
        values.extend(spreads::columns(spread.as_ref()));
    }
    let places = vec!["?"; values.len()].join(", ");
    let query = format!("INSERT INTO window VALUES ({places})");
    change.prepare_cached(&query)?.execute(params_from_iter(values))?;
    let key = (task, Step::AsMeasured, begin);
    if let Some(path) = &window.return_path {
        return_paths::insert(change, key, path, window.offset.ok())?;
    }
    histograms::insert(change, key, &Histograms::from(window))
}

/// Merges windows into longer ones that ended between two times.
pub(super) fn merge(
    change: &Transaction<'_>,
    task: u64,
    before: Time<Utc>,
    until: Time<Utc>,
) -> rusqlite::Result<()> {
    for (of, step) in [(Step::AsMeasured, Step::Minute), (Step::Minute, Step::Hour)] {
        let length = step.length();
        let [from, until] = [before, until].map(|it| it.interval_begin(length).as_nanos());
        if from < until {
            let query = format!(
                "INSERT OR REPLACE INTO window
                 SELECT task, ?2, begin / ?3 * ?3, SUM(sent), SUM(received), SUM(matched),
                     SUM(lost), SUM(duplicated), SUM(reordered), SUM(unexpected),
                     SUM(given_up_sent), SUM(given_up_received), SUM(identical),
                     CASE WHEN MAX(not_synchronised) IS NULL THEN MAX(error) END,
                     MAX(not_synchronised), MAX(contradicts), {}, {}
                 FROM (
                     SELECT *, MIN(delay_min) OVER (PARTITION BY begin / ?3) AS delay_base,
                         MIN(variation_min) OVER (PARTITION BY begin / ?3) AS variation_base
                     FROM window WHERE task = ?1 AND step = ?4 AND begin >= ?5 AND begin < ?6)
                 GROUP BY begin / ?3",
                together("delay"),
                together("variation")
            );
            let values =
                [task.cast_signed(), step.seconds(), length.as_nanos(), of.seconds(), from, until];
            change.prepare_cached(&query)?.execute(values)?;
            histograms::merge(change, task, (of, step), from..until)?;
            return_paths::merge(change, task, (of, step), from..until)?;
        }
    }
    Ok(())
}

/// SQL to merge distributions. Percentiles come from histograms.
///
/// Means are relative to the min of all values (`base`): if clocks differ by hours, the squares of the stamped delays
/// exceed the precision of a float.
fn together(name: &str) -> String {
    let count = format!("SUM({name}_count)");
    let mean = format!("({name}_mean - {name}_base)");
    let total = format!("TOTAL({name}_count * {mean})");
    let squares = format!("TOTAL({name}_squares + {name}_count * {mean} * {mean})");
    format!(
        "{count}, MIN({name}_min),
         CASE WHEN {count} > 0 THEN MIN({name}_base) + {total} / {count} END,
         CASE WHEN {count} > 0 THEN MAX(0.0, {squares} - {total} * {total} / {count}) END,
         NULL, NULL, NULL, NULL, MAX({name}_max)"
    )
}

pub(super) fn measured(
    database: &Connection,
    task: u64,
    range: &ResultRange,
) -> rusqlite::Result<Vec<Measured>> {
    let ResultRange { step, from, until, most } = *range;
    let query = "SELECT * FROM window WHERE task = ? AND step = ? AND begin >= ? AND begin < ?
                 ORDER BY begin LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), step.seconds(), from, until, most];
    let rows = statement.query_map(values, window)?;
    let mut windows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    return_paths::add(database, task, step, &mut windows)?;
    Ok(windows)
}

pub(super) fn newest(database: &Connection, task: u64) -> rusqlite::Result<Option<Measured>> {
    let query = "SELECT * FROM window WHERE task = ? AND step = ? ORDER BY begin DESC LIMIT 1";
    let values = [task.cast_signed(), Step::AsMeasured.seconds()];
    let found = database.prepare_cached(query)?.query_row(values, window).optional()?;
    let Some(mut newest) = found else { return Ok(None) };
    return_paths::add(database, task, Step::AsMeasured, std::slice::from_mut(&mut newest))?;
    Ok(Some(newest))
}

fn window(row: &Row<'_>) -> rusqlite::Result<Measured> {
    Ok(of_shard(row)?.measured())
}

/// Windows of a shard with their histograms, ordered by time.
pub(super) fn of_shards(
    database: &Connection,
    task: u64,
    range: &ResultRange,
) -> rusqlite::Result<Vec<ShardWindow>> {
    let ResultRange { step, from, until, most } = *range;
    let query = "SELECT window.*, histogram.delay, histogram.variation
                 FROM window JOIN histogram USING (task, step, begin)
                 WHERE task = ? AND step = ? AND begin >= ? AND begin < ? ORDER BY begin LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let behind = statement.column_count();
    let values = params![task.cast_signed(), step.seconds(), from, until, most];
    let rows = statement.query_map(values, |row| {
        let delay = histograms::decoded(row, behind - 2)?;
        let variation = histograms::decoded(row, behind - 1)?;
        let histograms = Histograms { delay, variation, ..Histograms::default() };
        Ok(ShardWindow { histograms, ..of_shard(row)? })
    })?;
    rows.collect()
}

/// A window without its histograms.
fn of_shard(row: &Row<'_>) -> rusqlite::Result<ShardWindow> {
    let why: Option<String> = row.get(14)?;
    Ok(ShardWindow {
        begin_ns: row.get(2)?,
        counts: Counts {
            sent: unsigned(row, 3)?,
            received: unsigned(row, 4)?,
            matched: unsigned(row, 5)?,
            lost: unsigned(row, 6)?,
            duplicated: unsigned(row, 7)?,
            reordered: unsigned(row, 8)?,
            unexpected: unsigned(row, 9)?,
            undetermined_sent: unsigned(row, 10)?,
            undetermined_received: unsigned(row, 11)?,
            identical: unsigned(row, 12)?,
        },
        error_ns: row.get(13)?,
        delay_ns: spreads::read(row, AHEAD)?,
        not_synchronised: why.and_then(|name| name.parse().ok()),
        contradicts_the_clocks: row.get(15)?,
        variation_ns: spreads::read(row, AHEAD + spreads::COLUMNS)?,
        histograms: Histograms::default(),
    })
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_metrics::{Observation, Outcome, Quality};
    use wirestamp_packet::{FlowKey, PacketId};

    use super::*;
    use crate::collector::{EpochBegin, Results, Settled};

    fn at(second: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_secs(second)
    }

    /// Windows of these seconds, of packets whose stamped delays are `offset` and up to 90 us.
    fn windows(
        seconds: std::ops::Range<i64>,
        offset: Span,
    ) -> impl Iterator<Item = (Time<Utc>, Window)> {
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let observation = move |utc| Observation {
            id: PacketId(1),
            flow: FlowKey { source: end, destination: end, protocol: 17 },
            length: 100,
            stamp: Stamp { raw, utc, error: Span::ZERO },
        };
        seconds.map(move |second| {
            let mut quality = Quality::new();
            for sequence in 0..10 {
                let micros = (second * 7 + i64::try_from(sequence).unwrap() * 3) % 10 * 10;
                let delay = offset + Span::from_micros(micros);
                quality.record(&Outcome::Matched {
                    sent: observation(at(second)),
                    received: observation(at(second) + delay),
                    sequence,
                    delay,
                    error: Span::ZERO,
                    reordered: false,
                    since_previous: None,
                    until_next: None,
                });
            }
            let offset = Ok(Span::ZERO);
            (at(second), Window { quality, offset, least: None, return_path: None })
        })
    }

    fn store(
        results: &mut Results,
        windows: impl Iterator<Item = (Time<Utc>, Window)>,
        until: i64,
    ) {
        let windows = windows.collect();
        results.store(7, &Settled { windows, ..Settled::nothing(at(until)) }).unwrap();
    }

    fn merged(results: &Results, step: Step) -> Vec<Measured> {
        let range = ResultRange { step, from: 0, until: i64::MAX, most: 100 };
        results.measured(7, &range).unwrap()
    }

    #[test]
    fn deviation_does_not_depend_on_the_clock_offset() {
        let folder = tempfile::tempdir().unwrap();
        let deviations = [0, 3600, 86_400, -86_400].map(|offset: i64| {
            let name = format!("results{offset}");
            let mut results = Results::open(&folder.path().join(name)).unwrap();
            store(&mut results, windows(0..120, Span::from_secs(offset)), 3600);
            [Step::Minute, Step::Hour].map(|step| {
                let delay = merged(&results, step)[0].above_minimum_ns.unwrap();
                assert_eq!((delay.min, delay.max), (0, 90_000));
                assert!((delay.mean - 45_000.0).abs() < 1.0, "{offset} s: {delay:?}");
                delay.stddev
            })
        });
        let [synchronised, ..] = deviations;
        for (found, expected) in deviations.iter().flatten().zip(synchronised.iter().cycle()) {
            assert!((found - expected).abs() < 10.0, "{deviations:?}");
        }
        // Ten equally frequent values, 10 us apart.
        assert!((synchronised[1] - 28_734.8).abs() < 1.0, "{synchronised:?}");
    }

    #[test]
    fn last_hour_before_a_task_left_is_merged_when_it_returns() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| Results::open(&folder.path().join(name)).unwrap();
        let (mut stayed, mut returned) = (open("stayed"), open("returned"));
        let (before, after) = (3500..3590, 3610..3620);
        for results in [&mut stayed, &mut returned] {
            store(results, windows(before.clone(), Span::ZERO), 3590);
        }
        let begin = EpochBegin { epoch: 2, start: Some(at(3610)), points: Vec::new() };
        returned.begin_epoch(7, &begin).unwrap();
        for results in [&mut stayed, &mut returned] {
            store(results, windows(after.clone(), Span::ZERO), 3620);
        }
        for (step, count) in [(Step::AsMeasured, 100), (Step::Minute, 2), (Step::Hour, 1)] {
            let [expected, found] = [&stayed, &returned].map(|it| merged(it, step));
            assert_eq!((found.len(), &found), (count, &expected));
        }
        let [expected, found] =
            [&stayed, &returned].map(|it| it.histograms(7, 0..i64::MAX).unwrap());
        assert_eq!((found.delay.count(), found), (1000, expected));
    }
}
