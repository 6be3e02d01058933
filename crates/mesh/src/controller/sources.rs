//! Where results are found: at the controller's own collector, or at the one that the task is at home at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wirestamp_clock::{Time, Utc};

use super::answer::Answer;
use super::homes::Homes;
use super::members::Members;
use crate::collector::{Collector, Counted, Heard, Histograms, Measured, Recent, Stretch, Sum};
use crate::pki::{Credentials, Role};
use crate::transport::{Trust, Unusable, call, reason};
use crate::v1::answers_client::AnswersClient;
use crate::v1::question::What;
use crate::v1::{Newest, Question, SettledUntil};
use crate::{DatabaseError, Name, v1};

/// How long a collector may take for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one is waited for that is asked together with others: Prometheus waits ten seconds for all of them.
const TOGETHER: Duration = Duration::from_secs(5);

/// For so long one that could not be reached is not called again: many ask, for many tasks.
const REST: Duration = Duration::from_secs(5);

/// Why there are no results.
#[derive(Debug, Error)]
pub enum NoAnswer {
    /// They cannot be read here.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// They are elsewhere, and nobody answers there.
    #[error("the collector {collector}, which has the results, does not answer: {why}")]
    Away {
        /// Who has them.
        collector: Name,
        /// What is wrong with it.
        why: String,
    },
    /// They are elsewhere, and more than there is room for.
    #[error("the collector {0} has too much to answer: ask for a shorter time or a coarser step")]
    TooMuch(Name),
}

/// The collectors of a mesh.
pub struct Sources {
    own: Arc<Collector>,
    /// Who reads from it, one at a time: the others would wait with a thread each.
    turn: Mutex<()>,
    homes: Arc<Homes>,
    members: watch::Receiver<Arc<Members>>,
    credentials: watch::Receiver<Credentials>,
    lines: StdMutex<BTreeMap<Name, Line>>,
    /// Told of new results, wherever they are.
    news: watch::Sender<()>,
}

/// Calls to a collector, while it is there and known as it was.
struct Line {
    address: String,
    credentials: Credentials,
    client: AnswersClient<Channel>,
    failure: Arc<StdMutex<Option<Failure>>>,
}

/// Why one could not be reached, and when that was.
struct Failure {
    at: Instant,
    why: String,
}

impl Sources {
    pub(super) fn new(
        own: Arc<Collector>,
        homes: Arc<Homes>,
        members: watch::Receiver<Arc<Members>>,
        credentials: watch::Receiver<Credentials>,
    ) -> Self {
        let (lines, news) = (StdMutex::default(), watch::Sender::default());
        Self { own, turn: Mutex::default(), homes, members, credentials, lines, news }
    }

    /// Tells whenever there are new results.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// A collector says that it has new results.
    pub(super) fn have_news(&self) {
        self.news.send_replace(());
    }

    /// Passes on that the controller's own has.
    pub(super) async fn pass_on(&self) {
        let mut stored = self.own.subscribe();
        // What tells of it is part of this.
        while stored.changed().await.is_ok() {
            self.have_news();
        }
    }

