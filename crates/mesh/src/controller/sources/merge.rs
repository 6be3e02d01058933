//! Results of tasks that moved, merged from all their collectors.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use wirestamp_clock::{Time, Utc};

use super::parts::{PartAnswers, PartFailures, PartPlace, starts};
use super::windows::WindowRow;
use super::{MissingPart, QueryError, Sources};
use crate::Name;
use crate::collector::{
    Brief, Counted, Flow, Histograms, Measured, Recent, ResultRange, Step, StoredRow, Sum,
};
use crate::v1::question::What;
use crate::v1::{self, Newest, SettledUntil};

/// Max reports of flows that are read to find out which flows continued at another collector.
const MAX_FLOWS: u32 = 100_000;

/// The newest results of tasks, by number.
pub(super) type RecentRows = Vec<(u64, Recent)>;

/// The part of a time range before the end of a collector's results.
fn before_end(range: &ResultRange, place: &PartPlace) -> ResultRange {
    ResultRange { until: range.until.min(place.end()), ..*range }
}

/// Rows of several collectors in one map. If a collector has returned as many as requested, it may have further rows:
/// those after its last one are left out. Returns where reading has to continue, if there may be more.
fn in_order<T, R>(
    answers: PartAnswers<'_, T>,
    most: u32,
    begin: impl Fn(&T) -> i64,
    mut add: impl FnMut(&PartPlace, T) -> R,
) -> Option<i64> {
    let is_full = |rows: &[T]| u32::try_from(rows.len()).is_ok_and(|count| count >= most);
    let last = |(_, rows): &(&PartPlace, Vec<T>)| rows.last().filter(|_| is_full(rows)).map(&begin);
    let end = answers.iter().filter_map(last).min();
    for (place, rows) in answers {
        for row in rows {
            if end.is_none_or(|end| begin(&row) <= end) {
                add(place, row);
            }
        }
    }
    end.map(|end| end.saturating_add(1))
}

/// Begin of the interval that contains a time, in nanoseconds since 1970 (UTC).
fn interval(time: i64, step: Step) -> i64 {
    Time::<Utc>::from_nanos(time).interval_begin(step.length()).as_nanos()
}

impl Sources {
    pub(super) async fn merged_windows<T: WindowRow>(
        &self,
        task: u64,
        places: &[PartPlace],
        range: &ResultRange,
    ) -> Result<(Vec<T>, Vec<MissingPart>), QueryError> {
        let (mut all, mut from) = (BTreeMap::new(), range.from);
        let mut missing;
        let most = range.most as usize;
        // The windows that two collectors share.
        let mut shared = BTreeSet::new();
        if range.step != Step::AsMeasured {
            let begins = starts(places).map(|it| interval(it, range.step));
            shared.extend(begins.filter(|it| (range.from..range.until).contains(it)));
        }
        loop {
            let rest = ResultRange { from, ..*range };
            let what = |place: &PartPlace| T::query((&before_end(&rest, place)).into());
            let (answers, away) = self.ask_parts::<T>(task, places, what).await?;
            missing = away;
            let next = in_order(answers, range.most, T::begin, |place, row| {
                let begin = row.begin();
                if range.step != Step::AsMeasured {
                    if all.insert(begin, row).is_some() {
                        shared.insert(begin);
                    }
                } else if place.has(begin) {
                    all.entry(begin).or_insert(row);
                }
            });
            match next {
                Some(next) if all.len() < most => from = next,
                next => {
                    if let Some(next) = next {
                        shared.retain(|begin| *begin < next);
                    }
                    break;
                }
            }
        }
        let settled_until =
            if shared.is_empty() { i64::MIN } else { self.settled_parts(task, places).await?.0 };
        for begin in shared {
            // As at a single collector, a minute or an hour exists after its end.
            let is_complete = begin.saturating_add(range.step.length().as_nanos()) <= settled_until;
            let row = if is_complete || all.contains_key(&begin) {
                self.shared_window(task, places, range.step, begin).await?
            } else {
                None
            };
            match row {
                Some(row) => drop(all.insert(begin, row)),
                None => drop(all.remove(&begin)),
            }
        }
        Ok((all.into_values().take(most).collect(), missing))
    }

    /// A minute or an hour of which two collectors have parts.
    async fn shared_window<T: WindowRow>(
        &self,
        task: u64,
        places: &[PartPlace],
        step: Step,
        begin: i64,
    ) -> Result<Option<T>, QueryError> {
        let until = begin.saturating_add(step.length().as_nanos());
        let what = |place: &PartPlace| {
            What::Stored(v1::StoredRows { from: begin, until: until.min(place.end()) })
        };
        let (answers, _) = self.ask_parts::<StoredRow>(task, places, what).await?;
        let rows: Vec<_> = answers.into_iter().map(|(_, rows)| rows).collect();
        let measure = self.tasks.borrow().get(&task).map(|it| it.task.measure.clone());
        Ok(T::merged(step, begin, &rows, measure.as_ref())?)
    }

