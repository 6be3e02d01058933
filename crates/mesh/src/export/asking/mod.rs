//! Results that are new are asked for, of all tasks at the same time: a collector that hangs keeps nobody else's waiting.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tracing::warn;

use crate::collector::{Measured, Step, Stretch};
use crate::controller::{QueryError, Sources};
use crate::task::{Measure, Tasks};

/// Results that are read at once.
const MOST: u32 = 1000;

/// Reports of flows that are read at once, the newest: more than twice as many as a probe follows for a task.
const FLOWS: u32 = 10_000;

/// Probes hear of the end of a task a moment later, and measure until then.
const LATE: SignedDuration = SignedDuration::from_secs(10);

/// What is asked of tasks that measure delay or follow flows.
pub(super) struct Asking {
    sources: Arc<Sources>,
    courses: HashMap<u64, Course>,
    questions: JoinSet<Answer>,
}

/// How far it is with a task.
struct Course {
    /// Results that begin before are known. None: there were some before, and nobody has said how many.
    from: Option<i64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nobody was asked since there was something new.
    Idle,
    /// Somebody was, and has not answered.
    Asked,
    /// There is something new since.
    AskedBefore,
    /// The task was ended, and nothing of it is to come.
    Over,
}

/// What is new of a task.
#[derive(Debug)]
pub(super) enum News {
    Results(Vec<Measured>),
    /// Reports of those flows that had packets since. One whose latest came while it was told until when everything had
    /// come may be new twice, the same.
    Flows(Vec<String>),
}

impl News {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Results(results) => results.is_empty(),
            Self::Flows(reports) => reports.is_empty(),
        }
    }
}

/// What somebody says of a task.
pub(super) struct Answer {
    task: u64,
    found: Result<Found, QueryError>,
}

struct Found {
    news: News,
    /// What begins before is known now.
    next: i64,
    /// Nothing is to come.
    is_over: bool,
}

impl Asking {
    /// Of results behind what there is of these tasks, and of all results of others.
    pub(super) fn behind(tasks: &Tasks, sources: Arc<Sources>) -> Self {
        let course = |number: &u64| (*number, Course { from: None, state: State::Idle });
        let courses = tasks.keys().map(course).collect();
        Self { sources, courses, questions: JoinSet::new() }
    }

    /// Asks for what is new of all that may have something.
    pub(super) fn ask(&mut self, tasks: &Tasks) {
        let is_exported = |it: &Measure| it.is_delay() || follows(it);
        for (number, _) in tasks.iter().filter(|(_, it)| is_exported(&it.task.measure)) {
            let new = || Course { from: Some(i64::MIN), state: State::Idle };
            let course = self.courses.entry(*number).or_insert_with(new);
            match course.state {
                State::Idle => self.ask_of(*number, tasks),
                State::Asked => course.state = State::AskedBefore,
                State::AskedBefore | State::Over => {}
            }
        }
    }

    /// The next answer, of whatever task; none, if nobody is asked.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        loop {
            if let Ok(answer) = self.questions.join_next().await? {
                return Some(answer);
            }
        }
    }

    /// Takes note of an answer, and asks for more where there may be more. Says what is new, and of which task; nothing, of
    /// one that is not known.
    pub(super) fn take(
        &mut self,
        Answer { task, found }: Answer,
        tasks: &Tasks,
    ) -> Result<Option<(u64, News)>, QueryError> {
        let Some(course) = self.courses.get_mut(&task) else { return Ok(None) };
        let was = std::mem::replace(&mut course.state, State::Idle);
        // Who does not answer is asked again when there is something new.
        let Found { news, next, is_over } = found?;
        course.from = Some(next);
        if is_over {
            course.state = State::Over;
        } else if was == State::AskedBefore || !news.is_nothing() {
            self.ask_of(task, tasks);
        }
        Ok(Some((task, news)))
    }

    fn ask_of(&mut self, task: u64, tasks: &Tasks) {
        let Some(course) = self.courses.get_mut(&task) else { return };
        course.state = State::Asked;
        let (sources, from) = (Arc::clone(&self.sources), course.from);
        let ended = tasks.get(&task).and_then(|it| it.ended);
        let follows = tasks.get(&task).is_some_and(|it| follows(&it.task.measure));
        self.questions.spawn(async move {
            let found = find(&sources, task, follows, from, ended).await;
            Answer { task, found }
        });
    }
}

fn follows(measure: &Measure) -> bool {
    matches!(measure, Measure::Flows { .. })
}

/// What is new of a task from a time on, or behind what there is.
async fn find(
    sources: &Sources,
    task: u64,
    follows: bool,
    from: Option<i64>,
    ended: Option<Timestamp>,
) -> Result<Found, QueryError> {
    let is_asked = follows || from.is_none() || ended.is_some();
    // Before results are: what is settled between would seem to be known.
    let settled = if is_asked { sources.settled_until(task).await?.as_nanos() } else { i64::MIN };
    let from = from.unwrap_or(settled);
    let behind = |most| Stretch { step: Step::AsMeasured, from, until: i64::MAX, most };
    let (news, next) = if follows {
        let is_news = settled > from;
        let reports = if is_news { sources.flows(task, &behind(FLOWS)).await? } else { Vec::new() };
        if reports.len() == FLOWS as usize {
            warn!("task {task}: of its flows only the newest {FLOWS} are exported; there are more");
        }
        (News::Flows(reports), settled.max(from))
    } else {
        let results = sources.measured(task, &behind(MOST)).await?;
        let next = results.last().map_or(from, |last| last.begin_ns.saturating_add(1));
        (News::Results(results), next)
    };
    let is_behind = |it: Timestamp| it.as_nanosecond() + LATE.as_nanos() <= settled.into();
    let is_over = news.is_nothing() && ended.is_some_and(is_behind);
    Ok(Found { news, next, is_over })
}

#[cfg(test)]
mod tests;