    /// What a task has measured: see [`Collector::measured`].
    ///
    /// # Errors
    /// When the results cannot be read, or are elsewhere and nobody answers there.
    pub async fn measured(&self, task: u64, stretch: &Stretch) -> Result<Vec<Measured>, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.measured(task, stretch)).await,
            Some(line) => line.read(task, What::Measured(stretch.into())).await,
        }
    }

    /// What a task has counted: see [`Collector::counted`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn counted(&self, task: u64, stretch: &Stretch) -> Result<Vec<Counted>, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.counted(task, stretch)).await,
            Some(line) => line.read(task, What::Counted(stretch.into())).await,
        }
    }

    /// What a task has found of flows: see [`Collector::flows`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn flows(&self, task: u64, stretch: &Stretch) -> Result<Vec<String>, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.flows(task, stretch)).await,
            Some(line) => line.ask(task, What::Flows(stretch.into())).await,
        }
    }

    /// How often which delay was: see [`Collector::histograms`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn histograms(&self, task: u64, stretch: Range<i64>) -> Result<Histograms, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.histograms(task, stretch)).await,
            Some(line) => {
                let Range { start: from, end: until } = stretch;
                line.one(task, What::Histograms(v1::Histograms { from, until })).await
            }
        }
    }

    /// The newest results of all tasks: see [`Collector::recent`]. Those of a collector that does not answer are left
    /// out, and why is said.
    ///
    /// # Errors
    /// When the results that are here cannot be read.
    pub async fn recent(
        &self,
        from: Time<Utc>,
        most: u32,
    ) -> Result<(BTreeMap<u64, Recent>, Vec<NoAnswer>), NoAnswer> {
        let mut questions = JoinSet::new();
        let mut away = Vec::new();
        for (collector, address) in self.homes.addresses() {
            let what = What::Recent(v1::Recent { from: from.as_nanos(), most });
            match self.line(collector.clone(), address) {
                Ok(line) => drop(questions.spawn(async move {
                    (collector, line.in_time().read::<(u64, Recent)>(0, what).await)
                })),
                Err(why) => away.push(why),
            }
        }
        let mut all = self.read(|own| own.recent(from, most)).await?;
        for (collector, answer) in questions.join_all().await {
            // Of tasks of its own only.
            let home = |task: u64| self.homes.of(task).map(|(name, _)| name);
            let is_its_own = |(task, _): &(u64, Recent)| home(*task).as_ref() == Some(&collector);
            match answer {
                Ok(recent) => all.extend(recent.into_iter().filter(is_its_own)),
                Err(why) => away.push(why),
            }
        }
        Ok((all, away))
    }

    /// What a task has counted since it was made: see [`Collector::sum`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn sum(&self, task: u64) -> Result<Sum, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.sum(task)).await,
            Some(line) => line.one(task, What::Sum(v1::Sum {})).await,
        }
    }

    /// How many flows of a task are kept: see [`Collector::flow_count`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn flow_count(&self, task: u64) -> Result<u64, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.flow_count(task)).await,
            Some(line) => line.one(task, What::FlowCount(v1::FlowCount {})).await,
        }
    }

    /// What has come from foreign exporters, who report to the controller's own collector only.
    #[must_use]
    pub fn heard(&self) -> &Heard {
        self.own.heard()
    }

    /// What was measured by a task in its newest window.
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn newest(&self, task: u64) -> Result<Option<Measured>, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.newest(task)).await,
            Some(line) => Ok(line.read(task, What::Newest(Newest {})).await?.pop()),
        }
    }

    /// Until when a task is settled: see [`Collector::settled_until`].
    ///
    /// # Errors
    /// As of [`Self::measured`].
    pub async fn settled_until(&self, task: u64) -> Result<Time<Utc>, NoAnswer> {
        match self.elsewhere(task)? {
            None => self.read(|own| own.settled_until(task)).await,
            Some(line) => {
                let what = What::SettledUntil(SettledUntil {});
                let nanos = line.read(task, what).await?.pop().unwrap_or(i64::MIN);
                Ok(Time::from_nanos(nanos))
            }
        }
    }

    /// Asks of tasks, all at the same time. Of those whose collector does not answer in time there is nothing.
    pub(super) async fn together<T, F>(
        self: &Arc<Self>,
        tasks: impl IntoIterator<Item = u64>,
        ask: impl Fn(Arc<Self>, u64) -> F,
    ) -> BTreeMap<u64, T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut questions = JoinSet::new();
        for task in tasks {
            let question = timeout(TOGETHER, ask(Arc::clone(self), task));
            questions.spawn(async move { (task, question.await) });
        }
        let answers = questions.join_all().await.into_iter();
        answers.filter_map(|(task, answer)| Some((task, answer.ok()?))).collect()
    }

    /// Reads what is here.
    async fn read<T>(
        &self,
        read: impl FnOnce(&Collector) -> Result<T, DatabaseError>,
    ) -> Result<T, NoAnswer> {
        let _turn = self.turn.lock().await;
        Ok(block_in_place(|| read(&self.own))?)
    }

    /// Whom to ask of a task that is not at home here.
    fn elsewhere(&self, task: u64) -> Result<Option<Elsewhere>, NoAnswer> {
        let home = self.homes.of(task);
        home.map(|(collector, address)| self.line(collector, address)).transpose()
    }

    /// Whom to ask at a collector.
    fn line(&self, collector: Name, address: String) -> Result<Elsewhere, NoAnswer> {
        if !self.members.borrow().has_collector(&collector) {
            let why = "its certificate is not good any more".to_owned();
            return Err(NoAnswer::Away { collector, why });
        }
        let called = self.call(collector.clone(), address);
        let elsewhere = called
            .map_err(|why| NoAnswer::Away { collector: collector.clone(), why: why.to_string() })?;
        let failure = elsewhere.lock_failure();
        let new = failure.as_ref().filter(|it| it.at.elapsed() < REST);
        let why = new.map(|it| it.why.clone());
        drop(failure);
        why.map_or(Ok(elsewhere), |why| Err(NoAnswer::Away { collector, why }))
    }

    fn call(&self, collector: Name, address: String) -> Result<Elsewhere, Unusable> {
        let credentials = self.credentials.borrow().clone();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.get(&collector);
        if let Some(line) = line.filter(|it| it.address == address && it.credentials == credentials)
        {
            let (client, failure) = (line.client.clone(), Arc::clone(&line.failure));
            return Ok(Elsewhere { collector, client, failure, patience: PATIENCE });
        }
        let channel = call(&address, Role::Collector, &Trust::Certificate(&credentials))?;
        let client = AnswersClient::new(channel);
        let failure = Arc::default();
        let (of_it, own) = (client.clone(), Arc::clone(&failure));
        let line = Line { address, credentials, client: of_it, failure: own };
        lines.insert(collector.clone(), line);
        Ok(Elsewhere { collector, client, failure, patience: PATIENCE })
    }
}

