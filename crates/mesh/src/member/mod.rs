//! A node that belongs to a mesh: it is let in, calls its controller again and again, and stays.

mod membership;
mod pause;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::info;

pub use membership::{enrol, renew};

pub(crate) use pause::Pause;

use crate::Name;
use crate::pki::{self, Credentials, Request, Role, Token};
use crate::transport::{Trust, Unusable, call, reason};

/// How often a node looks whether its certificate ends soon.
const LOOK_AFTER: Duration = Duration::from_secs(3600);

/// Why a node does not belong to the mesh, or cannot call another.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no connection to be made.
    #[error(transparent)]
    Connection(#[from] Unusable),
    /// A key or a certificate is not as it should be.
    #[error(transparent)]
    Certificate(#[from] pki::Error),
    /// The other side says no, or is not there.
    #[error("{node}: {}", reason(status))]
    Refused {
        /// Who was called, and where.
        node: String,
        /// What it says.
        status: Box<Status>,
    },
    /// The controller has signed something else.
    #[error("the controller answers with the certificate of another key")]
    AnotherKey,
    /// It was not let in yet.
    #[error("there is no {}: a {role} is let in with a token, which `wirestamp pki token` makes", file.display())]
    NotLetIn {
        /// Where its credentials would be.
        file: PathBuf,
        /// What it is.
        role: Role,
    },
    /// Its credentials cannot be read or written.
    #[error("cannot use credentials: {0}")]
    Credentials(io::Error),
    /// Its credentials are somebody else's.
    #[error("the certificate is none of a {0}")]
    NobodysCertificate(Role),
}

impl Error {
    /// Whether it may be gone when the same is tried again: nobody was reached, or nobody who could help.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => status.code() == Code::Unavailable,
            _ => false,
        }
    }
}

/// A node that was let in.
pub(crate) struct Member {
    controller: String,
    file: PathBuf,
    name: Name,
    role: Role,
    credentials: watch::Sender<Credentials>,
}

impl Member {
    /// Reads its credentials from a file, or has itself let in by the controller at an address, `HOST:PORT`, and
    /// waits for that if need be.
    ///
    /// # Errors
    /// When the file cannot be used, or the controller does not let it in.
    pub(crate) async fn open(
        controller: String,
        file: PathBuf,
        token: Option<&Token>,
        role: Role,
    ) -> Result<Self, Error> {
        let credentials = match (Credentials::read(&file), token) {
            (Ok(credentials), _) => credentials,
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Credentials(error));
            }
            (Err(_), None) => return Err(Error::NotLetIn { file, role }),
            (Err(_), Some(token)) => {
                Credentials::can_be_written(&file).map_err(Error::Credentials)?;
                let credentials = let_in(&controller, token).await?;
                credentials.write(&file).map_err(Error::Credentials)?;
                credentials
            }
        };
        let subject = credentials.subject_and_serial().map(|(subject, _)| subject);
        let subject = subject.filter(|it| it.role == role);
        let name = subject.ok_or(Error::NobodysCertificate(role))?.name;
        let credentials = watch::Sender::new(credentials);
        Ok(Self { controller, file, name, role, credentials })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// The address of its controller.
    pub(crate) fn controller(&self) -> &str {
        &self.controller
    }

    /// Its credentials, and whenever it has others.
    pub(crate) fn credentials(&self) -> watch::Receiver<Credentials> {
        self.credentials.subscribe()
    }

    /// Calls to its controller, with the newest credentials.
    pub(crate) fn call(&self) -> Result<Channel, Error> {
        let trust = self.credentials.borrow().clone();
        Ok(call(&self.controller, Role::Controller, &Trust::Certificate(&trust))?)
    }

    /// Renews the certificate before it ends, for ever.
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
            time::sleep(LOOK_AFTER).await;
        }
    }

    async fn renewed(&self, now: &Credentials) -> Result<Credentials, Error> {
        let renewed = renew(&self.controller, now).await?;
        // What cannot be used does not take the place of what can.
        call(&self.controller, Role::Controller, &Trust::Certificate(&renewed))?;
        renewed.write(&self.file).map_err(Error::Credentials)?;
        Ok(renewed)
    }
}

/// Waits for the controller to let it in. The key stays the same, should an answer get lost.
async fn let_in(controller: &str, token: &Token) -> Result<Credentials, Error> {
    let request = Request::new()?;
    let mut pause = Pause::new();
    loop {
        match enrol(controller, token, &request).await {
            Err(error) if error.may_pass() => pause.after(Err(error)).await,
            enrolled => return enrolled,
        }
    }
}
