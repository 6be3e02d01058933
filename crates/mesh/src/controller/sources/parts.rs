//! The collectors of a task that moved, and the part of its time at each.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::block_in_place;
use utoipa::ToSchema;

use super::super::placement::Placed;
use super::{CONCURRENT_TIMEOUT, QueryError, Sources};
use crate::Name;
use crate::collector::rows;
use crate::v1::question::What;

/// A collector that a task has or had.
pub(super) struct PartPlace {
    /// None: the controller's own.
    pub(super) collector: Option<Name>,
    /// Begins of its results, in nanoseconds since 1970 (UTC).
    pub(super) ranges: Vec<Range<i64>>,
    /// It has the task now.
    pub(super) is_current: bool,
}

/// A collector that does not answer, and whose results are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Partial)]
pub(in crate::controller) struct MissingPart {
    /// Name of the collector; `controller` is the controller's own.
    collector: String,
    /// Results before this time may be missing, in nanoseconds since 1970 (UTC); null if it has the task now.
    #[schema(required)]
    until_ns: Option<i64>,
}

impl MissingPart {
    /// The current collector of a task; none for the controller's own.
    pub(super) fn current(collector: Option<Name>) -> Self {
        let collector = collector.as_ref().map_or("controller", AsRef::as_ref).to_owned();
        Self { collector, until_ns: None }
    }

    /// Results before this time may be missing; none if it has the task now.
    pub(super) fn until(&self) -> Option<i64> {
        self.until_ns
    }
}

impl PartPlace {
    /// End of its results.
    pub(super) fn end(&self) -> i64 {
        self.ranges.last().map_or(i64::MAX, |it| it.end)
    }

    /// Whether results that begin at this time belong to it.
    pub(super) fn has(&self, begin: i64) -> bool {
        self.ranges.iter().any(|it| it.contains(&begin))
    }

    pub(super) fn missing(&self) -> MissingPart {
        let collector = self.collector.as_ref().map_or("controller", AsRef::as_ref).to_owned();
        MissingPart { collector, until_ns: (!self.is_current).then(|| self.end()) }
    }
}

/// The collectors of a task with these placements.
pub(super) fn places(history: &[Placed]) -> Vec<PartPlace> {
    let mut places: Vec<PartPlace> = Vec::new();
    for (epoch, placed) in history.iter().enumerate() {
        let start = placed.start.map_or(i64::MIN, |it| it.at);
        let later = history.iter().skip(epoch + 1).filter_map(|it| it.start);
        let range = start..later.map(|it| it.at).next().unwrap_or(i64::MAX);
        let is_current = epoch + 1 == history.len();
        match places.iter_mut().find(|it| it.collector == placed.collector) {
            Some(known) => {
                known.ranges.push(range);
                known.is_current = is_current;
            }
            None => places.push(PartPlace {
                collector: placed.collector.clone(),
                ranges: vec![range],
                is_current,
            }),
        }
    }
    places
}

/// Begins of all parts after the first one.
pub(super) fn starts(places: &[PartPlace]) -> impl Iterator<Item = i64> {
    let starts = places.iter().flat_map(|it| &it.ranges).map(|it| it.start);
    starts.filter(|start| *start > i64::MIN)
}

/// Answers of the collectors that answered.
pub(super) type PartAnswers<'a, T> = Vec<(&'a PartPlace, Vec<T>)>;

/// Collectors that do not answer, and why.
pub(super) type PartFailures<'a> = Vec<(&'a PartPlace, QueryError)>;

impl Sources {
    /// The collectors of a task that moved; none if it has not.
    pub(super) fn places(&self, task: u64) -> Option<Vec<PartPlace>> {
        let history = self.placement.history(task);
        (history.len() > 1).then(|| places(&history))
    }

