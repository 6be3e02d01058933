//! Polling of new results, for all tasks concurrently, so that a hanging collector does not delay other tasks.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tracing::warn;
use wirestamp_clock::Time;

use crate::collector::{Measured, ResultRange, Step, is_delivered};
use crate::controller::{QueryError, Sources};
use crate::task::{Measure, Tasks, without_shards};

/// Max results per query.
const MAX_RESULTS: u32 = 1000;

/// Max flow reports per query, the newest: more than twice the flows that a probe follows for a task.
const MAX_FLOWS: u32 = 10_000;

/// How long probes may measure after the end of a task.
const END_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// Polls tasks that measure delay or follow flows.
pub(super) struct Poller {
    sources: Arc<Sources>,
    states: HashMap<u64, TaskState>,
    queries: JoinSet<Response>,
}

/// Polling state of a task.
struct TaskState {
    /// Begin of the next results. None: there are earlier results that are not read yet.
    from: Option<i64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// No query is running.
    Idle,
    /// A query is running.
    Running,
    /// A query is running, and there are new results since.
    RunningOutdated,
    /// The task was ended, and all results were read.
    Over,
}

/// New results of a task.
#[derive(Debug)]
pub(super) enum NewResults {
    Results(Vec<Measured>),
    /// Reports of flows with new packets. A flow may be reported twice without changes.
    Flows(Vec<String>),
    /// Reports of the flows that existed when the export started, at this time.
    EarlierFlows(Vec<String>, i64),
}

impl NewResults {
    fn is_empty(&self) -> bool {
        match self {
            Self::Results(results) => results.is_empty(),
            Self::Flows(reports) => reports.is_empty(),
            Self::EarlierFlows(..) => true,
        }
    }
}

/// Response to a query.
pub(super) struct Response {
    task: u64,
    result: Result<QueryResult, QueryError>,
}

struct QueryResult {
    news: NewResults,
    /// Begin of the next results.
    next: i64,
    /// There are no further results.
    is_over: bool,
}

impl Poller {
    /// Polls results that are newer than the existing ones of `tasks`, and all results of other tasks.
    pub(super) fn behind(tasks: &Tasks, sources: Arc<Sources>) -> Self {
        let task_state = |number: &u64| (*number, TaskState { from: None, state: State::Idle });
        let states = tasks.keys().map(task_state).collect();
        Self { sources, states, queries: JoinSet::new() }
    }

    /// Queries all tasks that may have new results.
    pub(super) fn poll(&mut self, tasks: &Tasks) {
        self.states.retain(|number, _| tasks.contains_key(number));
        let is_exported = |it: &Measure| it.is_delay() || follows(it);
        for (number, _) in without_shards(tasks).filter(|(_, it)| is_exported(&it.task.measure)) {
            let new = || TaskState { from: Some(i64::MIN), state: State::Idle };
            let task_state = self.states.entry(*number).or_insert_with(new);
            match task_state.state {
                State::Idle => self.query(*number, tasks),
                State::Running => task_state.state = State::RunningOutdated,
                State::RunningOutdated | State::Over => {}
            }
        }
    }

    /// The next response; none if no query is running.
    pub(super) async fn next_response(&mut self) -> Option<Response> {
        loop {
            if let Ok(next_response) = self.queries.join_next().await? {
                return Some(next_response);
            }
        }
    }

    /// Processes a response, and queries again if there may be more. Returns the new results and their task; none for an
    /// unknown task.
    pub(super) fn take(
        &mut self,
        Response { task, result }: Response,
        tasks: &Tasks,
    ) -> Result<Option<(u64, NewResults)>, QueryError> {
        let Some(task_state) = self.states.get_mut(&task) else { return Ok(None) };
        let was = std::mem::replace(&mut task_state.state, State::Idle);
        // After an error, the next query follows with the next notification.
        let QueryResult { news, next, is_over } = result?;
        task_state.from = Some(next);
        if is_over {
            task_state.state = State::Over;
        } else if was == State::RunningOutdated || !news.is_empty() {
            self.query(task, tasks);
        }
        Ok(Some((task, news)))
    }

    fn query(&mut self, task: u64, tasks: &Tasks) {
        let Some(task_state) = self.states.get_mut(&task) else { return };
        task_state.state = State::Running;
        let (sources, from) = (Arc::clone(&self.sources), task_state.from);
        let ended = tasks.get(&task).and_then(|it| it.ended);
        let follows = tasks.get(&task).is_some_and(|it| follows(&it.task.measure));
        self.queries.spawn(async move {
            let result = query_new(&sources, task, follows, from, ended).await;
            Response { task, result }
        });
    }
}

fn follows(measure: &Measure) -> bool {
    matches!(measure, Measure::Flows { .. })
}

/// New results of a task from `from` on, or newer than the existing ones.
async fn query_new(
    sources: &Sources,
    task: u64,
    follows: bool,
    from: Option<i64>,
    ended: Option<Timestamp>,
) -> Result<QueryResult, QueryError> {
    let needs_settled = follows || from.is_none() || ended.is_some();
    // Read before the results: otherwise, results settled between the two reads would be skipped.
    let settled =
        if needs_settled { sources.settled_until(task).await?.as_nanos() } else { i64::MIN };
    if follows && from.is_none() {
        let news = NewResults::EarlierFlows(flows(sources, task, i64::MIN).await?, settled);
        return Ok(QueryResult { news, next: settled, is_over: false });
    }
    let from = from.unwrap_or(settled);
    let (news, next) = if follows {
        let reports = if settled > from { flows(sources, task, from).await? } else { Vec::new() };
        (NewResults::Flows(reports), settled.max(from))
    } else {
        let results = sources.measured(task, &since(from, MAX_RESULTS)).await?;
        let next = results.last().map_or(from, |last| last.begin_ns.saturating_add(1));
        (NewResults::Results(results), next)
    };
    let is_over = news.is_empty()
        && ended.is_some_and(|ended| is_over(follows, ended, settled, Timestamp::now()));
    Ok(QueryResult { news, next, is_over })
}

/// Whether a task that ended has no further results, given its settled time in nanoseconds since 1970 (UTC).
fn is_over(follows: bool, ended: Timestamp, settled: i64, now: Timestamp) -> bool {
    if follows {
        // Flows are not settled beyond the last observation.
        let is_stopped = now.duration_since(ended) >= END_DELAY;
        is_stopped && is_delivered(ended, Time::from_nanos(settled), now)
    } else {
        ended.as_nanosecond() + END_DELAY.as_nanos() <= settled.into()
    }
}

/// Reports of flows with packets since `from`.
async fn flows(sources: &Sources, task: u64, from: i64) -> Result<Vec<String>, QueryError> {
    let reports = sources.flows(task, &since(from, MAX_FLOWS)).await?;
    if reports.len() == MAX_FLOWS as usize {
        warn!("task {task}: exporting only the newest {MAX_FLOWS} flows");
    }
    Ok(reports)
}

fn since(from: i64, most: u32) -> ResultRange {
    ResultRange { step: Step::AsMeasured, from, until: i64::MAX, most }
}

#[cfg(test)]
mod tests;
