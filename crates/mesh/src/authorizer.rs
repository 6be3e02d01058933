//! Authorization of callers, by certificate and role.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use parking_lot::Mutex;
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

/// How long a certificate is valid for the messages of a stream after it was found in the list. A revocation takes effect
/// at the first message after this time: with hundreds of streams, a look at the list for each message would cost more
/// than the message.
const VALIDITY: Duration = Duration::from_secs(1);

/// Admits callers with a valid certificate.
pub(crate) struct Authorizer {
    list: Arc<dyn CertificateList>,
    /// When valid certificates were looked up last.
    found: Mutex<HashMap<Serial, Instant>>,
}

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
    #[error("permission denied: the role of the {0} does not allow this request")]
    Role(Subject),
    #[error("cannot check the certificate: {0}")]
    Authority(#[from] pki::Error),
}

impl Authorizer {
    /// Authorizes by a list of valid certificates.
    pub(crate) fn new(list: Arc<dyn CertificateList>) -> Self {
        Self { list, found: Mutex::default() }
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
    pub(crate) fn check(
        &self,
        subject: &Subject,
        serial: Serial,
    ) -> Result<(), AuthorizationError> {
        if self.list.has(serial, Timestamp::now())? {
            let mut found = self.found.lock();
            found.retain(|_, at| at.elapsed() < VALIDITY);
            found.insert(serial, Instant::now());
            return Ok(());
        }
        self.found.lock().remove(&serial);
        Err(AuthorizationError::NotValid(subject.clone()))
    }

    /// Whether a certificate was valid a moment ago.
    fn was_valid(&self, serial: Serial) -> bool {
        self.found.lock().get(&serial).is_some_and(|at| at.elapsed() < VALIDITY)
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
        if let Some(serial) = serial {
            self.check(&subject, serial)?;
        }
        let caller = Caller { subject, serial, authorizer: Arc::clone(self) };
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
        self.serial.map_or(Ok(()), |serial| self.authorizer.check(&self.subject, serial))
    }

    /// Like [`Self::check`], for streams of many messages: the certificate is looked up at most once a second.
    pub(crate) fn check_message(&self) -> Result<(), AuthorizationError> {
        if self.serial.is_some_and(|serial| self.authorizer.was_valid(serial)) {
            return Ok(());
        }
        self.check()
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
