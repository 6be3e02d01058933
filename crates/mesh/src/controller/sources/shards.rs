//! Results of tasks with several shards, merged from the collectors of all shards.
//!
//! A window is shown once it is final in all shards. If a shard's collector does not answer, a response to people has the
//! packets of the other shards and names the collector; exports wait for it.

use std::collections::BTreeMap;
use std::ops::Range;

use wirestamp_clock::{Span, Time, Utc};

use super::windows::WindowRow;
use super::{MissingPart, QueryError, Sources};
use crate::collector::{
    Brief, Histograms, Measured, Recent, ResultRange, ShardWindow, Step, WINDOW, merge_shards,
    of_task,
};
use crate::task::{self, without_shards};

/// Time before the newest final results in which the newest window is searched.
const NEWEST: Span = Span::from_secs(60);

/// The shards that answer.
struct Answering {
    /// Numbers, in order.
    shards: Vec<u64>,
    /// All their results before this time are final.
    settled_until: Time<Utc>,
    missing: Vec<MissingPart>,
    /// Why the current collector of a shard does not answer; that of the first one.
    why: Option<QueryError>,
}

impl Answering {
    /// A shard does not answer.
    fn remove(&mut self, shard: u64, missing: MissingPart, why: QueryError) {
        self.shards.retain(|it| *it != shard);
        self.add_missing([missing]);
        self.why.get_or_insert(why);
    }

    fn add_missing(&mut self, missing: impl IntoIterator<Item = MissingPart>) {
        for it in missing {
            if !self.missing.contains(&it) {
                self.missing.push(it);
            }
        }
    }

    /// Begins of windows of this length that are final in all shards.
    fn limit(&self, length: Span) -> i64 {
        (self.settled_until - length).as_nanos().saturating_add(1)
    }
}

impl Sources {
    /// Numbers of the shards of a task; none if it has only one.
    pub(super) fn shards(&self, task: u64) -> Option<Range<u64>> {
        let tasks = self.tasks.borrow();
        let entered = tasks.get(&task).filter(|it| it.task.part().is_some())?;
        Some(task::shards(task, entered))
    }

    /// The shards that answer, at least one.
    async fn answering(&self, shards: Range<u64>) -> Result<Answering, QueryError> {
        let settled_until = Time::from_nanos(i64::MAX);
        let (missing, why) = (Vec::new(), None);
        let mut all = Answering { shards: shards.clone().collect(), settled_until, missing, why };
        for shard in shards {
            match self.settled_until_of(shard).await {
                Ok(time) => all.settled_until = all.settled_until.min(time),
                Err(why) => all.remove(shard, self.missing(shard), unless_fatal(why)?),
            }
        }
        if all.shards.is_empty() {
            let none = || QueryError::Own("the task has no shards".to_owned());
            return Err(all.why.unwrap_or_else(none));
        }
        Ok(all)
    }

    /// The current collector of a shard, which does not answer.
    fn missing(&self, shard: u64) -> MissingPart {
        MissingPart::current(self.placement.of(shard).map(|(collector, _)| collector))
    }

    /// Why the current collector of a shard is missing, if former ones answer.
    fn away(&self, shard: u64) -> QueryError {
        let why = "it does not answer".to_owned();
        match self.placement.of(shard) {
            Some((collector, _)) => QueryError::Away { collector, why },
            None => QueryError::Own(why),
        }
    }

    /// Windows of all packets of a task, ordered by time.
    pub(super) async fn windows_of_shards(
        &self,
        task: u64,
        shards: Range<u64>,
        range: &ResultRange,
    ) -> Result<(Vec<Measured>, Vec<MissingPart>), QueryError> {
        let (windows, answering) = self.windows_of_answering(task, shards, range).await?;
        Ok((windows, answering.missing))
    }

    /// Windows with the packets of all shards. Windows of which a former collector has a part and is away are left out.
    ///
    /// # Errors
    /// When the collector of a shard does not answer.
    pub(super) async fn whole_windows(
        &self,
        task: u64,
        shards: Range<u64>,
        range: &ResultRange,
    ) -> Result<Vec<Measured>, QueryError> {
        let (mut windows, answering) = self.windows_of_answering(task, shards, range).await?;
        if let Some(why) = answering.why {
            return Err(why);
        }
        let partial_until = answering.missing.iter().filter_map(MissingPart::until).max();
        windows.retain(|it| partial_until.is_none_or(|until| it.begin_ns >= until));
        Ok(windows)
    }