/// A collector that is asked.
struct Elsewhere {
    collector: Name,
    client: AnswersClient<Channel>,
    failure: Arc<StdMutex<Option<Failure>>>,
    patience: Duration,
}

impl Elsewhere {
    /// Others are waiting for its answer.
    fn in_time(self) -> Self {
        Self { patience: TOGETHER, ..self }
    }

    async fn read<T: DeserializeOwned>(
        mut self,
        task: u64,
        what: What,
    ) -> Result<Vec<T>, NoAnswer> {
        let rows = self.rows(task, what).await?;
        let read = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
        read.map_err(|why| self.away(format!("it says something else: {why}")))
    }

    async fn one<T: DeserializeOwned>(self, task: u64, what: What) -> Result<T, NoAnswer> {
        let collector = self.collector.clone();
        let row = self.read(task, what).await?.pop();
        row.ok_or_else(|| NoAnswer::Away { collector, why: "it says nothing".to_owned() })
    }

    async fn ask(mut self, task: u64, what: What) -> Result<Vec<String>, NoAnswer> {
        self.rows(task, what).await
    }

    /// What it has, each row as JSON.
    async fn rows(&mut self, task: u64, what: What) -> Result<Vec<String>, NoAnswer> {
        let client = &mut self.client;
        let asked = async {
            let mut answer = Answer::to(&what);
            let question = Question { task, what: Some(what) };
            let mut heard = client.ask(question).await?.into_inner();
            while let Some(more) = heard.message().await? {
                answer.add(more.rows)?;
            }
            Ok::<_, Status>(answer.rows())
        };
        match timeout(self.patience, asked).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(status)) if status.code() == Code::Unavailable => {
                Err(self.failed(reason(&status)))
            }
            Ok(Err(status)) if status.code() == Code::ResourceExhausted => {
                Err(NoAnswer::TooMuch(self.collector.clone()))
            }
            Ok(Err(status)) => Err(self.away(reason(&status))),
            Err(_) => Err(self.failed(format!("it takes more than {} s", self.patience.as_secs()))),
        }
    }

    /// It could not be reached, and rests for a while.
    fn failed(&self, why: String) -> NoAnswer {
        *self.lock_failure() = Some(Failure { at: Instant::now(), why: why.clone() });
        self.away(why)
    }

    fn lock_failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn away(&self, why: String) -> NoAnswer {
        NoAnswer::Away { collector: self.collector.clone(), why }
    }
}
