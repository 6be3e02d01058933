//! Moves of tasks between collectors: where the results of each begin and end.
//!
//! A collector to which a task moved computes all results from a start on, from batches that the probes still have. The
//! former collector may have stored some of these results, too, if its last receipts were lost. It deletes them when it
//! learns the start. So each result is stored at one collector.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::{Step, hours, progress, shared_counts, windows};
use crate::database::unsigned;

/// Tables with rows of windows.
const WINDOW_TABLES: [&str; 3] = ["window", "histogram", "return_path"];

/// Begin of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochBegin {
    /// The epoch.
    pub epoch: u64,
    /// Time from which results are computed here; none if the probes do not know it.
    pub start: Option<Time<Utc>>,
    /// The points that are delivered.
    pub points: Vec<PointBegin>,
}

/// Spool of a point at the begin of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointBegin {
    /// The point.
    pub point: Point,
    /// Number of its spool.
    pub spool: i64,
    /// Number of the last batch that an earlier collector has acknowledged.
    pub behind: u64,
    /// It is not known what was stored of the time before the next batch.
    pub is_unknown: bool,
}

/// Epoch of a task that moved here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Task number.
    pub task: u64,
    /// Epoch of the placement.
    pub epoch: u64,
    /// Time from which results are computed here, in nanoseconds since 1970 (UTC); none if it is unknown.
    pub start: Option<i64>,
    /// Spool of the first point.
    pub spool: i64,
    /// Number of its last batch that an earlier collector has acknowledged.
    pub behind: u64,
}

/// Begin of a task at another collector, after it had been here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Epoch in which the task was here.
    pub epoch: u64,
    /// Results from here on belong to the other collector, in nanoseconds since 1970 (UTC).
    pub start: i64,
    /// Spool of the first point.
    pub spool: i64,
    /// Number of its last batch whose results belong to this collector.
    pub behind: u64,
}

pub(super) fn begin(
    change: &Transaction<'_>,
    task: u64,
    begin: &EpochBegin,
) -> rusqlite::Result<()> {
    let EpochBegin { epoch, start, points } = begin;
    let before = progress::progress(change, task)?;
    if let Some(start) = start {
        let range = start.as_nanos()..i64::MAX;
        delete_windows(change, task, range.clone())?;
        shared_counts::delete(change, task, range)?;
        // The last minute and hour of an earlier epoch here: the next results merge only later ones.
        windows::merge(change, task, before.settled_until, *start)?;
    }
    let number = task.cast_signed();
    let first = points.iter().find(|it| it.point == Point::A);
    match (start, first) {
        // The batches that follow are delivered again. The handover of the earlier epoch here states which of those
        // before them count here; it may arrive later.
        (Some(start), Some(first)) if before.delivered[0].spool == Some(first.spool) => {
            let again = (first.behind, i64::MAX.cast_unsigned());
            shared_counts::subtract_tail(change, task, again, start.as_nanos())?;
        }
        _ => drop(change.execute("DELETE FROM count_tail WHERE task = ?", [number])?),
    }
    if let Some(start) = start {
        shared_counts::keep_earlier(change, task, *epoch, start.as_nanos())?;
    }
    // Without a start, no result is computed twice at this collector.
    let settled_until = start.unwrap_or(before.settled_until).as_nanos();
    let query = "INSERT INTO task (number, settled_until, late, epoch) VALUES (?1, ?2, 0, ?3)
                 ON CONFLICT DO UPDATE SET settled_until = ?2, epoch = ?3";
    change.execute(query, params![number, settled_until, epoch.cast_signed()])?;
    let values = params![
        number,
        epoch.cast_signed(),
        start.map(Time::as_nanos),
        first.map_or(0, |it| it.spool),
        first.map_or(0, |it| it.behind.cast_signed()),
    ];
    change.execute("INSERT OR REPLACE INTO epoch VALUES (?, ?, ?, ?, ?)", values)?;
    let query = "INSERT INTO point VALUES (?1, ?2, ?3, ?4, 0, ?5)
                 ON CONFLICT DO UPDATE SET spool = ?3, acknowledged = ?4, unknown = ?5";
    for PointBegin { point, spool, behind, is_unknown } in points {
        let place = progress::number(*point);
        change.execute(query, params![number, place, spool, behind.cast_signed(), is_unknown])?;
    }
    Ok(())
}

pub(super) fn begun(database: &Connection) -> rusqlite::Result<Vec<Begun>> {
    let query = "SELECT task, epoch, start, spool, behind FROM epoch";
    let mut statement = database.prepare(query)?;
    let rows = statement.query_map([], |row| {
        Ok(Begun {
            task: unsigned(row, 0)?,
            epoch: unsigned(row, 1)?,
            start: row.get(2)?,
            spool: row.get(3)?,
            behind: unsigned(row, 4)?,
        })
    })?;
    rows.collect()
}

