//! Queries of results. Each goes to the collector of its task, or to all that it has or had.

use std::collections::BTreeMap;
use std::ops::Range;

use tokio::task::JoinSet;
use wirestamp_clock::{Time, Utc};

use super::windows::WindowRow;
use super::{CONCURRENT_TIMEOUT, MissingPart, QueryError, Sources};
use crate::collector::{Counted, Histograms, Measured, Recent, ResultRange, Sum};
use crate::v1::question::What;
use crate::v1::{self, Newest, SettledUntil};

impl Sources {
    /// Measured windows of a task: see [`Collector::measured`](crate::collector::Collector::measured).
    ///
    /// # Errors
    /// When the results cannot be read, or their collector does not answer.
    pub async fn measured(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<Vec<Measured>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.whole_windows(task, shards, range).await,
            None => Ok(self.windows(task, range).await?.0),
        }
    }

    /// As [`Self::measured`], and the collectors whose results are missing.
    pub(in crate::controller) async fn measured_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<Measured>, Vec<MissingPart>), QueryError> {
        match self.shards(task) {
            Some(shards) => self.windows_of_shards(task, shards, range).await,
            None => self.windows(task, range).await,
        }
    }

    /// Windows of a shard, or of a task with one, and the former collectors whose results are missing.
    pub(super) async fn windows<T: WindowRow>(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<T>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_windows(task, &places, range).await;
        }
        let windows = match self.remote(task)? {
            None => self.read(|own| T::read(own, task, range)).await,
            Some(connection) => connection.read(task, T::query(range.into())).await,
        };
        Ok((windows?, Vec::new()))
    }

    /// Counted intervals of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn counted(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<Vec<Counted>, QueryError> {
        Ok(self.counted_parts(task, range).await?.0)
    }

    /// As [`Self::counted`], and the former collectors whose results are missing.
    pub(in crate::controller) async fn counted_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<Counted>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_counts(task, &places, range).await;
        }
        let counted = match self.remote(task)? {
            None => self.read(|own| own.results().counted(task, range)).await,
            Some(connection) => connection.read(task, What::Counted(range.into())).await,
        };
        Ok((counted?, Vec::new()))
    }

    /// Flows of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn flows(&self, task: u64, range: &ResultRange) -> Result<Vec<String>, QueryError> {
        Ok(self.flows_parts(task, range).await?.0)
    }

    /// As [`Self::flows`], and the former collectors whose results are missing.
    pub(in crate::controller) async fn flows_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<String>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_flows(task, &places, range).await;
        }
        let flows = match self.remote(task)? {
            None => self.read(|own| own.results().flows(task, range)).await,
            Some(connection) => connection.ask(task, What::Flows(range.into())).await,
        };
        Ok((flows?, Vec::new()))
    }

    /// Delay histograms of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn histograms(&self, task: u64, range: Range<i64>) -> Result<Histograms, QueryError> {
        Ok(self.histograms_parts(task, range).await?.0)
    }

    /// As [`Self::histograms`], and the former collectors whose results are missing.
    pub(in crate::controller) async fn histograms_parts(
        &self,
        task: u64,
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        match self.shards(task) {
            Some(shards) => self.histograms_of_shards(shards, range).await,
            None => self.histograms_of(task, range).await,
        }
    }

    /// Histograms of a shard, or of a task with one.
    pub(super) async fn histograms_of(
        &self,
        task: u64,
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_histograms(task, &places, range).await;
        }
        let histograms = match self.remote(task)? {
            None => self.read(|own| own.results().histograms(task, range)).await,
            Some(connection) => {
                let Range { start: from, end: until } = range;
                connection.one(task, What::Histograms(v1::Histograms { from, until })).await
            }
        };
        Ok((histograms?, Vec::new()))
    }

    /// The newest results of all tasks: see [`Collector::recent`](crate::collector::Collector::recent). Collectors that do
    /// not answer are returned as errors.
    ///
    /// # Errors
    /// When the controller's own results cannot be read.
    pub async fn recent(
        &self,
        from: Time<Utc>,
        most: u32,
    ) -> Result<(BTreeMap<u64, Recent>, Vec<QueryError>), QueryError> {
        let mut questions = JoinSet::new();
        let mut away = Vec::new();
        for (collector, address) in self.placement.addresses() {
            let what = What::Recent(v1::Recent { from: from.as_nanos(), most });
            match self.connection(collector.clone(), address) {
                Ok(connection) => drop(questions.spawn(async move {
                    (
                        collector,
                        connection.within(CONCURRENT_TIMEOUT).read::<(u64, Recent)>(0, what).await,
                    )
                })),
                Err(why) => away.push(why),
            }
        }
        let own = self.read(|own| own.recent(from, most)).await?;
        let mut answers = vec![(None, own.into_iter().collect())];
        for (collector, answer) in questions.join_all().await {
            match answer {
                Ok(recent) => answers.push((Some(collector), recent)),
                Err(why) => away.push(why),
            }
        }
        let mut recent = self.merged_recent(answers, most);
        self.join_shards(&mut recent, from, most, &mut away).await;
        Ok((recent, away))
    }

    /// Sum of a counting task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn sum(&self, task: u64) -> Result<Sum, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_sum(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.results().sum(task)).await,
            Some(connection) => connection.one(task, What::Sum(v1::Sum {})).await,
        }
    }

    /// Number of stored flows of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn flow_count(&self, task: u64) -> Result<u64, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_flow_count(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.results().flow_count(task)).await,
            Some(connection) => {
                connection.one(task, What::FlowCount(v1::FlowCount::default())).await
            }
        }
    }

    /// The newest window of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn newest(&self, task: u64) -> Result<Option<Measured>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.newest_of_shards(task, shards).await,
            None => self.newest_of(task).await,
        }
    }

    /// The newest window of a shard, or of a task with one.
    pub(super) async fn newest_of(&self, task: u64) -> Result<Option<Measured>, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_newest(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.newest(task)).await,
            Some(connection) => Ok(connection.read(task, What::Newest(Newest {})).await?.pop()),
        }
    }

    /// Time up to which the results of a task are final: see
    /// [`Collector::settled_until`](crate::collector::Collector::settled_until).
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn settled_until(&self, task: u64) -> Result<Time<Utc>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.settled_until_of_shards(shards).await,
            None => self.settled_until_of(task).await,
        }
    }

    /// Time up to which the results of a shard, or of a task with one, are final.
    pub(super) async fn settled_until_of(&self, task: u64) -> Result<Time<Utc>, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_settled_until(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.settled_until(task)).await,
            Some(connection) => {
                let what = What::SettledUntil(SettledUntil {});
                let nanos = connection.read(task, what).await?.pop().unwrap_or(i64::MIN);
                Ok(Time::from_nanos(nanos))
            }
        }
    }
}
