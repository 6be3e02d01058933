//! The probes that are there, and how they do.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::Health;
use crate::Name;

/// Which probes attend.
#[derive(Default)]
pub struct Attendance {
    all: Mutex<BTreeMap<Name, Attending>>,
    changed: watch::Sender<()>,
}

/// A probe that attends, or did.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Attending {
    /// Where it is.
    #[schema(value_type = String)]
    pub address: SocketAddr,
    /// Since when.
    pub since: Timestamp,
    /// When it was heard of last.
    pub heard: Timestamp,
    /// Until when it attended, if it does not any more.
    #[schema(required)]
    pub until: Option<Timestamp>,
    /// How it does, as it said last.
    #[schema(required)]
    pub health: Option<Health>,
}

impl Attendance {
    /// All of them, also those that do not attend any more.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Name, Attending> {
        self.lock().clone()
    }

    /// Where a probe is, or was last.
    pub(super) fn address(&self, probe: &Name) -> Option<IpAddr> {
        self.lock().get(probe).map(|it| it.address.ip().to_canonical())
    }

    /// Tells whenever something of that changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// A probe comes.
    pub(super) fn comes(&self, probe: &Name, address: SocketAddr, now: Timestamp) {
        let attending = Attending { address, since: now, heard: now, until: None, health: None };
        self.lock().insert(probe.clone(), attending);
        self.changed.send_replace(());
    }

    /// A probe that came at a time says how it does.
    pub(super) fn says(&self, probe: &Name, came: Timestamp, health: Health, now: Timestamp) {
        self.change(probe, came, |it| (it.heard, it.health) = (now, Some(health)));
    }

    /// A probe that came at a time is gone.
    pub(super) fn goes(&self, probe: &Name, came: Timestamp, now: Timestamp) {
        self.change(probe, came, |it| it.until = Some(now));
    }

    /// Changes what is known of a probe, unless it has come again since.
    fn change(&self, probe: &Name, came: Timestamp, change: impl FnOnce(&mut Attending)) {
        if let Some(attending) = self.lock().get_mut(probe).filter(|it| it.since == came) {
            change(attending);
            self.changed.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Attending>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
