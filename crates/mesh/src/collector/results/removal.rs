//! Removal of a task's results.

use rusqlite::{Connection, Transaction, params};

use super::observed;

/// Whether anything is stored of a task.
pub(super) fn is_stored(database: &Connection, task: u64) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM task WHERE number = ?1)
                     OR EXISTS (SELECT 1 FROM point WHERE task = ?1)";
    database.query_row(query, [task.cast_signed()], |row| row.get(0))
}

/// Deletes results of a task, at most `most` rows of each table; its progress at last, so that an interrupted removal
/// can continue. Returns the number of rows deleted: 0 if none is left.
pub(super) fn remove(change: &Transaction<'_>, task: u64, most: u32) -> rusqlite::Result<usize> {
    let mut deleted = 0;
    for table in ["window", "histogram", "return_path", "count"] {
        let query = format!(
            "DELETE FROM {table} WHERE task = ?1 AND (step, begin) IN
             (SELECT step, begin FROM {table} WHERE task = ?1 LIMIT ?2)"
        );
        deleted += change.execute(&query, params![task.cast_signed(), most])?;
    }
    let query = "DELETE FROM flow WHERE rowid IN (SELECT rowid FROM flow WHERE task = ?1 LIMIT ?2)";
    deleted += change.execute(query, params![task.cast_signed(), most])?;
    deleted += observed::remove(change, task, most)?;
    if deleted == 0 {
        for table in ["count_tail", "count_earlier", "epoch", "point"] {
            let query = format!("DELETE FROM {table} WHERE task = ?");
            deleted += change.execute(&query, [task.cast_signed()])?;
        }
        deleted += change.execute("DELETE FROM task WHERE number = ?", [task.cast_signed()])?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wirestamp_clock::{Span, Time};
    use wirestamp_metrics::{Point, Quality};

    use crate::collector::{Flow, PointResults, ResultRange, Results, Settled, Step, Sum, Window};
    use crate::protocol::Count;

    fn at(second: i64) -> Time<wirestamp_clock::Utc> {
        Time::from_nanos(second * 1_000_000_000)
    }

    /// Results of all kinds.
    fn settled() -> Settled {
        let window = || Window {
            quality: Quality::new(),
            offset: Ok(Span::ZERO),
            least: None,
            return_path: Some(crate::collector::ReturnPath::default()),
        };
        let windows: BTreeMap<_, _> = (0..70).map(|second| (at(second), window())).collect();
        let count = |second| Count {
            begin: at(second),
            packets: 1,
            bytes: 100,
            missed: 0,
            watched: Span::ZERO,
        };
        let flow = |second: i64| Flow {
            key: second.to_string(),
            last: at(second),
            report: Some("{}".to_owned()),
        };
        let point_results =
            PointResults { counts: (0..9).map(count).collect(), flows: (0..9).map(flow).collect() };
        Settled { windows, point_results, ..Settled::nothing(at(70)) }
    }

    #[test]
    fn only_the_results_of_the_task_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut results = Results::open(&path).unwrap();
        for task in [7, 8] {
            results.begin_spool(task, Point::A, 71, 0).unwrap();
            results.store(task, &settled()).unwrap();
        }
        assert_eq!(results.remove(7, 5).unwrap(), 25);
        // A removal that was interrupted continues.
        drop(results);
        let mut results = Results::open(&path).unwrap();
        assert!(results.is_stored(7).unwrap());
        while results.remove(7, 50).unwrap() > 0 {}
        assert_eq!([7, 8].map(|task| results.is_stored(task).unwrap()), [false, true]);
        let found = [7, 8].map(|task| {
            let range =
                |step| ResultRange { step, from: i64::MIN, until: i64::MAX, most: u32::MAX };
            let windows = [Step::AsMeasured, Step::Minute]
                .map(|step| results.measured(task, &range(step)).unwrap().len());
            let flows = results.flow_count(task).unwrap();
            (windows, results.sum(task).unwrap().packets, flows)
        });
        assert_eq!(found, [([0, 0], 0, 0), ([70, 1], 9, 9)]);
        assert_eq!(results.sum(7).unwrap(), Sum::default());
        assert_eq!(results.progress(7).unwrap().settled_until, Time::from_nanos(i64::MIN));
    }
}