    /// Queries all collectors of a task. Those that do not answer are returned.
    ///
    /// # Errors
    /// When none answers, or a response is too long.
    pub(super) async fn ask_parts<'a, T: DeserializeOwned>(
        &self,
        task: u64,
        places: &'a [PartPlace],
        what: impl Fn(&PartPlace) -> What,
    ) -> Result<(PartAnswers<'a, T>, Vec<MissingPart>), QueryError> {
        let (answers, failures) = self.try_parts(task, places, what).await?;
        let missing = failures.iter().map(|(place, _)| place.missing()).collect();
        match failures.into_iter().next() {
            Some((_, why)) if answers.is_empty() => Err(why),
            _ => Ok((answers, missing)),
        }
    }

    /// As [`Self::ask_parts`], with the errors of the collectors that do not answer.
    ///
    /// # Errors
    /// When a response is too long.
    pub(super) async fn try_parts<'a, T: DeserializeOwned>(
        &self,
        task: u64,
        places: &'a [PartPlace],
        what: impl Fn(&PartPlace) -> What,
    ) -> Result<(PartAnswers<'a, T>, PartFailures<'a>), QueryError> {
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for place in places {
            let answer = async {
                let rows = self.rows_at(place, task, what(place)).await?;
                let read = rows.iter().map(|row| serde_json::from_str(row));
                let read = read.collect::<Result<Vec<T>, _>>();
                read.map_err(|why| place.away(format!("its response is not valid: {why}")))
            };
            match answer.await {
                Ok(rows) => answers.push((place, rows)),
                Err(why @ (QueryError::TooMuch(_) | QueryError::Database(_))) => return Err(why),
                Err(why) => failures.push((place, why)),
            }
        }
        Ok((answers, failures))
    }

    /// Rows of one of the collectors, as JSON.
    pub(super) async fn rows_at(
        &self,
        place: &PartPlace,
        task: u64,
        what: What,
    ) -> Result<Vec<String>, QueryError> {
        let Some(name) = &place.collector else {
            let _turn = self.turn.lock().await;
            let rows = block_in_place(|| rows(&self.own, task, what));
            return rows.map_err(|status| place.away(status.message().to_owned()));
        };
        // A former collector that is away must not delay the others.
        if !place.is_current && !self.placement.is_connected(name) {
            return Err(place.away("it is not connected".to_owned()));
        }
        let address = self.placement.address(name).unwrap_or_default();
        let connection = self.connection(name.clone(), address)?;
        let connection =
            if place.is_current { connection } else { connection.within(CONCURRENT_TIMEOUT) };
        connection.ask(task, what).await
    }
}

impl PartPlace {
    fn away(&self, why: String) -> QueryError {
        match self.collector.clone() {
            Some(collector) => QueryError::Away { collector, why },
            None => QueryError::Own(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::placement::PartStart;
    use super::*;

    #[test]
    fn each_time_belongs_to_one_collector() {
        let placed = |name: Option<&str>, at: Option<i64>| Placed {
            collector: name.map(|name| name.parse().unwrap()),
            start: at.map(|at| PartStart { at, spool: 1, behind: 2 }),
        };
        let history = [
            placed(Some("one"), None),
            placed(Some("two"), Some(20)),
            placed(None, Some(30)),
            placed(Some("one"), Some(40)),
        ];
        let found = places(&history);
        let of = |it: &PartPlace| -> Vec<_> {
            it.ranges.iter().map(|range| (range.start, range.end)).collect()
        };
        let ranges: Vec<_> = found.iter().map(of).collect();
        let expected = [vec![(i64::MIN, 20), (40, i64::MAX)], vec![(20, 30)], vec![(30, 40)]];
        assert_eq!(ranges, expected);
        for time in 0..50 {
            assert_eq!(found.iter().filter(|it| it.has(time)).count(), 1);
        }
        assert_eq!(starts(&found).collect::<Vec<_>>(), [40, 20, 30]);
        let until: Vec<_> = found.iter().map(|it| it.missing().until_ns).collect();
        assert_eq!(until, [None, Some(30), Some(40)]);
        assert_eq!(found[2].missing().collector, "controller");
    }
}
