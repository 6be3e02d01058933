//! Who calls, and whether they may.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use thiserror::Error;
use tonic::Status;
use tracing::warn;

use crate::Name;
use crate::pki::{self, Authority, Role, Serial, Subject};
use crate::transport::{Known, Peer};

/// Lets callers in whose certificates are good.
pub(crate) struct Gate(Mutex<Authority>);

/// Somebody with a certificate that was good when they called, or who needs none.
#[derive(Clone)]
pub(crate) struct Caller {
    subject: Subject,
    serial: Option<Serial>,
    gate: Arc<Gate>,
}

/// Why somebody may not do what they want.
#[derive(Debug, Error)]
pub(crate) enum Denied {
    #[error("this takes a certificate of the mesh: `wirestamp pki` makes one")]
    Nobody,
    #[error("the certificate of the {0} is not good any more")]
    NotGood(Subject),
    #[error("the {0} may not do this")]
    Role(Subject),
    #[error("whether certificates are good is not known: {0}")]
    Authority(#[from] pki::Error),
}

impl Gate {
    /// By what an authority says.
    pub(crate) fn new(authority: Authority) -> Self {
        Self(Mutex::new(authority))
    }

    /// The authority.
    pub(crate) fn authority(&self) -> MutexGuard<'_, Authority> {
        // What it does becomes true as a whole or not at all, also where a thread panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls, if they have one of these roles.
    pub(crate) fn caller(
        self: &Arc<Self>,
        call: &Extensions,
        may: &[Role],
    ) -> Result<Caller, Denied> {
        let peer = call.get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer);
        let admitted = self.admitted(peer, may);
        if let (Err(denied), Some(peer)) = (&admitted, peer) {
            warn!("refused a call from {}: {denied}", peer.address);
        }
        admitted
    }

    fn admitted(self: &Arc<Self>, peer: Option<&Peer>, may: &[Role]) -> Result<Caller, Denied> {
        let (subject, serial) = match peer.map(|peer| &peer.known) {
            Some(Known::Certificate(subject, serial)) => (subject.clone(), Some(*serial)),
            Some(Known::Local) => {
                (Subject { name: Name::of_somebody_local(), role: Role::Operator }, None)
            }
            Some(Known::Not) | None => return Err(Denied::Nobody),
        };
        let caller = Caller { subject, serial, gate: Arc::clone(self) };
        caller.check()?;
        let is_one = may.contains(&caller.subject.role);
        if is_one { Ok(caller) } else { Err(Denied::Role(caller.subject)) }
    }
}

impl Caller {
    /// Who it is.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The number of its certificate.
    pub(crate) fn serial(&self) -> Result<Serial, Denied> {
        self.serial.ok_or(Denied::Nobody)
    }

    /// Whether the certificate is still good, if it takes one.
    pub(crate) fn check(&self) -> Result<(), Denied> {
        let Some(serial) = self.serial else { return Ok(()) };
        let is_good = self.gate.authority().is_good(serial, Timestamp::now())?;
        if is_good { Ok(()) } else { Err(Denied::NotGood(self.subject.clone())) }
    }
}

impl From<Denied> for Status {
    fn from(denied: Denied) -> Self {
        let why = denied.to_string();
        match denied {
            Denied::Nobody | Denied::NotGood(_) => Self::unauthenticated(why),
            Denied::Role(_) => Self::permission_denied(why),
            Denied::Authority(_) => Self::unavailable(why),
        }
    }
}
