//! Assignment of tasks to collectors, kept in a file.
//!
//! A task is placed when it is first assigned to a probe, and stays there: a collector needs the data of both points.
//! If the file is new while tasks are running, their collectors are unknown; they stay with the controller's own
//! collector. To move a task, end it and create it again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, params};
use tokio::sync::watch;
use tracing::warn;

use super::shared_ca::ValidCertificates;
use crate::database::{Database, DatabaseSchema, unsigned};
use crate::task::{Removed, TaskRecord, Tasks};
use crate::v1::Destination;
use crate::{DatabaseError, Name};

/// "WSHO".
const SCHEMA: DatabaseSchema =
    DatabaseSchema { application: 0x5753_484f, version: 1, tables: TABLES, upgrades: &[] };

/// A task without a collector belongs to the controller's own.
const TABLES: &str = "
    BEGIN;
    CREATE TABLE collector (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT;
    CREATE TABLE home (task INTEGER PRIMARY KEY, collector TEXT) STRICT;
    PRAGMA application_id = 0x5753484f;
    PRAGMA user_version = 1;
    COMMIT;";

/// The collectors of tasks, and the known collectors.
pub(super) struct TaskPlacement {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    database: Database,
    collectors: BTreeMap<Name, KnownCollector>,
    /// None: the controller's own collector.
    placement: BTreeMap<u64, Option<Name>>,
}

/// A collector that is or was connected.
struct KnownCollector {
    /// Its address.
    address: String,
    /// When it connected; none if it is not connected.
    since: Option<Timestamp>,
    /// Why it cannot store results; empty if it can.
    trouble: String,
}

/// Max length of the reason of a collector, in characters.
const MAX_TROUBLE: usize = 500;

impl TaskPlacement {
    /// Opens the file. If it is new, all running tasks are placed at the controller's own collector.
    pub(super) fn open(path: &Path, tasks: &Tasks) -> Result<Self, DatabaseError> {
        let is_new = path.metadata().map_or(true, |it| it.len() == 0);
        let mut database = Database::open(path, &SCHEMA)?;
        if is_new {
            keep_here(&mut database, path, tasks)?;
        }
        let (collectors, placement) = database.read(|it| Ok((collectors(it)?, placement(it)?)))?;
        let state = Mutex::new(State { database, collectors, placement });
        Ok(Self { state, changed: watch::Sender::default() })
    }

    /// Notified of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Registers a collector that connected.
    pub(super) fn connected(
        &self,
        name: &Name,
        address: String,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let mut state = self.state.lock();
        if state.collectors.get(name).is_none_or(|known| known.address != address) {
            let query = "INSERT INTO collector VALUES (?1, ?2)
                         ON CONFLICT (name) DO UPDATE SET address = ?2";
            let values = params![name.as_ref(), address];
            state.database.change(|change| change.execute(query, values))?;
        }
        let known = KnownCollector { address, since: Some(now), trouble: String::new() };
        state.collectors.insert(name.clone(), known);
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// Marks a collector that connected at `came` as disconnected, unless it has connected again.
    pub(super) fn disconnected(&self, name: &Name, came: Timestamp) {
        if let Some(known) = self.state.lock().collectors.get_mut(name)
            && known.since == Some(came)
        {
            (known.since, known.trouble) = (None, String::new());
        }
    }

    /// Stores why a collector that connected at `came` cannot store results; empty if it can.
    pub(super) fn set_trouble(&self, name: &Name, came: Timestamp, trouble: String) {
        if let Some(known) = self.state.lock().collectors.get_mut(name)
            && known.since == Some(came)
        {
            known.trouble = trouble.chars().take(MAX_TROUBLE).collect();
        }
    }

    /// The collectors, whether each is connected, and why it cannot store results if so.
    pub(super) fn collectors(&self) -> Vec<(Name, bool, Option<String>)> {
        let state = self.state.lock();
        let shown = |(name, it): (&Name, &KnownCollector)| {
            let trouble = (!it.trouble.is_empty()).then(|| it.trouble.clone());
            (name.clone(), it.since.is_some(), trouble)
        };
        state.collectors.iter().map(shown).collect()
    }

    /// Places a task, if it is not placed yet.
    pub(super) fn place(
        &self,
        task: u64,
        tasks: &Tasks,
        members: &ValidCertificates,
    ) -> Result<(), DatabaseError> {
        let mut state = self.state.lock();
        if state.placement.contains_key(&task) {
            return Ok(());
        }
        let home = state.choose(tasks, members).cloned();
        state.database.change(|change| insert(change, task, home.as_ref()))?;
        state.placement.insert(task, home);
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// Name and address of a task's collector; none for the controller's own.
    pub(super) fn of(&self, task: u64) -> Option<(Name, String)> {
        let state = self.state.lock();
        let name = state.placement.get(&task).cloned().flatten()?;
        let address = state.collectors.get(&name)?.address.clone();
        Some((name, address))
    }

    /// Names and addresses of the collectors that have tasks.
    pub(super) fn addresses(&self) -> Vec<(Name, String)> {
        let state = self.state.lock();
        let placement: BTreeSet<_> = state.placement.values().flatten().collect();
        let known = state.collectors.iter().filter(|(name, _)| placement.contains(name));
        known.map(|(name, it)| (name.clone(), it.address.clone())).collect()
    }

    /// The tasks of a collector. Without a name: of the controller's own, including tasks that are not placed yet.
    pub(super) fn tasks_of(&self, tasks: &Tasks, collector: Option<&Name>) -> Tasks {
        let state = self.state.lock();
        let home = |task: &u64| state.placement.get(task).and_then(Option::as_ref);
        let of = |(task, entered): (&u64, &TaskRecord)| {
            (home(task) == collector).then(|| (*task, entered.clone()))
        };
        tasks.iter().filter_map(of).collect()
    }

    /// The removed tasks of a collector.
    pub(super) fn removed_of(&self, removed: &Removed, collector: &Name) -> Vec<u64> {
        let state = self.state.lock();
        let home = |task: &u64| state.placement.get(task).and_then(Option::as_ref);
        removed.iter().copied().filter(|task| home(task) == Some(collector)).collect()
    }

    /// Where probes deliver tasks of other collectors. The address is empty if the collector has no valid certificate.
    pub(super) fn destinations(
        &self,
        tasks: impl Iterator<Item = u64>,
        members: &ValidCertificates,
    ) -> Vec<Destination> {
        let mut by_address = BTreeMap::<String, Vec<u64>>::new();
        for task in tasks {
            if let Some((name, address)) = self.of(task) {
                let address = if members.has_collector(&name) { address } else { String::new() };
                by_address.entry(address).or_default().push(task);
            }
        }
        by_address.into_iter().map(|(collector, tasks)| Destination { collector, tasks }).collect()
    }
}

impl KnownCollector {
    fn away(address: String) -> Self {
        Self { address, since: None, trouble: String::new() }
    }
}

impl State {
    /// Chooses a collector with a valid certificate for a new task: connected ones first, then the one with the fewest
    /// running tasks. None if there is only the controller's own.
    fn choose(&self, tasks: &Tasks, members: &ValidCertificates) -> Option<&Name> {
        let is_current = |task: &u64| tasks.get(task).is_some_and(|it| it.ended.is_none());
        let load = |name: &Name| {
            let its = self.placement.iter().filter(|(_, home)| home.as_ref() == Some(name));
            its.filter(|(task, _)| is_current(task)).count()
        };
        let known = self.collectors.iter().filter(|(name, _)| members.has_collector(name));
        let chosen = known.min_by_key(|(name, it)| (it.since.is_none(), load(name)));
        chosen.map(|(name, _)| name)
    }
}

/// Places running tasks at the controller's own collector, because the file is new or was lost.
fn keep_here(database: &mut Database, path: &Path, tasks: &Tasks) -> Result<(), DatabaseError> {
    let going_on = || tasks.iter().filter(|(_, it)| it.ended.is_none()).map(|(task, _)| *task);
    database
        .change(|change| going_on().try_for_each(|task| insert(change, task, None).map(drop)))?;
    let count = going_on().count();
    if count > 0 {
        warn!(
            "{} is new: {count} running tasks move to the controller's own collector; restore the file to \
             find results at other collectors, or end the tasks and create them again",
            path.display()
        );
    }
    Ok(())
}

fn insert(change: &Transaction<'_>, task: u64, home: Option<&Name>) -> rusqlite::Result<usize> {
    let values = params![task.cast_signed(), home.map(AsRef::as_ref)];
    change.execute("INSERT INTO home VALUES (?, ?)", values)
}

fn collectors(database: &Connection) -> rusqlite::Result<BTreeMap<Name, KnownCollector>> {
    let mut statement = database.prepare("SELECT name, address FROM collector")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let known = rows.map(|row| {
        let (name, address) = row?;
        // The table has no others.
        Ok(Name::try_from(name).ok().map(|name| (name, KnownCollector::away(address))))
    });
    known.filter_map(Result::transpose).collect()
}

fn placement(database: &Connection) -> rusqlite::Result<BTreeMap<u64, Option<Name>>> {
    let mut statement = database.prepare("SELECT task, collector FROM home")?;
    let rows = statement.query_map([], |row| {
        let name: Option<String> = row.get(1)?;
        Ok((unsigned(row, 0)?, name.and_then(|name| Name::try_from(name).ok())))
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::super::shared_ca::SharedCa;
    use super::*;
    use crate::pki::{Authority, Request, Role, Subject};
    use crate::task::Task;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Tasks 1 to `last`.
    fn tasks(last: u64) -> Tasks {
        let task: Task =
            serde_json::from_str(r#"{"name":"v","measure":"volume","at":"a/i"}"#).unwrap();
        let entered = TaskRecord { task, made: at(1), ended: None };
        (1..=last).map(|number| (number, entered.clone())).collect()
    }

    /// A CA that has enrolled collectors of these names.
    fn authority(folder: &Path, collectors: &[&str]) -> SharedCa {
        let now = at(Timestamp::now().as_second());
        let mut authority = Authority::create(&folder.join("authority"), now).unwrap();
        for text in collectors {
            let subject = Subject { name: name(text), role: Role::Collector };
            let lifetime = SignedDuration::from_mins(1);
            let token = authority.token(&subject, lifetime, now).unwrap();
            let request = Request::new().unwrap().pem().unwrap();
            authority.enrol(&token, &request, now).unwrap();
        }
        SharedCa::new(authority).unwrap()
    }

    fn members(authority: &SharedCa) -> Arc<ValidCertificates> {
        authority.refresh().unwrap();
        let members = authority.members();
        let now = members.borrow();
        Arc::clone(&now)
    }

    #[test]
    fn task_stays_with_its_collector() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one"]);
        let path = folder.path().join("homes");
        let all = tasks(4);
        let placement = TaskPlacement::open(&path, &Tasks::new()).unwrap();
        placement.place(1, &all, &members(&authority)).unwrap();
        placement.connected(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        // A collector that was not enrolled gets no tasks.
        placement.connected(&name("other"), "192.0.2.2:4749".to_owned(), at(5)).unwrap();
        placement.disconnected(&name("one"), at(5));
        for task in [1, 2, 3] {
            placement.place(task, &all, &members(&authority)).unwrap();
        }
        drop(placement);
        let placement = TaskPlacement::open(&path, &all).unwrap();
        let one = Some((name("one"), "192.0.2.1:4749".to_owned()));
        assert_eq!([1, 2, 3, 4].map(|task| placement.of(task)), [None, one.clone(), one, None]);
        let mut last = placement.subscribe();
        placement.connected(&name("one"), "192.0.2.3:4749".to_owned(), at(6)).unwrap();
        assert!(last.has_changed().unwrap());
        last.mark_unchanged();
        let remote = Destination { collector: "192.0.2.3:4749".to_owned(), tasks: vec![2, 3] };
        assert_eq!(placement.destinations(1..5, &members(&authority)), [remote]);
        // The tasks of a revoked collector go nowhere.
        authority.lock().revoke(&name("one"), None, at(Timestamp::now().as_second())).unwrap();
        let nowhere = Destination { collector: String::new(), tasks: vec![2, 3] };
        assert_eq!(placement.destinations(1..5, &members(&authority)), [nowhere]);
        placement.place(4, &all, &members(&authority)).unwrap();
        assert_eq!(placement.of(4), None);
        // Removed tasks stay with their collector, which deletes their results.
        let removed = Removed::from([1, 3, 9]);
        assert_eq!(placement.removed_of(&removed, &name("one")), [3]);
        assert!(placement.removed_of(&removed, &name("other")).is_empty());
    }

    #[test]
    fn task_goes_to_connected_collector_with_fewest_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one", "two"]);
        let placement = TaskPlacement::open(&folder.path().join("homes"), &Tasks::new()).unwrap();
        for text in ["one", "two"] {
            placement.connected(&name(text), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        }
        let mut all = tasks(8);
        let mut place = |number, ended: Option<u64>| {
            if let Some(task) = ended {
                all.get_mut(&task).unwrap().ended = Some(at(9));
            }
            placement.place(number, &all, &members(&authority)).unwrap();
            placement.of(number).unwrap().0.to_string()
        };
        let homes_of = [1, 2, 3, 4].map(|number| place(number, None));
        assert_eq!(homes_of, ["one", "two", "one", "two"]);
        // Ended tasks do not count.
        assert_eq!([place(5, Some(2)), place(6, Some(4))], ["two", "two"]);
        // A connected collector is preferred.
        placement.disconnected(&name("two"), at(5));
        assert_eq!(place(7, None), "one");
        placement.disconnected(&name("one"), at(5));
        assert_eq!(place(8, None), "two");
    }

    #[test]
    fn current_tasks_without_placement_stay_with_the_controller() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one"]);
        let path = folder.path().join("homes");
        let (before, all) = (tasks(2), tasks(3));
        let placement = TaskPlacement::open(&path, &before).unwrap();
        placement.connected(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        let place = |placement: &TaskPlacement| {
            [1, 2, 3].map(|task| {
                placement.place(task, &all, &members(&authority)).unwrap();
                placement.of(task).map(|(name, _)| name.to_string())
            })
        };
        let found = [None, None, Some("one".to_owned())];
        assert_eq!(place(&placement), found);
        drop(placement);
        // The file is not new any more.
        assert_eq!(place(&TaskPlacement::open(&path, &all).unwrap()), found);
    }
}