    pub(super) async fn merged_counts(
        &self,
        task: u64,
        places: &[PartPlace],
        range: &ResultRange,
    ) -> Result<(Vec<Counted>, Vec<MissingPart>), QueryError> {
        let what = |place: &PartPlace| What::Counted((&before_end(range, place)).into());
        let (answers, missing) = self.ask_parts::<Counted>(task, places, what).await?;
        let mut all = BTreeMap::<i64, Counted>::new();
        in_order(answers, range.most, |it| it.begin_ns, |_, row| add_count(&mut all, row));
        Ok((all.into_values().take(range.most as usize).collect(), missing))
    }

    pub(super) async fn merged_flows(
        &self,
        task: u64,
        places: &[PartPlace],
        range: &ResultRange,
    ) -> Result<(Vec<String>, Vec<MissingPart>), QueryError> {
        // A flow whose last packet passed later is not in the range, even if a former collector has an earlier report.
        let later = ResultRange {
            until: i64::MAX,
            most: if range.until == i64::MAX { range.most } else { MAX_FLOWS },
            ..*range
        };
        let (mut all, mut missing, mut known) = (Vec::new(), Vec::new(), HashSet::new());
        // The newest collector first.
        let mut newest: Vec<_> = places.iter().collect();
        newest.sort_by_key(|it| it.ranges.last().map(|it| std::cmp::Reverse(it.end)));
        let (mut first, mut is_any) = (None, false);
        for place in newest {
            let rows = match self.rows_at(place, task, What::Flows((&later).into())).await {
                Ok(rows) => rows,
                Err(why @ QueryError::TooMuch(_)) => return Err(why),
                Err(why) => {
                    missing.push(place.missing());
                    first.get_or_insert(why);
                    continue;
                }
            };
            is_any = true;
            let flows = rows.into_iter().filter_map(|row| Flow::read(row).ok());
            for Flow { key, last, report } in flows {
                if known.insert(key)
                    && let Some(report) = report.filter(|_| last.as_nanos() < range.until)
                {
                    all.push((last, report));
                }
            }
        }
        if let Some(why) = first.filter(|_| !is_any) {
            return Err(why);
        }
        all.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
        let reports = all.into_iter().take(range.most as usize).map(|(_, report)| report);
        Ok((reports.collect(), missing))
    }

    pub(super) async fn merged_histograms(
        &self,
        task: u64,
        places: &[PartPlace],
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        let what = |place: &PartPlace| {
            let until = range.end.min(place.end());
            What::Histograms(v1::Histograms { from: range.start, until })
        };
        let (answers, missing) = self.ask_parts::<Histograms>(task, places, what).await?;
        let mut all = Histograms::default();
        answers.iter().flat_map(|(_, rows)| rows).for_each(|it| all.add(it));
        Ok((all, missing))
    }

    /// A former collector that is away counts with its last known sum.
    ///
    /// # Errors
    /// If the sum of a collector is not known: a smaller sum would be wrong.
    pub(super) async fn merged_sum(
        &self,
        task: u64,
        places: &[PartPlace],
    ) -> Result<Sum, QueryError> {
        let mut all = Sum::default();
        for place in places {
            let rows = self.rows_at(place, task, What::Sum(v1::Sum {})).await;
            let key = (task, place.collector.clone());
            let read = |rows: Vec<String>| serde_json::from_str::<Sum>(rows.first()?).ok();
            let sum = match rows {
                Ok(rows) => read(rows).unwrap_or_default(),
                Err(why) => self.sums.lock().get(&key).copied().ok_or(why)?,
            };
            self.sums.lock().insert(key, sum);
            all.packets = all.packets.saturating_add(sum.packets);
            all.bytes = all.bytes.saturating_add(sum.bytes);
            all.missed = all.missed.saturating_add(sum.missed);
            all.watched_ns = all.watched_ns.saturating_add(sum.watched_ns);
        }
        Ok(all)
    }

    /// A flow that continued at another collector counts where it began.
    ///
    /// # Errors
    /// If a collector does not answer: a smaller number would be wrong.
    pub(super) async fn merged_flow_count(
        &self,
        task: u64,
        places: &[PartPlace],
    ) -> Result<u64, QueryError> {
        let mut all = 0_u64;
        for place in places {
            for Range { start, end } in place.ranges.iter().cloned() {
                let count = v1::FlowCount { first_from: Some(start), first_until: Some(end) };
                let rows = self.rows_at(place, task, What::FlowCount(count)).await?;
                let count = rows.first().and_then(|row| row.parse().ok()).unwrap_or(0);
                all = all.saturating_add(count);
            }
        }
        Ok(all)
    }