pub(super) fn hand_over(
    change: &Transaction<'_>,
    task: u64,
    handover: &Handover,
) -> rusqlite::Result<bool> {
    let Handover { epoch, start, spool, behind } = *handover;
    let later = later_epoch(change, task, epoch)?;
    let until = later.map_or(i64::MAX, |it| it.start);
    let mut has_changed = delete_windows(change, task, start..until)?;
    has_changed |= match later {
        Some(later) => shared_counts::delete_earlier(change, task, start, later.epoch)?,
        None => shared_counts::delete(change, task, start..i64::MAX)?,
    };
    let [first, _] = progress::progress(change, task)?.delivered;
    if first.spool == Some(spool) {
        let last = later.map_or(i64::MAX.cast_unsigned(), |it| it.behind);
        has_changed |= shared_counts::subtract_tail(change, task, (behind, last), start)?;
    }
    Ok(has_changed)
}

/// An epoch in which a task returned here.
#[derive(Clone, Copy)]
struct LaterEpoch {
    epoch: u64,
    /// Its results begin here.
    start: i64,
    /// Its batches follow this one.
    behind: u64,
}

/// The first epoch here after this one.
fn later_epoch(
    change: &Transaction<'_>,
    task: u64,
    epoch: u64,
) -> rusqlite::Result<Option<LaterEpoch>> {
    let query = "SELECT epoch, start, behind FROM epoch
                 WHERE task = ?1 AND epoch > ?2 AND start IS NOT NULL ORDER BY epoch LIMIT 1";
    let values = params![task.cast_signed(), epoch.cast_signed()];
    let read = |row: &rusqlite::Row<'_>| {
        Ok(LaterEpoch { epoch: unsigned(row, 0)?, start: row.get(1)?, behind: unsigned(row, 2)? })
    };
    change.query_row(query, values, read).optional()
}

