//! Moves of tasks between collectors: where the results of each begin and end.
//!
//! A collector to which a task moved computes all results from a start on, from batches that the probes still have. The
//! former collector may have stored some of these results, too, if its last receipts were lost. It deletes them when it
//! learns the start. So each result is stored at one collector.

use rusqlite::{Connection, Transaction, params};
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::{Step, tables, windows};
use crate::database::unsigned;
use crate::protocol::Count;

/// Batches of a counting task of which the parts in earlier intervals are kept. More than a probe delivers through Kafka
/// without a receipt (`probe/kafka/outbox.rs`); on a connection it reads its receipts at once.
const TAIL: u64 = 256;

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
    let before = tables::progress(change, task)?;
    if let Some(start) = start {
        delete(change, task, start.as_nanos()..i64::MAX)?;
    }
    let number = task.cast_signed();
    let first = points.iter().find(|it| it.point == Point::A);
    match (start, first) {
        // The batches that follow are delivered again. The handover of the earlier epoch here states which of those
        // before them count here; it may arrive later.
        (Some(start), Some(first)) if before.delivered[0].spool == Some(first.spool) => {
            let again = (first.behind, i64::MAX.cast_unsigned());
            subtract_tail(change, task, again, start.as_nanos())?;
        }
        _ => drop(change.execute("DELETE FROM count_tail WHERE task = ?", [number])?),
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
        let place = tables::number(*point);
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

/// Keeps the parts of a batch in intervals that began before it.
pub(super) fn keep_tail<'a>(
    change: &Transaction<'_>,
    task: u64,
    number: u64,
    counts: impl Iterator<Item = &'a Count>,
) -> rusqlite::Result<()> {
    let query = "INSERT INTO count_tail VALUES (?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET packets = packets + excluded.packets,
                     bytes = bytes + excluded.bytes, missed = missed + excluded.missed,
                     watched = watched + excluded.watched";
    let (task, mut is_any) = (task.cast_signed(), false);
    for Count { begin, packets, bytes, missed, watched } in counts {
        let (begin, watched) = (begin.as_nanos(), watched.as_nanos());
        let [packets, bytes, missed] = [*packets, *bytes, *missed].map(u64::cast_signed);
        let values = params![task, number.cast_signed(), begin, packets, bytes, missed, watched];
        change.prepare_cached(query)?.execute(values)?;
        is_any = true;
    }
    if is_any {
        // Those of an earlier epoch here stay until its handover.
        let query = "DELETE FROM count_tail WHERE task = ?1 AND number < ?2 AND number >
                         ifnull((SELECT max(behind) FROM epoch WHERE task = ?1), 0)";
        let oldest = number.saturating_sub(TAIL).cast_signed();
        change.prepare_cached(query)?.execute(params![task, oldest])?;
    }
    Ok(())
}

pub(super) fn hand_over(
    change: &Transaction<'_>,
    task: u64,
    handover: &Handover,
) -> rusqlite::Result<bool> {
    let Handover { epoch, start, spool, behind } = *handover;
    let number = task.cast_signed();
    // The results of later epochs here stay.
    let query = "SELECT ifnull(min(start), ?3) FROM epoch WHERE task = ?1 AND epoch > ?2";
    let until = change.query_row(query, params![number, epoch.cast_signed(), i64::MAX], |row| {
        row.get::<_, i64>(0)
    })?;
    let mut has_changed = delete(change, task, start..until)?;
    let progress = tables::progress(change, task)?;
    let [first, _] = progress.delivered;
    if first.spool == Some(spool) {
        // The batches of later epochs here follow.
        let query = "SELECT ifnull(min(behind), ?3) FROM epoch WHERE task = ?1 AND epoch > ?2";
        let last =
            change.query_row(query, params![number, epoch.cast_signed(), i64::MAX], |row| {
                unsigned(row, 0)
            })?;
        has_changed |= subtract_tail(change, task, (behind, last), start)?;
    }
    Ok(has_changed)
}

