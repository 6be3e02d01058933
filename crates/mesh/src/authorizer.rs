//! Authorization of callers, by certificate and role.

use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use thiserror::Error;
use tonic::Status;
use tracing::warn;

use crate::Name;
use crate::pki::{self, Role, Serial, Subject};
use crate::transport::{Peer, PeerIdentity};

/// The valid certificates: of the CA itself, or a copy at a collector.
pub(crate) trait CertificateList: Send + Sync {
    /// Whether the certificate with this serial number is valid at `now`.
    ///
    /// # Errors
    /// When the list cannot be read.
    fn has(&self, serial: Serial, now: Timestamp) -> pki::Result<bool>;
}

/// Admits callers with a valid certificate.
pub(crate) struct Authorizer(Arc<dyn CertificateList>);

/// An admitted caller: its certificate was valid at the call, or it needs none.
#[derive(Clone)]
pub(crate) struct Caller {
    subject: Subject,
    serial: Option<Serial>,
    authorizer: Arc<Authorizer>,
}

/// Why a caller is rejected.
#[derive(Debug, Error)]
pub(crate) enum AuthorizationError {
    #[error("this requires a certificate of the mesh; `wirestamp pki` issues one")]
    NoCertificate,
    #[error("the certificate of the {0} is not valid any more")]
    NotValid(Subject),
    #[error("the {0} may not do this")]
    Role(Subject),
    #[error("cannot check the certificate: {0}")]
    Authority(#[from] pki::Error),
}

impl Authorizer {
    /// Authorizes by a list of valid certificates.
    pub(crate) fn new(list: Arc<dyn CertificateList>) -> Self {
        Self(list)
    }

    /// The caller, if it has one of these roles.
    pub(crate) fn caller(
        self: &Arc<Self>,
        call: &Extensions,
        may: &[Role],
    ) -> Result<Caller, AuthorizationError> {
        let peer = call.get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer);
        let caller = self.admit(peer, may);
        if let (Err(denied), Some(peer)) = (&caller, peer) {
            warn!("rejected a call from {}: {denied}", peer.address);
        }
        caller
    }

    /// Checks that a certificate is valid now.
    #[cfg(feature = "kafka")]
    pub(crate) fn check(
        &self,
        subject: &Subject,
        serial: Serial,
    ) -> Result<(), AuthorizationError> {
        let is_good = self.0.has(serial, Timestamp::now())?;
        if is_good { Ok(()) } else { Err(AuthorizationError::NotValid(subject.clone())) }
    }

    fn admit(
        self: &Arc<Self>,
        peer: Option<&Peer>,
        may: &[Role],
    ) -> Result<Caller, AuthorizationError> {
        let (subject, serial) = match peer.map(|peer| &peer.identity) {
            Some(PeerIdentity::Certificate(subject, serial)) => (subject.clone(), Some(*serial)),
            Some(PeerIdentity::Local) => {
                (Subject { name: Name::of_local_caller(), role: Role::Operator }, None)
            }
            Some(PeerIdentity::Anonymous) | None => return Err(AuthorizationError::NoCertificate),
        };
        let caller = Caller { subject, serial, authorizer: Arc::clone(self) };
        caller.check()?;
        let is_one = may.contains(&caller.subject.role);
        if is_one { Ok(caller) } else { Err(AuthorizationError::Role(caller.subject)) }
    }
}

impl Caller {
    /// Name and role.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Serial number of its certificate.
    pub(crate) fn serial(&self) -> Result<Serial, AuthorizationError> {
        self.serial.ok_or(AuthorizationError::NoCertificate)
    }

    /// Checks that the certificate, if any, is still valid.
    pub(crate) fn check(&self) -> Result<(), AuthorizationError> {
        let Some(serial) = self.serial else { return Ok(()) };
        let is_good = self.authorizer.0.has(serial, Timestamp::now())?;
        if is_good { Ok(()) } else { Err(AuthorizationError::NotValid(self.subject.clone())) }
    }
}

impl From<AuthorizationError> for Status {
    fn from(denied: AuthorizationError) -> Self {
        let why = denied.to_string();
        match denied {
            AuthorizationError::NoCertificate | AuthorizationError::NotValid(_) => {
                Self::unauthenticated(why)
            }
            AuthorizationError::Role(_) => Self::permission_denied(why),
            AuthorizationError::Authority(_) => Self::unavailable(why),
        }
    }
}
