//! Moves of tasks to other collectors.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;
use tracing::{info, warn};

use super::{PartStart, Placed, State, TaskPlacement, choose, database};
use crate::collector::Begun;
use crate::controller::shared_ca::ValidCertificates;
use crate::task::{Measure, Tasks};
use crate::{DatabaseError, Name};

/// Why a task was not moved on request.
#[derive(Debug, Error)]
pub(in crate::controller) enum MoveError {
    /// The task is not placed: no probe has connected yet.
    #[error("it has no collector yet; start its probes")]
    NotPlaced,
    /// Only the controller's own collector receives foreign exporters.
    #[error(
        "it has points of other exporters (IPFIX, PSAMP); only the controller can receive their records"
    )]
    Foreign,
    /// There is no such collector.
    #[error("there is no collector {0} with a valid certificate")]
    NoSuchCollector(Name),
    /// The collector is not connected.
    #[error("the collector {0} is not connected; start it")]
    NotConnected(Name),
    /// The file cannot be written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl TaskPlacement {
    /// Moves the running tasks of collectors that are not connected for `limit`, or whose certificates are not valid any
    /// more, to the connected ones with the fewest running tasks. Returns the number of moves.
    ///
    /// Tasks of the controller's own collector stay, and it gets none.
    pub(in crate::controller) fn move_from_absent(
        &self,
        limit: Duration,
        tasks: &Tasks,
        members: &ValidCertificates,
    ) -> Result<usize, DatabaseError> {
        let mut state = self.state.lock();
        let is_away = |name: &Name| {
            let known = state.collectors.get(name);
            let is_late =
                known.is_some_and(|it| it.since.is_none() && it.away_since.elapsed() >= limit);
            is_late || !members.has_collector(name)
        };
        let is_running = |task: &u64| tasks.get(task).is_some_and(|it| it.ended.is_none());
        let stranded = state.placement.keys().copied().filter(is_running);
        let stranded: Vec<_> = stranded
            .filter_map(|task| Some((task, state.current(task)?.clone())))
            .filter(|(_, from)| is_away(from))
            .collect();
        let mut loads = state.loads(tasks, members);
        loads.retain(|_, it| !it.is_away);
        if stranded.is_empty() || loads.is_empty() {
            return Ok(0);
        }
        let chosen = stranded.into_iter();
        let moves: Vec<_> =
            chosen.filter_map(|(task, from)| Some((task, from, choose(&mut loads)?))).collect();
        let placed = moves.iter().map(|(task, _, to)| (*task, Some(to.clone())));
        state.relocate(&placed.collect::<Vec<_>>())?;
        drop(state);
        self.changed.send_replace(());
        log(&moves, members);
        Ok(moves.len())
    }

    /// Moves a task on request; none is the controller's own collector. Returns the epoch of its placement.
    pub(in crate::controller) fn move_to(
        &self,
        (task, measure): (u64, &Measure),
        to: Option<&Name>,
        members: &ValidCertificates,
    ) -> Result<u64, MoveError> {
        let mut state = self.state.lock();
        if matches!(measure, Measure::ReportedDelay(_)) {
            return Err(MoveError::Foreign);
        }
        let Some(history) = state.placement.get(&task) else { return Err(MoveError::NotPlaced) };
        let epoch = (history.len() as u64).saturating_sub(1);
        if let Some(name) = to {
            let known = state.collectors.get(name).filter(|_| members.has_collector(name));
            let known = known.ok_or_else(|| MoveError::NoSuchCollector(name.clone()))?;
            if known.since.is_none() {
                return Err(MoveError::NotConnected(name.clone()));
            }
        }
        if state.current(task) == to {
            return Ok(epoch);
        }
        state.relocate(&[(task, to.cloned())])?;
        drop(state);
        self.changed.send_replace(());
        Ok(epoch + 1)
    }

    /// Stores where the results of tasks begin at a collector to which they moved; none is the controller's own.
    pub(in crate::controller) fn begun(
        &self,
        collector: Option<&Name>,
        begun: impl IntoIterator<Item = Begun>,
    ) -> Result<(), DatabaseError> {
        let mut state = self.state.lock();
        let mut news = Vec::new();
        for Begun { task, epoch, start, spool, behind } in begun {
            let (Some(at), Ok(index)) = (start, usize::try_from(epoch)) else { continue };
            let placed = state.placement.get(&task).and_then(|it| it.get(index));
            let start = PartStart { at, spool, behind };
            if placed
                .is_some_and(|it| it.collector.as_ref() == collector && it.start != Some(start))
            {
                news.push((task, epoch, index, start));
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        state.database.change(|change| {
            let mut all = news.iter();
            all.try_for_each(|(task, epoch, _, it)| database::start(change, (*task, *epoch), it))
        })?;
        for (task, _, index, start) in news {
            let placed = state.placement.get_mut(&task).and_then(|it| it.get_mut(index));
            if let Some(placed) = placed {
                placed.start = Some(start);
            }
        }
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// Moves of tasks since the controller started.
    pub(in crate::controller) fn moves(&self) -> u64 {
        self.state.lock().moves
    }
}

impl State {
    /// Places tasks at other collectors, in their next epochs.
    fn relocate(&mut self, moves: &[(u64, Option<Name>)]) -> Result<(), DatabaseError> {
        let Self { database, placement, .. } = self;
        database.change(|change| {
            for (task, to) in moves {
                let epoch = placement.get(task).map_or(0, Vec::len) as u64;
                database::insert(change, *task, epoch, to.as_ref())?;
            }
            Ok(())
        })?;
        for (task, to) in moves {
            let placed = Placed { collector: to.clone(), start: None };
            self.placement.entry(*task).or_default().push(placed);
        }
        self.moves += moves.len() as u64;
        Ok(())
    }
}

/// Logs moves: one line for each collector that is away.
fn log(moves: &[(u64, Name, Name)], members: &ValidCertificates) {
    let mut by_collector = BTreeMap::<&Name, BTreeMap<&Name, usize>>::new();
    for (_, from, to) in moves {
        *by_collector.entry(from).or_default().entry(to).or_default() += 1;
    }
    for (from, to) in by_collector {
        let count: usize = to.values().sum();
        let tasks = if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") };
        let parts: Vec<_> = to.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let parts = parts.join(", ");
        if members.has_collector(from) {
            warn!("the collector {from} is away: moved {tasks} to {parts}");
        } else {
            info!("the certificate of the collector {from} is not valid: moved {tasks} to {parts}");
        }
    }
}