/// Subtracts the parts of batches in intervals that began before a time: those above the first number, up to the last
/// one. Returns whether there were any.
fn subtract_tail(
    change: &Transaction<'_>,
    task: u64,
    (above, last): (u64, u64),
    start: i64,
) -> rusqlite::Result<bool> {
    let tail = "count_tail WHERE task = ?1 AND number > ?2 AND number <= ?3";
    let values = params![task.cast_signed(), above.cast_signed(), last.cast_signed()];
    let parts = parts(change, &format!("{tail} AND begin < {start}"), values)?;
    for part in &parts {
        subtract(change, task, Step::AsMeasured, part)?;
    }
    change.execute(&format!("DELETE FROM {tail}"), values)?;
    Ok(!parts.is_empty())
}

/// Begin, packets, bytes, missed packets, observed time.
type Part = [i64; 5];

/// Counts that a query selects.
fn parts(
    change: &Transaction<'_>,
    from: &str,
    values: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Part>> {
    let query = format!("SELECT begin, packets, bytes, missed, watched FROM {from}");
    let mut statement = change.prepare(&query)?;
    let rows = statement.query_map(values, |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
    })?;
    rows.collect()
}

/// Subtracts counts from the intervals of this step and of longer ones.
fn subtract(
    change: &Transaction<'_>,
    task: u64,
    from: Step,
    [begin, packets, bytes, missed, watched]: &Part,
) -> rusqlite::Result<()> {
    let query = "UPDATE count SET packets = max(packets - ?4, 0), bytes = max(bytes - ?5, 0),
                     missed = max(missed - ?6, 0), watched = max(watched - ?7, 0)
                 WHERE task = ?1 AND step = ?2 AND begin = ?3";
    let mut statement = change.prepare_cached(query)?;
    let steps = [Step::AsMeasured, Step::Minute, Step::Hour].into_iter();
    for step in steps.filter(|step| step.seconds() >= from.seconds()) {
        let begin = Time::<Utc>::from_nanos(*begin).interval_begin(step.length()).as_nanos();
        let (task, step) = (task.cast_signed(), step.seconds());
        statement.execute(params![task, step, begin, packets, bytes, missed, watched])?;
    }
    Ok(())
}

/// Deletes results that begin in a time range, also from minutes and hours. Returns whether there were any.
fn delete(
    change: &Transaction<'_>,
    task: u64,
    range: std::ops::Range<i64>,
) -> rusqlite::Result<bool> {
    let number = task.cast_signed();
    let values = params![number, range.start, range.end];
    let its = "task = ?1 AND step = 0 AND begin >= ?2 AND begin < ?3";
    let counts = parts(change, &format!("count WHERE {its}"), values)?;
    for part in &counts {
        subtract(change, task, Step::Minute, part)?;
    }
    let query = format!("SELECT min(begin), max(begin) FROM window WHERE {its}");
    let windows: (Option<i64>, Option<i64>) =
        change.query_row(&query, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for table in ["window", "histogram", "return_path", "count"] {
        change.execute(&format!("DELETE FROM {table} WHERE {its}"), values)?;
    }
    // Intervals that were all deleted.
    let empty = "DELETE FROM count WHERE task = ?1 AND step > 0 AND begin >= ?2 AND begin < ?3 AND packets = 0
                 AND bytes = 0 AND missed = 0 AND watched = 0";
    change.execute(empty, values)?;
    let (Some(first), Some(last)) = windows else { return Ok(!counts.is_empty()) };
    let [first, last] = [first, last].map(Time::<Utc>::from_nanos);
    let [minute, hour] = [Step::Minute, Step::Hour].map(|step| {
        (first.interval_begin(step.length()), last.interval_begin(step.length()) + step.length())
    });
    for (step, (from, until)) in [(Step::Minute, minute), (Step::Hour, hour)] {
        for table in ["window", "histogram", "return_path"] {
            let query = format!(
                "DELETE FROM {table} WHERE task = ?1 AND step = ?2 AND begin >= ?3 AND begin < ?4"
            );
            let values = params![number, step.seconds(), from.as_nanos(), until.as_nanos()];
            change.execute(&query, values)?;
        }
    }
    windows::merge(change, task, first, hour.1)?;
    // The file of the hour is written again.
    let query = "UPDATE task SET archived_until = min(archived_until, ?2) WHERE number = ?1";
    change.execute(query, params![number, hour.0.as_nanos()])?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;

    use super::*;
    use crate::collector::{Counted, PointResults, ResultRange, Results, Settled, Sum};

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
