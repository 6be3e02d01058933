//! Which collector each task is at home at, in a file, so that it stays there.
//!
//! A task finds its home when a probe is told of it for the first time, and keeps it: half of what two points saw would
//! mean nothing to anybody else. Where the file is new and tasks go on, nobody knows where they had their homes, and they
//! stay with the controller's own collector. A task moves by being ended and entered anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};
use tokio::sync::watch;
use tracing::warn;

use super::members::Members;
use crate::database::{Database, Form, unsigned};
use crate::task::{Entered, Tasks};
use crate::v1::Destination;
use crate::{DatabaseError, Name};

/// "WSHO".
const FORM: Form = Form { application: 0x5753_484f, version: 1, tables: TABLES, upgrades: &[] };

/// A task without a collector is at home at the controller's own.
const TABLES: &str = "
    BEGIN;
    CREATE TABLE collector (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT;
    CREATE TABLE home (task INTEGER PRIMARY KEY, collector TEXT) STRICT;
    PRAGMA application_id = 0x5753484f;
    PRAGMA user_version = 1;
    COMMIT;";

/// The homes of tasks, and the collectors that there are.
pub(super) struct Homes {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    database: Database,
    collectors: BTreeMap<Name, Known>,
    /// None: the controller's own collector.
    homes: BTreeMap<u64, Option<Name>>,
}

/// A collector that attends, or did.
struct Known {
    /// Where it is reached.
    address: String,
    /// Since when it attends, if it does.
    since: Option<Timestamp>,
}

impl Homes {
    /// Those in a file, which is made if there is none: then all of these tasks are at home at the controller's own
    /// collector.
    pub(super) fn open(path: &Path, tasks: &Tasks) -> Result<Self, DatabaseError> {
        let is_new = path.metadata().map_or(true, |it| it.len() == 0);
        let mut database = Database::open(path, &FORM)?;
        if is_new {
            keep_here(&mut database, path, tasks)?;
        }
        let (collectors, homes) = database.read(|it| Ok((collectors(it)?, homes(it)?)))?;
        let state = Mutex::new(State { database, collectors, homes });
        Ok(Self { state, changed: watch::Sender::default() })
    }

    /// Tells whenever something of that changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// A collector comes, which is reached at an address.
    pub(super) fn comes(
        &self,
        name: &Name,
        address: String,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let mut state = self.lock();
        if state.collectors.get(name).is_none_or(|known| known.address != address) {
            let query = "INSERT INTO collector VALUES (?1, ?2)
                         ON CONFLICT (name) DO UPDATE SET address = ?2";
            let values = params![name.as_ref(), address];
            state.database.change(|change| change.execute(query, values))?;
        }
        state.collectors.insert(name.clone(), Known { address, since: Some(now) });
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// One that came at a time is gone, unless it has come again since.
    pub(super) fn goes(&self, name: &Name, came: Timestamp) {
        if let Some(known) = self.lock().collectors.get_mut(name)
            && known.since == Some(came)
        {
            known.since = None;
        }
    }

    /// The collectors, and whether they attend.
    pub(super) fn collectors(&self) -> Vec<(Name, bool)> {
        let state = self.lock();
        state.collectors.iter().map(|(name, it)| (name.clone(), it.since.is_some())).collect()
    }

    /// Finds a home for one of these tasks, if it has none.
    pub(super) fn settle(
        &self,
        task: u64,
        tasks: &Tasks,
        members: &Members,
    ) -> Result<(), DatabaseError> {
        let mut state = self.lock();
        if state.homes.contains_key(&task) {
            return Ok(());
        }
        let home = state.choose(tasks, members).cloned();
        state.database.change(|change| insert(change, task, home.as_ref()))?;
        state.homes.insert(task, home);
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// The collector that a task is at home at, and where that is reached; none if it is the controller's own.
    pub(super) fn of(&self, task: u64) -> Option<(Name, String)> {
        let state = self.lock();
        let name = state.homes.get(&task).cloned().flatten()?;
        let address = state.collectors.get(&name)?.address.clone();
        Some((name, address))
    }

    /// The collectors at which tasks are at home, and where they are reached.
    pub(super) fn addresses(&self) -> Vec<(Name, String)> {
        let state = self.lock();
        let homes: BTreeSet<_> = state.homes.values().flatten().collect();
        let known = state.collectors.iter().filter(|(name, _)| homes.contains(name));
        known.map(|(name, it)| (name.clone(), it.address.clone())).collect()
    }

    /// Those of the tasks that are at home at a collector: without a name, at the controller's own or nowhere yet.
    pub(super) fn tasks_of(&self, tasks: &Tasks, collector: Option<&Name>) -> Tasks {
        let state = self.lock();
        let home = |task: &u64| state.homes.get(task).and_then(Option::as_ref);
        let of = |(task, entered): (&u64, &Entered)| {
            (home(task) == collector).then(|| (*task, entered.clone()))
        };
        tasks.iter().filter_map(of).collect()
    }

    /// Where tasks are delivered that are not at home at the controller's own collector. Nobody is sent to a collector
    /// that does not belong to the mesh any more.
    pub(super) fn destinations(
        &self,
        tasks: impl Iterator<Item = u64>,
        members: &Members,
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // A change is made as a whole or not at all, also where a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The collector that a new task goes to, of those that belong to the mesh: one that attends, if any does, and of
    /// these the one with the fewest tasks that go on. None, where there are none but the controller's own.
    fn choose(&self, tasks: &Tasks, members: &Members) -> Option<&Name> {
        let goes_on = |task: &u64| tasks.get(task).is_some_and(|it| it.ended.is_none());
        let load = |name: &Name| {
            let its = self.homes.iter().filter(|(_, home)| home.as_ref() == Some(name));
            its.filter(|(task, _)| goes_on(task)).count()
        };
        let known = self.collectors.iter().filter(|(name, _)| members.has_collector(name));
        let chosen = known.min_by_key(|(name, it)| (it.since.is_none(), load(name)));
        chosen.map(|(name, _)| name)
    }
}

/// Of tasks that were begun without the file, or with one that is lost: what came of them is here, or nowhere.
fn keep_here(database: &mut Database, path: &Path, tasks: &Tasks) -> Result<(), DatabaseError> {
    let going_on = || tasks.iter().filter(|(_, it)| it.ended.is_none()).map(|(task, _)| *task);
    database
        .change(|change| going_on().try_for_each(|task| insert(change, task, None).map(drop)))?;
    let count = going_on().count();
    if count > 0 {
        warn!(
            "{} is new: {count} tasks go on with the controller's own collector; what others have of them is \
             found when the file is put back, and they move when they are ended and entered anew",
            path.display()
        );
    }
    Ok(())
}

fn insert(change: &Transaction<'_>, task: u64, home: Option<&Name>) -> rusqlite::Result<usize> {
    let values = params![task.cast_signed(), home.map(AsRef::as_ref)];
    change.execute("INSERT INTO home VALUES (?, ?)", values)
}

fn collectors(database: &Connection) -> rusqlite::Result<BTreeMap<Name, Known>> {
    let mut statement = database.prepare("SELECT name, address FROM collector")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let known = rows.map(|row| {
        let (name, address) = row?;
        // There are no others.
        Ok(Name::try_from(name).ok().map(|name| (name, Known { address, since: None })))
    });
    known.filter_map(Result::transpose).collect()
}

fn homes(database: &Connection) -> rusqlite::Result<BTreeMap<u64, Option<Name>>> {
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

    use super::super::members::Shared;
    use super::*;
    use crate::pki::{Authority, Request, Role, Subject};
    use crate::task::Task;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Tasks of these numbers, from 1 on.
    fn tasks(last: u64) -> Tasks {
        let task: Task =
            serde_json::from_str(r#"{"name":"v","measure":"volume","at":"a/i"}"#).unwrap();
        let entered = Entered { task, made: at(1), ended: None };
        (1..=last).map(|number| (number, entered.clone())).collect()
    }

    /// An authority that has let in collectors of these names.
    fn authority(folder: &Path, collectors: &[&str]) -> Shared {
        let now = at(Timestamp::now().as_second());
        let mut authority = Authority::create(&folder.join("authority"), now).unwrap();
        for text in collectors {
            let subject = Subject { name: name(text), role: Role::Collector };
            let lifetime = SignedDuration::from_mins(1);
            let token = authority.token(&subject, lifetime, now).unwrap();
            let request = Request::new().unwrap().pem().unwrap();
            authority.enrol(&token, &request, now).unwrap();
        }
        Shared::new(authority).unwrap()
    }

    fn members(authority: &Shared) -> Arc<Members> {
        authority.look().unwrap();
        let members = authority.members();
        let now = members.borrow();
        Arc::clone(&now)
    }

    #[test]
    fn a_task_stays_where_it_found_its_home() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one"]);
        let path = folder.path().join("homes");
        let all = tasks(4);
        let homes = Homes::open(&path, &Tasks::new()).unwrap();
        homes.settle(1, &all, &members(&authority)).unwrap();
        homes.comes(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        // Of one that nobody has let in nothing is expected.
        homes.comes(&name("other"), "192.0.2.2:4749".to_owned(), at(5)).unwrap();
        homes.goes(&name("one"), at(5));
        for task in [1, 2, 3] {
            homes.settle(task, &all, &members(&authority)).unwrap();
        }
        drop(homes);
        let homes = Homes::open(&path, &all).unwrap();
        let one = Some((name("one"), "192.0.2.1:4749".to_owned()));
        assert_eq!([1, 2, 3, 4].map(|task| homes.of(task)), [None, one.clone(), one, None]);
        let mut told = homes.subscribe();
        homes.comes(&name("one"), "192.0.2.3:4749".to_owned(), at(6)).unwrap();
        assert!(told.has_changed().unwrap());
        told.mark_unchanged();
        let elsewhere = Destination { collector: "192.0.2.3:4749".to_owned(), tasks: vec![2, 3] };
        assert_eq!(homes.destinations(1..5, &members(&authority)), [elsewhere]);
        // To one that was revoked nothing goes, and to nobody else either.
        authority.lock().revoke(&name("one"), None, at(Timestamp::now().as_second())).unwrap();
        let nowhere = Destination { collector: String::new(), tasks: vec![2, 3] };
        assert_eq!(homes.destinations(1..5, &members(&authority)), [nowhere]);
        homes.settle(4, &all, &members(&authority)).unwrap();
        assert_eq!(homes.of(4), None);
    }

    #[test]
    fn a_task_goes_to_who_is_there_and_has_the_fewest_that_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one", "two"]);
        let homes = Homes::open(&folder.path().join("homes"), &Tasks::new()).unwrap();
        for text in ["one", "two"] {
            homes.comes(&name(text), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        }
        let mut all = tasks(8);
        let mut settle = |number, ended: Option<u64>| {
            if let Some(task) = ended {
                all.get_mut(&task).unwrap().ended = Some(at(9));
            }
            homes.settle(number, &all, &members(&authority)).unwrap();
            homes.of(number).unwrap().0.to_string()
        };
        let homes_of = [1, 2, 3, 4].map(|number| settle(number, None));
        assert_eq!(homes_of, ["one", "two", "one", "two"]);
        // Where tasks were ended there is room for others.
        assert_eq!([settle(5, Some(2)), settle(6, Some(4))], ["two", "two"]);
        // Nobody waits for one who is away while another is there.
        homes.goes(&name("two"), at(5));
        assert_eq!(settle(7, None), "one");
        homes.goes(&name("one"), at(5));
        assert_eq!(settle(8, None), "two");
    }

    #[test]
    fn tasks_that_go_on_where_the_file_is_new_stay_with_the_controller() {
        let folder = tempfile::tempdir().unwrap();
        let authority = authority(folder.path(), &["one"]);
        let path = folder.path().join("homes");
        let (before, all) = (tasks(2), tasks(3));
        let homes = Homes::open(&path, &before).unwrap();
        homes.comes(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        let settle = |homes: &Homes| {
            [1, 2, 3].map(|task| {
                homes.settle(task, &all, &members(&authority)).unwrap();
                homes.of(task).map(|(name, _)| name.to_string())
            })
        };
        let found = [None, None, Some("one".to_owned())];
        assert_eq!(settle(&homes), found);
        drop(homes);
        // It is not new any more.
        assert_eq!(settle(&Homes::open(&path, &all).unwrap()), found);
    }
}
