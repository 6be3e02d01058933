//! Tables of the observations that wait for their file: acknowledged batches as received, and the hours in which they
//! are archived.
//!
//! A batch is stored in the transaction that acknowledges it. Its entry for an hour is deleted once the file of the hour
//! is written, and the batch with its last entry. The name of the file states the first batch in it ([`ObservedHour`]).
//! So a file that is written twice because of a crash replaces itself.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::{Results, Step, progress};
use crate::DatabaseError;
use crate::collector::{ObservedBatch, ObservedContent, Settled};
use crate::database::unsigned;

/// Max batches of a file, so that deleting them does not delay deliveries for long.
const MAX_BATCHES: i64 = 50_000;

/// Stored batches of an hour and an epoch, for one file of each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedHour {
    /// Begin.
    pub(crate) begin: Time<Utc>,
    /// Epoch in which the batches were received.
    pub(crate) epoch: u64,
    /// Place of the first batch, in the order in which batches were stored.
    pub(crate) first: i64,
    /// Place of the last batch.
    pub(crate) last: i64,
}

/// A stored batch, and its place in the order in which batches were stored.
pub(crate) type StoredBatch = (i64, ObservedBatch);

impl Results {
    /// The oldest hour with observations that are in no file, if it is complete: `next_observations` returns the earliest
    /// time of further observations, given the settled time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn next_observed_hour(
        &self,
        task: u64,
        next_observations: impl FnOnce(Time<Utc>) -> Time<Utc>,
    ) -> Result<Option<ObservedHour>, DatabaseError> {
        self.database.read(|database| next(database, task, next_observations))
    }

    /// Stored batches of a point in an hour, in order, behind a place; at most `most`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn observed(
        &self,
        task: u64,
        hour: &ObservedHour,
        (point, behind): (Point, i64),
        most: u32,
    ) -> Result<Vec<StoredBatch>, DatabaseError> {
        self.database.read(|database| found(database, task, hour, (point, behind), most))
    }

    /// Deletes the batches of an hour, whose files are written.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn observed_written(
        &mut self,
        task: u64,
        hour: &ObservedHour,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| written(change, task, hour))
    }
}

/// Stores acknowledged batches.
pub(super) fn insert(
    change: &Transaction<'_>,
    task: u64,
    settled: &Settled,
) -> rusqlite::Result<()> {
    for (hours, batch) in &settled.observed {
        let ObservedBatch { point, spool, epoch, numbers, is_unknown, content } = batch;
        let (message, until, packets, why) = match content {
            ObservedContent::Observations(message) => (Some(message), None, None, None),
            ObservedContent::Dropped { until, packets } => {
                (None, Some(until.as_nanos()), Some(packets.cast_signed()), None)
            }
            ObservedContent::Malformed(why) => (None, None, None, Some(why)),
        };
        let query =
            "INSERT INTO observed_batch (task, epoch, point, spool, first, last, is_unknown,
                         message, until, packets, malformed)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let (task, epoch) = (task.cast_signed(), epoch.cast_signed());
        let point = progress::number(*point);
        let [first, last] = [numbers.start(), numbers.end()].map(|it| it.cast_signed());
        let mut statement = change.prepare_cached(query)?;
        statement.execute(params![
            task, epoch, point, spool, first, last, is_unknown, message, until, packets, why
        ])?;
        let place = change.last_insert_rowid();
        let query = "INSERT INTO observed_hour VALUES (?, ?, ?, ?)";
        let mut statement = change.prepare_cached(query)?;
        for hour in hours {
            statement.execute(params![task, hour.as_nanos(), epoch, place])?;
        }
    }
    Ok(())
}

