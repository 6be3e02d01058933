//! The probes and their state.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::health::ProbeHealth;
use crate::Name;

/// A connected probe that has not sent a report for this long may be gone: another one with the same certificate is
/// accepted. Reports come every ten seconds.
const SILENCE: SignedDuration = SignedDuration::from_secs(30);

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
    /// Address of the last other probe with the same certificate, which was refused.
    #[schema(required, value_type = Option<String>)]
    pub refused: Option<SocketAddr>,
    /// When it was refused.
    #[schema(required)]
    pub refused_at: Option<Timestamp>,
    /// Refused connections of other probes with the same certificate, since the controller started.
    #[serde(skip)]
    pub(super) refusals: u64,
    /// The run of the probe; 0 if it is unknown.
    #[serde(skip)]
    pub(super) instance: u64,
}

impl RegisteredProbe {
    /// Its last report, while it is connected.
    pub(super) fn current_health(&self) -> Option<&ProbeHealth> {
        self.health.as_ref().filter(|_| self.until.is_none())
    }

    /// Whether a probe with the same certificate is another one, and this one is still there.
    fn excludes(&self, instance: u64, now: Timestamp) -> bool {
        let is_other = self.instance != instance && self.instance != 0 && instance != 0;
        is_other && self.until.is_none() && now.duration_since(self.last_message) < SILENCE
    }
}

impl ProbeRegistry {
    /// All probes, also disconnected ones.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Name, RegisteredProbe> {
        self.all.lock().clone()
    }

    /// Current or last address of a probe.
    pub(crate) fn address(&self, probe: &Name) -> Option<IpAddr> {
        self.all.lock().get(probe).map(|it| it.address.ip().to_canonical())
    }

    /// Whether a probe is connected.
    pub(super) fn is_connected(&self, probe: &Name) -> bool {
        self.all.lock().get(probe).is_some_and(|it| it.until.is_none())
    }

    /// Notified of each change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Registers a run of a probe that connected at `came`.
    ///
    /// # Errors
    /// If another probe with the same certificate is connected; with its address.
    pub(crate) fn connected(
        &self,
        probe: &Name,
        (address, instance): (SocketAddr, u64),
        came: Timestamp,
        now: Timestamp,
    ) -> Result<(), SocketAddr> {
        let mut all = self.all.lock();
        let mut known = all.get_mut(probe);
        if let Some(other) = known.as_mut().filter(|known| known.excludes(instance, now)) {
            (other.refused, other.refused_at) = (Some(address), Some(now));
            other.refusals += 1;
            self.changed.send_replace(());
            return Err(other.address);
        }
        let registered = RegisteredProbe {
            address,
            since: came,
            last_message: now,
            until: None,
            health: None,
            refused: None,
            refused_at: None,
            refusals: known.map_or(0, |it| it.refusals),
            instance,
        };
        all.insert(probe.clone(), registered);
        drop(all);
        self.changed.send_replace(());
        Ok(())
    }

    /// Stores a report of a probe that connected at `came`. Returns false if the probe has connected again since.
    pub(super) fn report(
        &self,
        probe: &Name,
        came: Timestamp,
        health: ProbeHealth,
        now: Timestamp,
    ) -> bool {
        self.change(probe, came, |it| (it.last_message, it.health) = (now, Some(health)))
    }

    /// Marks a probe that connected at `came` as disconnected.
    pub(super) fn disconnected(&self, probe: &Name, came: Timestamp, now: Timestamp) {
        let _ = self.change(probe, came, |it| it.until = Some(now));
    }

    /// Changes the entry of a probe, unless it has connected again since. Returns whether it did.
    fn change(
        &self,
        probe: &Name,
        came: Timestamp,
        change: impl FnOnce(&mut RegisteredProbe),
    ) -> bool {
        let mut all = self.all.lock();
        let Some(registered) = all.get_mut(probe).filter(|it| it.since == came) else {
            return false;
        };
        change(registered);
        drop(all);
        self.changed.send_replace(());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn second_probe_with_the_same_certificate_is_refused() {
        let (registry, name): (_, Name) = (ProbeRegistry::default(), "roof".parse().unwrap());
        let [one, other] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 7)));
        let connected = |from, second| registry.connected(&name, from, at(second), at(second));
        assert_eq!(connected((one, 5), 0), Ok(()));
        assert_eq!(connected((other, 6), 10), Err(one));
        let first = &registry.all()[&name];
        assert_eq!((first.refused, first.refused_at), (Some(other), Some(at(10))));
        // The same probe connects again, from wherever.
        assert_eq!(connected((other, 5), 20), Ok(()));
        // It is gone: silent, or disconnected.
        assert_eq!(connected((one, 6), 50), Ok(()));
        registry.disconnected(&name, at(50), at(51));
        assert_eq!(connected((other, 7), 52), Ok(()));
        // Earlier versions have no number.
        assert_eq!(connected((one, 0), 53), Ok(()));
        let last = &registry.all()[&name];
        assert_eq!((last.refused, last.refusals), (None, 1));
    }
}
