//! Assignment of tasks to collectors, kept in a file.
//!
//! A task is placed when it is first assigned to a probe. All its points are at one collector, because a collector needs
//! the data of both. A task moves to another collector if its own is away or revoked, or on request; each move begins an
//! epoch of the task. If the file is new while tasks are running, their collectors are unknown; they stay with the
//! controller's own collector.

mod database;
mod known_collectors;
mod moves;
#[cfg(all(test, feature = "kafka"))]
mod simulated;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use super::shared_ca::ValidCertificates;
use crate::collector::{Handover, TaskEpoch, TaskEpochs};
use crate::database::Database;
use crate::task::{Removed, TaskRecord, Tasks};
use crate::v1::Destination;
use crate::{DatabaseError, Name};
use database::{SCHEMA, collectors, insert, placement};
use known_collectors::KnownCollector;
pub(super) use known_collectors::Reported;
pub(super) use moves::MoveError;
#[cfg(all(test, feature = "kafka"))]
pub(crate) use simulated::SimulatedPlacement;

/// The collectors of tasks, and the known collectors.
pub(super) struct TaskPlacement {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    database: Database,
    collectors: BTreeMap<Name, KnownCollector>,
    /// The placements of each task, by epoch; the last one is the current one. Never empty.
    placement: BTreeMap<u64, Vec<Placed>>,
    /// Moves since the controller started.
    moves: u64,
}

/// Placement of a task in an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    /// The collector; none for the controller's own.
    pub(super) collector: Option<Name>,
    /// Where its results begin; none if they have not begun, or the probes do not know it.
    pub(super) start: Option<PartStart>,
}

/// Begin of the results of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartStart {
    /// In nanoseconds since 1970 (UTC).
    pub(super) at: i64,
    /// Spool of the first point.
    pub(super) spool: i64,
    /// Its last batch whose results belong to an earlier collector.
    pub(super) behind: u64,
}

impl TaskPlacement {
    /// Opens the file. If it is new, all running tasks are placed at the controller's own collector.
    pub(super) fn open(path: &Path, tasks: &Tasks) -> Result<Self, DatabaseError> {
        let is_new = path.metadata().map_or(true, |it| it.len() == 0);
        let mut database = Database::open(path, &SCHEMA)?;
        if is_new {
            keep_here(&mut database, path, tasks)?;
        }
        let (addresses, placement) = database.read(|it| Ok((collectors(it)?, placement(it)?)))?;
        let collectors = addresses.into_iter();
        let collectors =
            collectors.map(|(name, address)| (name, KnownCollector::expected(address))).collect();
        let state = Mutex::new(State { database, collectors, placement, moves: 0 });
        Ok(Self { state, changed: watch::Sender::default() })
    }

    /// Notified of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Number of running tasks at each collector; without a name: at the controller's own.
    pub(super) fn running(&self, tasks: &Tasks) -> BTreeMap<Option<Name>, u64> {
        let state = self.state.lock();
        let known = state.collectors.keys().cloned().map(Some).chain([None]);
        let mut running: BTreeMap<_, _> = known.map(|name| (name, 0)).collect();
        let is_running = |task: &&u64| tasks.get(task).is_some_and(|it| it.ended.is_none());
        for task in state.placement.keys().filter(is_running) {
            *running.entry(state.current(*task).cloned()).or_default() += 1;
        }
        running
    }