fn next(
    database: &Connection,
    task: u64,
    next_observations: impl FnOnce(Time<Utc>) -> Time<Utc>,
) -> rusqlite::Result<Option<ObservedHour>> {
    let number = task.cast_signed();
    let query = "SELECT hour, epoch, batch FROM observed_hour WHERE task = ?
                 ORDER BY hour, epoch, batch LIMIT 1";
    let mut statement = database.prepare_cached(query)?;
    let oldest = statement.query_row([number], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    let Some((hour, epoch, first)) = oldest.optional()? else { return Ok(None) };
    let begin = Time::from_nanos(hour);
    let settled_until = progress::progress(database, task)?.settled_until;
    if begin + Step::Hour.length() > next_observations(settled_until) {
        return Ok(None);
    }
    let query = "SELECT max(batch) FROM (SELECT batch FROM observed_hour
                 WHERE task = ? AND hour = ? AND epoch = ? ORDER BY batch LIMIT ?)";
    let values = [number, hour, epoch, MAX_BATCHES];
    let last = database.prepare_cached(query)?.query_row(values, |row| row.get(0))?;
    Ok(Some(ObservedHour { begin, epoch: epoch.cast_unsigned(), first, last }))
}

fn found(
    database: &Connection,
    task: u64,
    hour: &ObservedHour,
    (point, behind): (Point, i64),
    most: u32,
) -> rusqlite::Result<Vec<StoredBatch>> {
    let query = "SELECT id, point, spool, observed_batch.epoch, first, last, is_unknown, message,
                     until, packets, malformed
                 FROM observed_hour JOIN observed_batch ON id = batch
                 WHERE observed_hour.task = ? AND hour = ? AND observed_hour.epoch = ?
                     AND batch > ? AND batch <= ? AND point = ?
                 ORDER BY batch LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let (begin, epoch) = (hour.begin.as_nanos(), hour.epoch.cast_signed());
    let point = progress::number(point);
    let values = params![task.cast_signed(), begin, epoch, behind, hour.last, point, most];
    let rows = statement.query_map(values, batch)?;
    rows.collect()
}

fn batch(row: &Row<'_>) -> rusqlite::Result<StoredBatch> {
    let content = match (row.get::<_, Option<_>>(7)?, row.get::<_, Option<_>>(10)?) {
        (Some(message), _) => ObservedContent::Observations(message),
        (None, Some(why)) => ObservedContent::Malformed(why),
        (None, None) => ObservedContent::Dropped {
            until: Time::from_nanos(row.get(8)?),
            packets: unsigned(row, 9)?,
        },
    };
    let batch = ObservedBatch {
        point: if row.get(1)? { Point::B } else { Point::A },
        spool: row.get(2)?,
        epoch: unsigned(row, 3)?,
        numbers: unsigned(row, 4)?..=unsigned(row, 5)?,
        is_unknown: row.get(6)?,
        content,
    };
    Ok((row.get(0)?, batch))
}

fn written(change: &Transaction<'_>, task: u64, hour: &ObservedHour) -> rusqlite::Result<()> {
    let ObservedHour { begin, epoch, last, .. } = hour;
    // A batch is in two neighbouring hours at most.
    let query = "DELETE FROM observed_batch WHERE id IN (
                     SELECT batch FROM observed_hour
                     WHERE task = ?1 AND hour = ?2 AND epoch = ?3 AND batch <= ?4)
                 AND NOT EXISTS (SELECT 1 FROM observed_hour
                     WHERE task = ?1 AND hour IN (?2 - ?5, ?2 + ?5) AND epoch = ?3 AND batch = id)";
    let (task, epoch) = (task.cast_signed(), epoch.cast_signed());
    let (begin, length) = (begin.as_nanos(), Step::Hour.length().as_nanos());
    change.execute(query, params![task, begin, epoch, last, length])?;
    let query =
        "DELETE FROM observed_hour WHERE task = ? AND hour = ? AND epoch = ? AND batch <= ?";
    change.execute(query, params![task, begin, epoch, last])?;
    Ok(())
}

