//! Which collector each task is at home at, in a file, so that it stays there.
//!
//! A task finds its home when a probe is told of it for the first time, and keeps it: half of what two points saw would
//! mean nothing to anybody else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, params};
use tokio::sync::watch;

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
    /// Those in a file, which is made if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let database = Database::open(path, &FORM)?;
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

    /// Finds a home for a task that has none: with a collector that belongs to the mesh, also while it is away.
    pub(super) fn settle(&self, task: u64, members: &Members) -> Result<(), DatabaseError> {
        let mut state = self.lock();
        if state.homes.contains_key(&task) {
            return Ok(());
        }
        let there: Vec<_> =
            state.collectors.keys().filter(|name| members.has_collector(name)).collect();
        let home = choose(task, &there).cloned();
        let query = "INSERT INTO home VALUES (?, ?)";
        let values = params![task.cast_signed(), home.as_ref().map(AsRef::as_ref)];
        state.database.change(|change| change.execute(query, values))?;
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

/// Which of the collectors a task goes to; none, where there are none but the controller's own. All that is known of a
/// packet at any point has to come to one place, so that this goes by nothing but the task.
fn choose<'a>(task: u64, collectors: &[&'a Name]) -> Option<&'a Name> {
    let nth = usize::try_from(task).unwrap_or(0).checked_rem(collectors.len())?;
    collectors.get(nth).copied()
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

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
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
        let homes = Homes::open(&path).unwrap();
        homes.settle(1, &members(&authority)).unwrap();
        homes.comes(&name("one"), "192.0.2.1:4749".to_owned(), at(5)).unwrap();
        // Of one that nobody has let in nothing is expected.
        homes.comes(&name("other"), "192.0.2.2:4749".to_owned(), at(5)).unwrap();
        homes.goes(&name("one"), at(5));
        for task in [1, 2, 3] {
            homes.settle(task, &members(&authority)).unwrap();
        }
        drop(homes);
        let homes = Homes::open(&path).unwrap();
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
        homes.settle(4, &members(&authority)).unwrap();
        assert_eq!(homes.of(4), None);
    }

    #[test]
    fn tasks_are_shared_among_collectors() {
        let names = [name("one"), name("two")];
        let names: Vec<_> = names.iter().collect();
        assert_eq!(
            [4, 5, 6].map(|task| choose(task, &names)),
            [0, 1, 0].map(|nth| Some(names[nth]))
        );
        assert_eq!(choose(4, &[]), None);
    }
}