    async fn windows_of_answering(
        &self,
        task: u64,
        shards: Range<u64>,
        range: &ResultRange,
    ) -> Result<(Vec<Measured>, Answering), QueryError> {
        let mut answering = self.answering(shards).await?;
        let length = if range.step == Step::AsMeasured { WINDOW } else { range.step.length() };
        let range = ResultRange { until: range.until.min(answering.limit(length)), ..*range };
        let (mut all, mut end) = (Vec::new(), i64::MAX);
        for shard in answering.shards.clone() {
            match self.windows::<ShardWindow>(shard, &range).await {
                Ok((rows, missing)) => {
                    if missing.iter().any(|it| it.until().is_none()) {
                        answering.why.get_or_insert_with(|| self.away(shard));
                    }
                    answering.add_missing(missing);
                    // It may have more, of which the other shards may have a part.
                    if rows.len() >= range.most as usize
                        && let Some(last) = rows.last()
                    {
                        end = end.min(last.begin());
                    }
                    all.extend(rows);
                }
                Err(why) => answering.remove(shard, self.missing(shard), unless_fatal(why)?),
            }
        }
        if answering.shards.is_empty()
            && let Some(why) = answering.why.take()
        {
            return Err(why);
        }
        let measure = self.tasks.borrow().get(&task).map(|it| it.task.measure.clone());
        let windows = merge_shards(all.into_iter().filter(|it| it.begin() <= end));
        let windows = windows.map(|it| of_task(it, measure.as_ref()));
        Ok((windows.take(range.most as usize).collect(), answering))
    }

    pub(super) async fn histograms_of_shards(
        &self,
        shards: Range<u64>,
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        let mut answering = self.answering(shards).await?;
        let range = range.start..range.end.min(answering.settled_until.as_nanos());
        let mut all = Histograms::default();
        for shard in answering.shards.clone() {
            match self.histograms_of(shard, range.clone()).await {
                Ok((histograms, missing)) => {
                    answering.add_missing(missing);
                    all.add(&histograms);
                }
                Err(why) => answering.remove(shard, self.missing(shard), unless_fatal(why)?),
            }
        }
        match answering.why {
            Some(why) if answering.shards.is_empty() => Err(why),
            _ => Ok((all, answering.missing)),
        }
    }

    /// Time before which the results of all shards are final.
    ///
    /// # Errors
    /// When the collector of a shard does not answer.
    pub(super) async fn settled_until_of_shards(
        &self,
        shards: Range<u64>,
    ) -> Result<Time<Utc>, QueryError> {
        let Answering { settled_until, why, .. } = self.answering(shards).await?;
        why.map_or(Ok(settled_until), Err)
    }

    /// The newest window with the packets of all shards.
    pub(super) async fn newest_of_shards(
        &self,
        task: u64,
        shards: Range<u64>,
    ) -> Result<Option<Measured>, QueryError> {
        let settled_until = self.settled_until_of_shards(shards.clone()).await?;
        let (step, until) = (Step::AsMeasured, settled_until.as_nanos());
        let range =
            ResultRange { step, from: (settled_until - NEWEST).as_nanos(), until, most: u32::MAX };
        let windows = self.whole_windows(task, shards.clone(), &range).await?;
        if let Some(newest) = windows.into_iter().next_back() {
            return Ok(Some(newest));
        }
        // No packets for longer. What other shards have after this time is not final in all of them.
        let mut begin = None;
        for shard in shards.clone() {
            let newest = self.newest_of(shard).await?.map(|it| it.begin_ns);
            begin = begin.max(newest.filter(|it| *it < until));
        }
        let Some(from) = begin else { return Ok(None) };
        let range = ResultRange { step, from, until: from.saturating_add(1), most: 1 };
        Ok(self.whole_windows(task, shards, &range).await?.pop())
    }

    /// Replaces the newest results of shards by those of their tasks. Tasks with a shard that is not known are left out.
    pub(super) async fn join_shards(
        &self,
        recent: &mut BTreeMap<u64, Recent>,
        from: Time<Utc>,
        most: u32,
        away: &mut Vec<QueryError>,
    ) {
        let tasks = self.tasks.borrow().clone();
        recent.retain(|number, _| tasks.get(number).is_none_or(|it| it.task.part().is_none()));
        let current = without_shards(&tasks).filter(|(_, it)| it.ended.is_none());
        for (number, _) in current {
            let Some(shards) = self.shards(*number) else { continue };
            match self.newest_briefs((*number, shards), from, most).await {
                Ok(windows) => drop(recent.insert(*number, Recent::Windows(windows))),
                Err(why) => {
                    if !away.iter().any(|it| it.collector() == why.collector()) {
                        away.push(why);
                    }
                }
            }
        }
    }

    async fn newest_briefs(
        &self,
        (task, shards): (u64, Range<u64>),
        from: Time<Utc>,
        most: u32,
    ) -> Result<Vec<Brief>, QueryError> {
        let settled_until = self.settled_until_of_shards(shards.clone()).await?;
        let longest = Span::from_secs(most.into());
        let from = from.max(settled_until - longest).as_nanos();
        let range = ResultRange { step: Step::AsMeasured, from, until: i64::MAX, most };
        let windows = self.whole_windows(task, shards, &range).await?;
        Ok(windows.iter().map(Brief::from).collect())
    }
}

/// The error, if other shards can be read all the same.
fn unless_fatal(why: QueryError) -> Result<QueryError, QueryError> {
    match why {
        QueryError::TooMuch(_) | QueryError::Database(_) => Err(why),
        QueryError::Away { .. } | QueryError::Own(_) => Ok(why),
    }
}
