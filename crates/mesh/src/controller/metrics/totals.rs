//! Counters of tasks that measure delay, since the controller started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time;
use tracing::debug;
use wirestamp_metrics::CompactHistogram;
use wirestamp_results::Families;

use super::delays::Delays;
use super::return_path::{ReturnTotals, show_return_path};
use super::window::{COUNTS, show_window};
use crate::Name;
use crate::collector::{Measured, ResultRange, Step};
use crate::controller::sources::{QueryError, Sources};
use crate::task::{TaskRecord, Tasks, without_shards};

/// Max results per read when several have arrived since the last scrape.
const MAX_READ: u32 = 3600;

/// First and max time between two queries to a collector that is away when the controller starts. It doubles.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Totals of each task since the controller started.
pub(in crate::controller) struct Totals(Mutex<BTreeMap<u64, Arc<AsyncMutex<Total>>>>);

pub(super) struct Total {
    /// Results that begin before this are in the counts, or existed earlier; none if that was not read yet.
    pub(super) next: Option<i64>,
    pub(super) counts: [u64; COUNTS.len()],
    delays: Delays,
    returns: ReturnTotals,
    newest: Option<Measured>,
}

/// Max age of the window that gauges describe. After this time without packets, they are absent.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(1);

impl Totals {
    /// Totals that start after the existing results of these tasks.
    pub(in crate::controller) fn new(tasks: &Tasks) -> Self {
        let unknown = || Total { next: None, ..Total::behind(None) };
        Self(Mutex::new(
            tasks.keys().map(|it| (*it, Arc::new(AsyncMutex::new(unknown())))).collect(),
        ))
    }

    /// Reads which results of these tasks existed when the controller started: the counts begin after them, not at the first
    /// scrape. Waits for collectors that are away.
    pub(in crate::controller) async fn begin(
        &self,
        tasks: &watch::Receiver<Arc<Tasks>>,
        sources: &Arc<Sources>,
    ) {
        let numbers = || shown(&tasks.borrow()).map(|(number, _)| number).collect();
        let (mut unknown, mut pause): (BTreeSet<u64>, _) = (numbers(), RETRY_INTERVAL);
        loop {
            let begun = sources.together(unknown.iter().copied(), |sources, number| {
                let total = self.of(number);
                async move { total.lock().await.begin(number, &sources).await }
            });
            let begun = begun.await;
            let current: BTreeSet<_> = numbers();
            let is_unknown = |number: &u64| !begun.get(number).is_some_and(Result::is_ok);
            unknown.retain(|number| current.contains(number) && is_unknown(number));
            if unknown.is_empty() {
                return;
            }
            time::sleep(pause).await;
            pause = MAX_RETRY_INTERVAL.min(2 * pause);
        }
    }

    /// Adds the new results of all tasks that answer in time.
    pub(super) async fn catch_up(
        &self,
        tasks: &Tasks,
        sources: &Arc<Sources>,
    ) -> Result<(), QueryError> {
        let shown = shown(tasks).map(|(number, _)| number);
        let last = sources.together(shown, |sources, number| {
            let total = self.of(number);
            async move { total.lock().await.catch_up(number, &sources).await }
        });
        last.await.into_values().try_for_each(|it| unless_away(it).map(drop))
    }

    /// Shows the totals. If a collector does not answer, they are the last known ones.
    pub(super) async fn show(&self, tasks: &Tasks, families: &mut Families) {
        let now = Timestamp::now();
        for (number, name) in shown(tasks) {
            let total = self.of(number);
            let total = total.lock().await;
            if total.next.is_some() {
                total.show(name, now, families);
            }
        }
    }

    fn of(&self, task: u64) -> Arc<AsyncMutex<Total>> {
        let mut totals = self.0.lock();
        Arc::clone(
            totals.entry(task).or_insert_with(|| Arc::new(AsyncMutex::new(Total::behind(None)))),
        )
    }
}

/// Tasks whose totals are shown.
fn shown(tasks: &Tasks) -> impl Iterator<Item = (u64, &Name)> {
    let is_shown = |it: &TaskRecord| it.ended.is_none() && it.task.measure.is_delay();
    let shown = without_shards(tasks).filter(move |(_, it)| is_shown(it));
    shown.map(|(number, entered)| (*number, &entered.task.name))
}

impl Total {
    /// Begins after the results that exist, unless it has begun.
    async fn begin(&mut self, task: u64, sources: &Sources) -> Result<(), QueryError> {
        if self.next.is_none() {
            *self = Self::behind(sources.newest(task).await?);
        }
        Ok(())
    }

    /// Adds new results. It may be cancelled at any time and then continues.
    async fn catch_up(&mut self, task: u64, sources: &Sources) -> Result<(), QueryError> {
        self.begin(task, sources).await?;
        loop {
            let (step, from) = (Step::AsMeasured, self.next.unwrap_or(i64::MIN));
            let range = ResultRange { step, from, until: i64::MAX, most: MAX_READ };
            let measured = sources.measured(task, &range).await?;
            let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
                return Ok(());
            };
            let range = first.begin_ns..last.begin_ns.saturating_add(1);
            let delays = sources.histograms(task, range).await?.delay;
            self.add(measured, &delays);
        }
    }

    pub(super) fn behind(newest: Option<Measured>) -> Self {
        let next = newest.as_ref().map_or(i64::MIN, |it| it.begin_ns.saturating_add(1));
        let (counts, delays) = ([0; COUNTS.len()], Delays::default());
        Self { next: Some(next), counts, delays, returns: ReturnTotals::default(), newest }
    }

    /// Adds the next results, in order of time, and the histogram of their delays.
    pub(super) fn add(&mut self, measured: Vec<Measured>, delays: &CompactHistogram) {
        self.delays.add(&measured, delays);
        self.returns.add(&measured);
        for it in &measured {
            for (total, (_, count)) in self.counts.iter_mut().zip(&COUNTS) {
                *total += count(&it.counts);
            }
        }
        let Some(newest) = measured.into_iter().next_back() else { return };
        self.next = Some(newest.begin_ns.saturating_add(1));
        self.newest = Some(newest);
    }

    pub(super) fn show(&self, task: &Name, now: Timestamp, families: &mut Families) {
        let labels = [("task", task.to_string())];
        for (total, (name, _)) in self.counts.iter().zip(&COUNTS) {
            families.add(&format!("wirestamp_task_{name}_packets_total"), &labels, *total);
        }
        self.delays.show(&labels, families);
        self.returns.show(&labels, families);
        let oldest = (now - MAX_AGE).as_nanosecond();
        if let Some(newest) = self.newest.as_ref().filter(|it| i128::from(it.begin_ns) >= oldest) {
            show_window(newest, &labels, families);
            if let Some(path) = &newest.return_path {
                show_return_path(path, &labels, families);
            }
        }
    }
}

/// The result; none if a collector is not reachable, which has its own metric.
pub(super) fn unless_away<T>(last: Result<T, QueryError>) -> Result<Option<T>, QueryError> {
    match last {
        Err(why @ QueryError::Database(_)) => Err(why),
        Err(why) => {
            debug!("cannot show results to Prometheus: {why}");
            Ok(None)
        }
        Ok(last) => Ok(Some(last)),
    }
}