    /// The newest window of all collectors.
    ///
    /// # Errors
    /// If the current collector does not answer, or no result is found and a former one does not answer: an earlier
    /// result would be wrong.
    pub(super) async fn merged_newest(
        &self,
        task: u64,
        places: &[PartPlace],
    ) -> Result<Option<Measured>, QueryError> {
        let what = |_: &PartPlace| What::Newest(Newest {});
        let (answers, failures) = self.try_parts::<Measured>(task, places, what).await?;
        let all = answers
            .into_iter()
            .flat_map(|(place, rows)| rows.into_iter().filter(|row| place.has(row.begin_ns)));
        let newest = all.max_by_key(|it| it.begin_ns);
        let mut failures = failures.into_iter();
        match failures.find(|(place, _)| place.is_current || newest.is_none()) {
            Some((_, why)) => Err(why),
            None => Ok(newest),
        }
    }

    /// Time up to which the results are final.
    ///
    /// # Errors
    /// If the current collector does not answer: an earlier time would be wrong.
    pub(super) async fn merged_settled_until(
        &self,
        task: u64,
        places: &[PartPlace],
    ) -> Result<Time<Utc>, QueryError> {
        let (settled_until, failures) = self.settled_parts(task, places).await?;
        match failures.into_iter().find(|(place, _)| place.is_current) {
            Some((_, why)) => Err(why),
            None => Ok(Time::from_nanos(settled_until)),
        }
    }

    /// Time up to which the results are final at the collectors that answer, in nanoseconds since 1970 (UTC).
    async fn settled_parts<'a>(
        &self,
        task: u64,
        places: &'a [PartPlace],
    ) -> Result<(i64, PartFailures<'a>), QueryError> {
        let what = |_: &PartPlace| What::SettledUntil(SettledUntil {});
        let (answers, failures) = self.try_parts::<i64>(task, places, what).await?;
        let newest = answers.into_iter().flat_map(|(_, rows)| rows).max();
        Ok((newest.unwrap_or(i64::MIN), failures))
    }

    /// The newest results of all tasks, of these collectors; at most `most` of each task.
    pub(super) fn merged_recent(
        &self,
        answers: Vec<(Option<Name>, RecentRows)>,
        most: u32,
    ) -> BTreeMap<u64, Recent> {
        let mut all = BTreeMap::new();
        for (collector, recent) in answers {
            for (task, recent) in recent {
                let home = || self.placement.of(task).map(|(name, _)| name);
                let Some(places) = self.places(task) else {
                    // Only tasks that are placed at it.
                    if home() == collector {
                        all.insert(task, recent);
                    }
                    continue;
                };
                let Some(place) = places.iter().find(|it| it.collector == collector) else {
                    continue;
                };
                let together = all.remove(&task);
                all.insert(task, together_with(together, recent, place, most as usize));
            }
        }
        all
    }
}

/// Adds a count to that of another collector in the same interval.
fn add_count(all: &mut BTreeMap<i64, Counted>, row: Counted) {
    let Some(known) = all.get_mut(&row.begin_ns) else {
        all.insert(row.begin_ns, row);
        return;
    };
    known.packets = known.packets.saturating_add(row.packets);
    known.bytes = known.bytes.saturating_add(row.bytes);
    known.missed = known.missed.saturating_add(row.missed);
    known.watched_ns = known.watched_ns.saturating_add(row.watched_ns);
}

/// The newest results of two collectors.
fn together_with(known: Option<Recent>, more: Recent, place: &PartPlace, most: usize) -> Recent {
    match (known, more) {
        (Some(Recent::Windows(known)), Recent::Windows(more)) => {
            let more = more.into_iter().filter(|it| place.has(it.begin_ns));
            let mut all: BTreeMap<i64, Brief> =
                known.into_iter().map(|it| (it.begin_ns, it)).collect();
            for it in more {
                all.entry(it.begin_ns).or_insert(it);
            }
            let skipped = all.len().saturating_sub(most);
            Recent::Windows(all.into_values().skip(skipped).collect())
        }
        (Some(Recent::Intervals(known)), Recent::Intervals(more)) => {
            let mut all: BTreeMap<i64, Counted> =
                known.into_iter().map(|it| (it.begin_ns, it)).collect();
            let more = more.into_iter().filter(|it| it.begin_ns < place.end());
            more.for_each(|it| add_count(&mut all, it));
            let skipped = all.len().saturating_sub(most);
            Recent::Intervals(all.into_values().skip(skipped).collect())
        }
        (_, Recent::Windows(more)) => {
            Recent::Windows(more.into_iter().filter(|it| place.has(it.begin_ns)).collect())
        }
        (_, Recent::Intervals(more)) => {
            Recent::Intervals(more.into_iter().filter(|it| it.begin_ns < place.end()).collect())
        }
    }
}