    /// Places the tasks that are not placed yet, evenly.
    pub(super) fn place(
        &self,
        new: impl IntoIterator<Item = u64>,
        tasks: &Tasks,
        members: &ValidCertificates,
    ) -> Result<(), DatabaseError> {
        let mut state = self.state.lock();
        let mut new: Vec<_> = new.into_iter().collect();
        new.retain(|task| !state.placement.contains_key(task));
        if new.is_empty() {
            return Ok(());
        }
        let mut loads = state.loads(tasks, members);
        let placed: Vec<_> = new.into_iter().map(|task| (task, choose(&mut loads))).collect();
        state.database.change(|change| {
            placed.iter().try_for_each(|(task, home)| insert(change, *task, 0, home.as_ref()))
        })?;
        for (task, collector) in placed {
            state.placement.insert(task, vec![Placed { collector, start: None }]);
        }
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// Name and address of a task's collector; none for the controller's own.
    pub(super) fn of(&self, task: u64) -> Option<(Name, String)> {
        let state = self.state.lock();
        let name = state.current(task)?.clone();
        let address = state.collectors.get(&name)?.address.clone();
        Some((name, address))
    }

    /// The placements of a task by epoch, the current one last; empty if it is not placed yet.
    pub(super) fn history(&self, task: u64) -> Vec<Placed> {
        self.state.lock().placement.get(&task).cloned().unwrap_or_default()
    }

    /// Address of a collector.
    pub(super) fn address(&self, collector: &Name) -> Option<String> {
        Some(self.state.lock().collectors.get(collector)?.address.clone())
    }

    /// Whether a collector is connected.
    pub(super) fn is_connected(&self, collector: &Name) -> bool {
        self.state.lock().collectors.get(collector).is_some_and(|it| it.since.is_some())
    }

    /// Names and addresses of the collectors that have or had tasks.
    pub(super) fn addresses(&self) -> Vec<(Name, String)> {
        let state = self.state.lock();
        let placed = state.placement.values().flatten();
        let placement: BTreeSet<_> = placed.filter_map(|it| it.collector.as_ref()).collect();
        let known = state.collectors.iter().filter(|(name, _)| placement.contains(name));
        known.map(|(name, it)| (name.clone(), it.address.clone())).collect()
    }

    /// The tasks of a collector. Without a name: of the controller's own, including tasks that are not placed yet.
    pub(super) fn tasks_of(&self, tasks: &Tasks, collector: Option<&Name>) -> Tasks {
        let state = self.state.lock();
        let home = |task: &u64| state.current(*task);
        let of = |(task, entered): (&u64, &TaskRecord)| {
            (home(task) == collector).then(|| (*task, entered.clone()))
        };
        tasks.iter().filter_map(of).collect()
    }

    /// The tasks that a collector has or had, and the placements of those that moved. Without a name: of the controller's
    /// own, including tasks that are not placed yet.
    pub(super) fn known_to(&self, tasks: &Tasks, collector: Option<&Name>) -> (Tasks, TaskEpochs) {
        let state = self.state.lock();
        let (mut known, mut epochs) = (Tasks::new(), TaskEpochs::default());
        for (task, entered) in tasks {
            let Some(history) = state.placement.get(task) else {
                if collector.is_none() {
                    known.insert(*task, entered.clone());
                }
                continue;
            };
            let of_it = (0_u64..).zip(history);
            let of_it = of_it.filter(|(_, it)| it.collector.as_ref() == collector);
            let of_it: Vec<_> = of_it.map(|(epoch, _)| epoch).collect();
            let Some(newest) = of_it.last().copied() else { continue };
            known.insert(*task, entered.clone());
            let is_former = state.current(*task) != collector;
            let place = TaskEpoch { epoch: newest, is_former };
            if place != TaskEpoch::default() {
                epochs.placed.insert(*task, place);
            }
            let handovers = of_it.iter().filter_map(|epoch| handover(history, *epoch));
            epochs.handovers.extend(handovers.map(|it| (*task, it)));
        }
        (known, epochs)
    }

    /// The removed tasks that a collector had.
    pub(super) fn removed_of(&self, removed: &Removed, collector: &Name) -> Vec<u64> {
        let state = self.state.lock();
        let was_here = |task: &u64| {
            let placed = state.placement.get(task).into_iter().flatten();
            placed.into_iter().any(|it| it.collector.as_ref() == Some(collector))
        };
        removed.iter().copied().filter(was_here).collect()
    }

    /// Where probes deliver tasks of other collectors. The address is empty if the collector has no valid certificate.
    pub(super) fn destinations(
        &self,
        tasks: impl Iterator<Item = u64>,
        members: &ValidCertificates,
    ) -> Vec<Destination> {
        let mut by_collector = BTreeMap::<(String, bool), Vec<(u64, u64)>>::new();
        for task in tasks {
            let epoch = (self.history(task).len() as u64).saturating_sub(1);
            let to = match self.of(task) {
                Some((name, address)) if members.has_collector(&name) => (address, false),
                Some(_) => (String::new(), false),
                None if epoch > 0 => (String::new(), true),
                None => continue,
            };
            by_collector.entry(to).or_default().push((task, epoch));
        }
        let destination = |((collector, own), tasks): ((String, bool), Vec<(u64, u64)>)| {
            let (tasks, mut epochs): (_, Vec<_>) = tasks.into_iter().unzip();
            if epochs.iter().all(|epoch| *epoch == 0) {
                epochs.clear();
            }
            Destination { collector, tasks, epochs, own }
        };
        by_collector.into_iter().map(destination).collect()
    }
}

/// End of the results of an epoch: where those of the next one that has begun start.
fn handover(history: &[Placed], epoch: u64) -> Option<Handover> {
    let later = history.iter().skip(usize::try_from(epoch).ok()?.saturating_add(1));
    let PartStart { at: start, spool, behind } = later.filter_map(|it| it.start).next()?;
    Some(Handover { epoch, start, spool, behind })
}

impl State {
    /// The collector of a task; none for the controller's own.
    fn current(&self, task: u64) -> Option<&Name> {
        self.placement.get(&task)?.last()?.collector.as_ref()
    }

    /// The collectors with valid certificates.
    fn loads(&self, tasks: &Tasks, members: &ValidCertificates) -> BTreeMap<Name, Load> {
        let known = self.collectors.iter().filter(|(name, _)| members.has_collector(name));
        let load = |it: &KnownCollector| Load { is_away: it.since.is_none(), tasks: 0 };
        let mut loads: BTreeMap<_, _> = known.map(|(name, it)| (name.clone(), load(it))).collect();
        let is_running = |task: &&u64| tasks.get(task).is_some_and(|it| it.ended.is_none());
        for task in self.placement.keys().filter(is_running) {
            if let Some(load) = self.current(*task).and_then(|name| loads.get_mut(name)) {
                load.tasks += 1;
            }
        }
        loads
    }
}

/// Load of a collector.
struct Load {
    is_away: bool,
    /// Running tasks.
    tasks: usize,
}

/// Chooses a collector for a task: connected ones first, then the one with the fewest running tasks. None if there is only
/// the controller's own.
fn choose(loads: &mut BTreeMap<Name, Load>) -> Option<Name> {
    let (name, load) = loads.iter_mut().min_by_key(|(_, it)| (it.is_away, it.tasks))?;
    load.tasks += 1;
    Some(name.clone())
}

/// Places running tasks at the controller's own collector, because the file is new or was lost.
fn keep_here(database: &mut Database, path: &Path, tasks: &Tasks) -> Result<(), DatabaseError> {
    let going_on = || tasks.iter().filter(|(_, it)| it.ended.is_none()).map(|(task, _)| *task);
    database.change(|change| going_on().try_for_each(|task| insert(change, task, 0, None)))?;
    let count = going_on().count();
    if count > 0 {
        warn!(
            "{} is new: {count} running tasks move to the controller's own collector; restore the file to \
             find results at other collectors, or move the tasks",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