/// Deletes stored batches of a task, at most `most`. Returns the number of rows deleted.
pub(super) fn remove(change: &Transaction<'_>, task: u64, most: u32) -> rusqlite::Result<usize> {
    let query = "DELETE FROM observed_batch WHERE id IN (
                     SELECT batch FROM observed_hour WHERE task = ?1
                     ORDER BY hour, epoch, batch LIMIT ?2)";
    let values = params![task.cast_signed(), most];
    let batches = change.execute(query, values)?;
    let query = "DELETE FROM observed_hour WHERE task = ?1 AND (hour, epoch, batch) IN (
                     SELECT hour, epoch, batch FROM observed_hour WHERE task = ?1
                     ORDER BY hour, epoch, batch LIMIT ?2)";
    Ok(batches + change.execute(query, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::Settled;

    const HOUR: i64 = 3_600_000_000_000;

    fn batch(number: u64, until: i64) -> ObservedBatch {
        let content = ObservedContent::Dropped { until: Time::from_nanos(until), packets: number };
        ObservedBatch {
            point: if number.is_multiple_of(2) { Point::B } else { Point::A },
            spool: -7,
            epoch: 3,
            numbers: number..=number + 1,
            is_unknown: number == 1,
            content,
        }
    }

    fn settled(batches: Vec<ObservedBatch>, until: i64) -> Settled {
        let hour = |it: &ObservedBatch| match it.content {
            ObservedContent::Dropped { until, .. } if until > Time::from_nanos(HOUR) => HOUR,
            _ => 0,
        };
        let of = |it: ObservedBatch| ([Time::from_nanos(hour(&it))].into(), it);
        let observed = batches.into_iter().map(of).collect();
        Settled { observed, ..Settled::nothing(Time::from_nanos(until)) }
    }

    fn next(results: &Results) -> Option<ObservedHour> {
        results.next_observed_hour(7, |settled_until| settled_until).unwrap()
    }

    #[test]
    fn stored_batches_are_found_by_hour_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        let malformed = ObservedBatch {
            content: ObservedContent::Malformed("it is short".to_owned()),
            ..batch(5, 0)
        };
        let first = vec![batch(1, HOUR), batch(2, HOUR), malformed.clone()];
        results.store(7, &settled(first, HOUR - 1)).unwrap();
        results.store(8, &settled(vec![batch(1, HOUR)], HOUR)).unwrap();
        assert_eq!(next(&results), None, "the hour is not complete");
        results.store(7, &settled(vec![batch(3, HOUR), batch(4, 2 * HOUR)], HOUR)).unwrap();
        let hour = next(&results).unwrap();
        assert_eq!((hour.begin, hour.epoch), (Time::from_nanos(0), 3));
        let of = |results: &Results, point, behind, most| {
            results.observed(7, &hour, (point, behind), most).unwrap()
        };
        let [(place, one)] = &of(&results, Point::A, 0, 1)[..] else { panic!("one batch") };
        assert_eq!((*place, one), (hour.first, &batch(1, HOUR)));
        let rest: Vec<_> = of(&results, Point::A, *place, 9).into_iter().map(|it| it.1).collect();
        assert_eq!(rest, [malformed, batch(3, HOUR)]);
        assert_eq!(of(&results, Point::B, 0, 9).len(), 1);
        // A batch that is stored meanwhile is in the next file of the hour.
        results.store(7, &settled(vec![batch(6, HOUR)], HOUR)).unwrap();
        results.observed_written(7, &hour).unwrap();
        let later = next(&results).unwrap();
        assert_eq!((later.begin, later.first, later.last), (hour.begin, later.first, later.first));
        assert!(later.first > hour.last);
        results.observed_written(7, &later).unwrap();
        assert_eq!(next(&results), None, "the second hour is not complete");
        // Removed tasks leave nothing.
        while results.remove(7, 1).unwrap() > 0 {}
        let rows = |results: &Results, table: &str| {
            let query = format!("SELECT count(*) FROM {table}");
            let read = |it: &Connection| it.query_row(&query, [], |row| row.get::<_, i64>(0));
            results.database.read(read).unwrap()
        };
        assert_eq!(["observed_batch", "observed_hour"].map(|it| rows(&results, it)), [1, 1]);
    }
}
