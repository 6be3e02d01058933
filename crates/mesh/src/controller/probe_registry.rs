//! The probes and their state.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::health::ProbeHealth;
use crate::Name;

/// Registry of probes.
#[derive(Default)]
pub struct ProbeRegistry {
    all: Mutex<BTreeMap<Name, RegisteredProbe>>,
    changed: watch::Sender<()>,
}

/// A probe that is or was connected.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Attending)]
pub struct RegisteredProbe {
    /// Address of its connection.
    #[schema(value_type = String)]
    pub address: SocketAddr,
    /// When it connected.
    pub since: Timestamp,
    /// When its last report arrived.
    #[serde(rename = "heard")]
    pub last_message: Timestamp,
    /// When it disconnected; none while it is connected.
    #[schema(required)]
    pub until: Option<Timestamp>,
    /// Its last report.
    #[schema(required)]
    pub health: Option<ProbeHealth>,
}

impl ProbeRegistry {
    /// All probes, also disconnected ones.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Name, RegisteredProbe> {
        self.all.lock().clone()
    }

    /// Current or last address of a probe.
    pub(super) fn address(&self, probe: &Name) -> Option<IpAddr> {
        self.all.lock().get(probe).map(|it| it.address.ip().to_canonical())
    }

    /// Notified of each change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Registers a probe that connected.
    pub(super) fn connected(&self, probe: &Name, address: SocketAddr, now: Timestamp) {
        let attending =
            RegisteredProbe { address, since: now, last_message: now, until: None, health: None };
        self.all.lock().insert(probe.clone(), attending);
        self.changed.send_replace(());
    }

    /// Stores a report of a probe that connected at `came`.
    pub(super) fn report(
        &self,
        probe: &Name,
        came: Timestamp,
        health: ProbeHealth,
        now: Timestamp,
    ) {
        self.change(probe, came, |it| (it.last_message, it.health) = (now, Some(health)));
    }

    /// Marks a probe that connected at `came` as disconnected.
    pub(super) fn disconnected(&self, probe: &Name, came: Timestamp, now: Timestamp) {
        self.change(probe, came, |it| it.until = Some(now));
    }

    /// Changes the entry of a probe, unless it has connected again since.
    fn change(&self, probe: &Name, came: Timestamp, change: impl FnOnce(&mut RegisteredProbe)) {
        if let Some(attending) = self.all.lock().get_mut(probe).filter(|it| it.since == came) {
            change(attending);
            self.changed.send_replace(());
        }
    }
}
