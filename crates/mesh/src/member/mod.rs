//! Membership of a node: enrolment, calls to the controller, and renewal.

mod membership;
mod pause;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::info;

pub use membership::{enrol, renew};

pub(crate) use pause::{Logged, Pause};

use crate::Name;
use crate::pki::{self, Credentials, Request, Role, Token};
use crate::transport::{Trust, Unusable, call, reason};

/// How often the certificate is checked for renewal.
const RENEWAL_CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Errors of membership and of calls to other nodes.
#[derive(Debug, Error)]
pub enum Error {
    /// A connection cannot be made.
    #[error(transparent)]
    Connection(#[from] Unusable),
    /// A key or certificate is not valid.
    #[error(transparent)]
    Certificate(#[from] pki::Error),
    /// The other node rejects the call or cannot be reached.
    #[error("{node}: {}", reason(status))]
    Refused {
        /// Node and address.
        node: String,
        /// Its status.
        status: Box<Status>,
    },
    /// The controller signed another key.
    #[error("cannot use the certificate of the controller: it is for another key")]
    AnotherKey,
    /// The node is not enrolled.
    #[error("cannot open {}: no such file; enrol the {role} with a token from `wirestamp pki token`", file.display())]
    NotEnrolled {
        /// Path of the credentials.
        file: PathBuf,
        /// Role.
        role: Role,
    },
    /// Its credentials cannot be read or written.
    #[error("cannot use credentials: {0}")]
    Credentials(io::Error),
    /// The credentials are for another role.
    #[error("the certificate is not for a {0}")]
    WrongRole(Role),
    /// The token is for another node.
    #[error("the token is for another node; this folder belongs to {0}")]
    AnotherName(Name),
}

impl Error {
    /// Whether the certificate was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if status.code() == Code::Unauthenticated)
    }

    /// Whether a retry may succeed.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Refused { status, .. } => status.code() == Code::Unavailable,
            _ => false,
        }
    }
}

/// An enrolled node.
pub(crate) struct Member {
    controller: String,
    file: PathBuf,
    name: Name,
    role: Role,
    credentials: watch::Sender<Credentials>,
    /// A token that was given although the node is enrolled.
    token: Mutex<Option<Token>>,
}

impl Member {
    /// Reads the credentials from a file, or enrols at the controller at `HOST:PORT`, retrying until it answers.
    ///
    /// # Errors
    /// When the file cannot be used, or the controller rejects the node.
    pub(crate) async fn open(
        controller: String,
        file: PathBuf,
        token: Option<&Token>,
        role: Role,
    ) -> Result<Self, Error> {
        let (credentials, unused) = match (Credentials::read(&file), token) {
            (Ok(credentials), token) => (credentials, token.cloned()),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Credentials(error));
            }
            (Err(_), None) => return Err(Error::NotEnrolled { file, role }),
            (Err(_), Some(token)) => {
                Credentials::can_be_written(&file).map_err(Error::Credentials)?;
                let credentials = enrol_with_retries(&controller, token).await?;
                credentials.write(&file).map_err(Error::Credentials)?;
                (credentials, None)
            }
        };
        let name = name_of(&credentials, role)?;
        let (credentials, token) = (watch::Sender::new(credentials), Mutex::new(unused));
        Ok(Self { controller, file, name, role, credentials, token })
    }

    /// Enrols again after the certificate was revoked, if the node was started with a token and has not tried it yet.
    /// Returns whether it has a new certificate.
    ///
    /// # Errors
    /// When the controller rejects the token, or it is for another node.
    pub(crate) async fn rejoin(&self) -> Result<bool, Error> {
        let Some(token) = self.token.lock().take() else { return Ok(false) };
        let credentials = enrol_with_retries(&self.controller, &token).await?;
        if name_of(&credentials, self.role)? != self.name {
            return Err(Error::AnotherName(self.name.clone()));
        }
        credentials.write(&self.file).map_err(Error::Credentials)?;
        self.credentials.send_replace(credentials);
        info!("joined again with the token");
        Ok(true)
    }

    /// Name of the node.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Address of the controller.
    pub(crate) fn controller(&self) -> &str {
        &self.controller
    }

    /// The credentials and their changes.
    pub(crate) fn credentials(&self) -> watch::Receiver<Credentials> {
        self.credentials.subscribe()
    }

    /// Channel to the controller, with the newest credentials.
    pub(crate) fn call(&self) -> Result<Channel, Error> {
        let trust = self.credentials.borrow().clone();
        Ok(call(&self.controller, Role::Controller, &Trust::Certificate(&trust))?)
    }

    /// Renews the certificate before it expires, forever.
    pub(crate) async fn stay(&self) {
        let mut pause = Pause::new();
        loop {
            let now = self.credentials.borrow().clone();
            if now.ends_soon(Timestamp::now()) {
                match self.renewed(&now).await {
                    Ok(renewed) => {
                        info!("renewed the {}'s certificate", self.role);
                        self.credentials.send_replace(renewed);
                        pause = Pause::new();
                    }
                    Err(error) => {
                        pause.after(Err(error)).await;
                        continue;
                    }
                }
            }
            time::sleep(RENEWAL_CHECK_INTERVAL).await;
        }
    }

    async fn renewed(&self, now: &Credentials) -> Result<Credentials, Error> {
        let renewed = renew(&self.controller, now).await?;
        // Do not replace usable credentials by unusable ones.
        call(&self.controller, Role::Controller, &Trust::Certificate(&renewed))?;
        renewed.write(&self.file).map_err(Error::Credentials)?;
        Ok(renewed)
    }
}

/// The node of credentials, which must be for this role.
fn name_of(credentials: &Credentials, role: Role) -> Result<Name, Error> {
    let subject = credentials.subject_and_serial().map(|(subject, _)| subject);
    Ok(subject.filter(|it| it.role == role).ok_or(Error::WrongRole(role))?.name)
}

/// Enrols, retrying until the controller answers. The key stays the same, in case a response was lost.
async fn enrol_with_retries(controller: &str, token: &Token) -> Result<Credentials, Error> {
    let request = Request::new()?;
    let mut pause = Pause::new();
    loop {
        match enrol(controller, token, &request).await {
            Err(error) if error.is_temporary() => pause.after(Err(error)).await,
            enrolled => return enrolled,
        }
    }
}
