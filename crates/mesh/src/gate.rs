//! Who calls, and whether they may.

use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use thiserror::Error;
use tonic::Status;
use tracing::warn;

use crate::Name;
use crate::pki::{self, Role, Serial, Subject};
use crate::transport::{Known, Peer};

/// Whoever knows which certificates are good: the authority, or somebody whom its owner has told.
pub(crate) trait Roll: Send + Sync {
    /// Whether the certificate of a number is good at a time.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn has(&self, serial: Serial, now: Timestamp) -> pki::Result<bool>;
}

/// Lets callers in whose certificates are good.
pub(crate) struct Gate(Arc<dyn Roll>);

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
    /// By what somebody says who knows.
    pub(crate) fn new(roll: Arc<dyn Roll>) -> Self {
        Self(roll)
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
        let is_good = self.gate.0.has(serial, Timestamp::now())?;
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
