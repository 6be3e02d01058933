//! The authority, for all who ask it at the same time, and the certificates that are good by its word.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::block_in_place;
use tokio::time;
use tracing::warn;

use crate::Name;
use crate::gate::Roll;
use crate::pki::{self, Authority, Entry, Role, Serial};
use crate::v1::Good;

/// How often the authority is asked whether something has changed: `wirestamp pki` tells nobody. So long a collector
/// may let somebody in who was revoked.
const INTERVAL: Duration = Duration::from_secs(1);

/// The authority, and what it said last of who belongs to the mesh.
pub(super) struct Shared {
    authority: Mutex<Authority>,
    members: watch::Sender<Arc<Members>>,
}

impl Shared {
    pub(super) fn new(authority: Authority) -> pki::Result<Self> {
        let members = watch::Sender::new(Arc::new(Members::now(&authority)?));
        Ok(Self { authority: Mutex::new(authority), members })
    }

    /// It, for one at a time.
    pub(super) fn lock(&self) -> MutexGuard<'_, Authority> {
        // What it does becomes true as a whole or not at all, also where a thread panics.
        self.authority.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificates that are good, and whenever these are others.
    pub(super) fn members(&self) -> watch::Receiver<Arc<Members>> {
        self.members.subscribe()
    }

    /// Looks whether they are others.
    pub(super) fn look(&self) -> pki::Result<()> {
        // Whoever looks later knows more.
        let authority = self.lock();
        let now = Members::now(&authority)?;
        self.members.send_if_modified(|before| {
            let is_other = **before != now;
            if is_other {
                *before = Arc::new(now);
            }
            is_other
        });
        Ok(())
    }

    /// Looks again and again, for ever.
    pub(super) async fn watch_over(&self) {
        let (mut interval, mut told) = (time::interval(INTERVAL), None);
        loop {
            interval.tick().await;
            let why = block_in_place(|| self.look()).err().map(|error| error.to_string());
            if let Some(why) = why.as_ref().filter(|_| why != told) {
                warn!("cannot find out whose certificates are good: {why}; tries again");
            }
            told = why;
        }
    }
}

impl Roll for Shared {
    fn has(&self, serial: Serial, now: Timestamp) -> pki::Result<bool> {
        self.lock().is_good(serial, now)
    }
}

/// The certificates that are good.
#[derive(PartialEq, Eq)]
pub(super) struct Members(Vec<Entry>);

impl Members {
    /// Those of now.
    fn now(authority: &Authority) -> pki::Result<Self> {
        let (mut entries, now) = (authority.entries()?, Timestamp::now());
        entries.retain(|entry| entry.is_good(now));
        Ok(Self(entries))
    }

    /// Whether a collector of this name has one.
    pub(super) fn has_collector(&self, name: &Name) -> bool {
        let is_it = |it: &Entry| it.subject.role == Role::Collector && it.subject.name == *name;
        self.0.iter().any(is_it)
    }

    /// As collectors are told.
    pub(super) fn good(&self) -> Vec<Good> {
        let good =
            |it: &Entry| Good { serial: it.serial.bytes().to_vec(), until: it.expires.as_second() };
        self.0.iter().map(good).collect()
    }
}
