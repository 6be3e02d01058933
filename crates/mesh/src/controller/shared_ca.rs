//! The CA, shared between its users, and the list of valid certificates.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::task::block_in_place;
use tokio::time;
use tracing::warn;

use crate::Name;
use crate::authorizer::CertificateList;
use crate::pki::{self, Authority, Entry, Role, Serial};
use crate::v1::Good;

/// How often the CA is checked for changes that `wirestamp pki` made. A collector may accept a revoked certificate for
/// this long.
const INTERVAL: Duration = Duration::from_secs(1);

/// The CA and the certificates that were valid at the last check.
pub(super) struct SharedCa {
    authority: Mutex<Authority>,
    members: watch::Sender<Arc<ValidCertificates>>,
}

impl SharedCa {
    pub(super) fn new(authority: Authority) -> pki::Result<Self> {
        let members = watch::Sender::new(Arc::new(ValidCertificates::now(&authority)?));
        Ok(Self { authority: Mutex::new(authority), members })
    }

    /// The CA, locked.
    pub(super) fn lock(&self) -> MutexGuard<'_, Authority> {
        // Each change of it is atomic, even if a thread panics.
        self.authority.lock()
    }

    /// The valid certificates and their changes.
    pub(super) fn members(&self) -> watch::Receiver<Arc<ValidCertificates>> {
        self.members.subscribe()
    }

    /// Checks for changes.
    pub(super) fn refresh(&self) -> pki::Result<()> {
        // The lock is held so that a later check has newer data.
        let authority = self.lock();
        let now = ValidCertificates::now(&authority)?;
        self.members.send_if_modified(|before| {
            let has_changed = **before != now;
            if has_changed {
                *before = Arc::new(now);
            }
            has_changed
        });
        Ok(())
    }

    /// Checks for changes forever.
    pub(super) async fn poll(&self) {
        let (mut interval, mut last) = (time::interval(INTERVAL), None);
        loop {
            interval.tick().await;
            let why = block_in_place(|| self.refresh()).err().map(|error| error.to_string());
            if let Some(why) = why.as_ref().filter(|_| why != last) {
                warn!("cannot read the valid certificates: {why}; retrying");
            }
            last = why;
        }
    }
}

impl CertificateList for SharedCa {
    fn has(&self, serial: Serial, now: Timestamp) -> pki::Result<bool> {
        self.lock().is_good(serial, now)
    }
}

/// The valid certificates.
#[derive(PartialEq, Eq)]
pub(super) struct ValidCertificates(Vec<Entry>);

impl ValidCertificates {
    /// The certificates that are valid now.
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

    /// As sent to collectors.
    pub(super) fn good(&self) -> Vec<Good> {
        let good =
            |it: &Entry| Good { serial: it.serial.bytes().to_vec(), until: it.expires.as_second() };
        self.0.iter().map(good).collect()
    }
}