/// Deletes windows that begin in a time range, also from minutes and hours. Returns whether there were any.
fn delete_windows(
    change: &Transaction<'_>,
    task: u64,
    range: Range<i64>,
) -> rusqlite::Result<bool> {
    let number = task.cast_signed();
    let values = params![number, range.start, range.end];
    let its = "task = ?1 AND step = 0 AND begin >= ?2 AND begin < ?3";
    let query = format!("SELECT min(begin), max(begin) FROM window WHERE {its}");
    let windows: (Option<i64>, Option<i64>) =
        change.query_row(&query, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for table in WINDOW_TABLES {
        change.execute(&format!("DELETE FROM {table} WHERE {its}"), values)?;
    }
    let (Some(first), Some(last)) = windows else { return Ok(false) };
    let [first, last] = [first, last].map(Time::<Utc>::from_nanos);
    let [minute, hour] = [Step::Minute, Step::Hour].map(|step| {
        (first.interval_begin(step.length()), last.interval_begin(step.length()) + step.length())
    });
    for (step, (from, until)) in [(Step::Minute, minute), (Step::Hour, hour)] {
        for table in WINDOW_TABLES {
            let query = format!(
                "DELETE FROM {table} WHERE task = ?1 AND step = ?2 AND begin >= ?3 AND begin < ?4"
            );
            let values = params![number, step.seconds(), from.as_nanos(), until.as_nanos()];
            change.execute(&query, values)?;
        }
    }
    windows::merge(change, task, first, hour.1)?;
    hours::archive_again(change, task, first)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;

    use super::*;
    use crate::collector::{Counted, PointResults, ResultRange, Results, Settled, Sum};
    use crate::protocol::Count;

    const SECOND: i64 = 1_000_000_000;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    /// A batch with the time from 700 ms after a second to 700 ms after the next one: a packet for each 100 ms.
    fn batch(number: u64) -> Settled {
        let second = 1000 * i64::try_from(number).unwrap();
        let count = |begin, packets| Count {
            begin: at(begin),
            packets,
            bytes: 100 * packets,
            missed: 0,
            watched: Span::from_millis(100 * i64::try_from(packets).unwrap()),
        };
        let counts = vec![count(second, 3), count(second + 1000, 7)];
        let point_results = PointResults { counts, flows: Vec::new() };
        let until = at(second + 1700);
        Settled { point_results, acknowledged: [number, 0], ..Settled::nothing(until) }
    }

    fn rows(results: &Results, step: Step) -> Vec<Counted> {
        let range = ResultRange { step, from: i64::MIN, until: i64::MAX, most: 1000 };
        results.counted(1, &range).unwrap()
    }

    fn sum_of(rows: &[Counted]) -> u64 {
        rows.iter().map(|it| it.packets).sum()
    }

    #[test]
    fn count_of_a_batch_without_receipt_is_at_one_collector() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| Results::open(&folder.path().join(name)).unwrap();
        let (mut one, mut other, mut all) = (open("one"), open("other"), open("all"));
        one.begin_spool(1, Point::A, 71, 0).unwrap();
        all.begin_spool(1, Point::A, 71, 0).unwrap();
        for number in 55..=66 {
            all.store(1, &batch(number)).unwrap();
        }
        // The receipts of the last two batches are lost.
        for number in 55..=62 {
            one.store(1, &batch(number)).unwrap();
        }
        let point = PointBegin { point: Point::A, spool: 71, behind: 60, is_unknown: false };
        let begin = EpochBegin { epoch: 1, start: Some(at(61_700)), points: vec![point] };
        other.begin_epoch(1, &begin).unwrap();
        for number in 61..=66 {
            other.store(1, &batch(number)).unwrap();
        }
        let [Begun { start: Some(start), spool, behind, epoch, .. }] = other.begun().unwrap()[..]
        else {
            panic!("nothing has begun");
        };
        assert_eq!((start, epoch), (61_700_000_000, 1));
        let handover = Handover { epoch: 0, start, spool, behind };
        assert!(one.hand_over(1, &handover).unwrap());
        assert!(!one.hand_over(1, &handover).unwrap());
        for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
            let whole = rows(&all, step);
            let parts = [rows(&one, step), rows(&other, step)].concat();
            for row in &whole {
                let its: Vec<_> =
                    parts.iter().filter(|it| it.begin_ns == row.begin_ns).cloned().collect();
                assert_eq!(sum_of(&its), row.packets, "{row:?} {its:?}");
            }
            assert_eq!(sum_of(&parts), sum_of(&whole));
        }
        let sums = [&one, &other].map(|it| it.sum(1).unwrap().packets);
        assert_eq!(sums.iter().sum::<u64>(), all.sum(1).unwrap().packets);
        assert!(one.progress(1).unwrap().settled_until > Time::from_nanos(61 * SECOND));
    }

    /// Stores batches 55 to 66 in three epochs: at `one`, `other`, `one`. The receipt of 62 and 63 was lost, so both
    /// collectors have these counts until the handover, which arrives after batch `late`.
    fn counts_of_a_task_that_returns(interval: Span, late: u64) {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| Results::open(&folder.path().join(name)).unwrap();
        let (mut one, mut other, mut all) = (open("one"), open("other"), open("all"));
        let batch = |number| {
            let mut settled = batch(number);
            for count in &mut settled.point_results.counts {
                count.begin = count.begin.interval_begin(interval);
            }
            settled
        };
        one.begin_spool(1, Point::A, 71, 0).unwrap();
        all.begin_spool(1, Point::A, 71, 0).unwrap();
        (55..=66).for_each(|number| all.store(1, &batch(number)).unwrap());

        let begin = |epoch, behind| {
            let point = PointBegin { point: Point::A, spool: 71, behind, is_unknown: false };
            let start = Some(at(1000 * i64::try_from(behind).unwrap() + 1700));
            EpochBegin { epoch, start, points: vec![point] }
        };
        (55..=63).for_each(|number| one.store(1, &batch(number)).unwrap());
        other.begin_epoch(1, &begin(1, 61)).unwrap();
        (62..=64).for_each(|number| other.store(1, &batch(number)).unwrap());
        one.begin_epoch(1, &begin(2, 63)).unwrap();
        let handover = |epoch, begin: &EpochBegin| {
            let (start, behind) = (begin.start.unwrap().as_nanos(), begin.points[0].behind);
            Handover { epoch, start, spool: 71, behind }
        };
        for number in 64..=66 {
            one.store(1, &batch(number)).unwrap();
            if number >= late {
                one.hand_over(1, &handover(0, &begin(1, 61))).unwrap();
            }
        }
        other.hand_over(1, &handover(1, &begin(2, 63))).unwrap();
        for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
            for row in rows(&all, step) {
                let both = [rows(&one, step), rows(&other, step)].concat();
                let its: Vec<_> =
                    both.into_iter().filter(|it| it.begin_ns == row.begin_ns).collect();
                assert_eq!(sum_of(&its), row.packets, "{interval:?} {late} {row:?} {its:?}");
            }
        }
    }

    #[test]
    fn late_handover_keeps_the_counts_of_a_later_epoch() {
        for interval in [1, 2, 3, 5, 10, 60] {
            for late in 64..=66 {
                counts_of_a_task_that_returns(Span::from_secs(interval), late);
            }
        }
    }

    #[test]
    fn task_that_returns_begins_at_the_start_of_its_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        results.begin_spool(1, Point::A, 71, 0).unwrap();
        for number in 1..=9 {
            results.store(1, &batch(number)).unwrap();
        }
        let point = PointBegin { point: Point::A, spool: 72, behind: 4, is_unknown: true };
        let begin = EpochBegin { epoch: 2, start: Some(at(6000)), points: vec![point] };
        results.begin_epoch(1, &begin).unwrap();
        let progress = results.progress(1).unwrap();
        assert_eq!((progress.epoch, progress.settled_until), (2, at(6000)));
        assert_eq!(
            (progress.delivered[0].spool, progress.delivered[0].acknowledged),
            (Some(72), 4)
        );
        assert_eq!(sum_of(&rows(&results, Step::AsMeasured)), 3 + 4 * 10);
        assert_ne!(results.sum(1).unwrap(), Sum::default());
    }
}
