//! The controller's own certificate. It is renewed before it expires, and when the key of the CA or the controller's
//! names change.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::time;
use tracing::{info, warn};

use super::Error;
use super::shared_ca::SharedCa;
use crate::Name;
use crate::pki::{Credentials, Host, Request, Role, Subject};
use crate::transport::listening;

/// How often the certificate is checked.
const INTERVAL: Duration = Duration::from_secs(60);

/// Keeps the controller's certificate valid.
pub(super) struct CertificateRenewer {
    file: PathBuf,
    authority: Arc<SharedCa>,
    /// Names of the controller.
    names: Vec<String>,
    credentials: watch::Sender<Credentials>,
    configuration: watch::Sender<Arc<ServerConfig>>,
}

impl CertificateRenewer {
    /// Reads the credentials from a file or issues new ones, for these names and those of this machine.
    pub(super) fn open(
        file: PathBuf,
        authority: Arc<SharedCa>,
        names: Vec<Host>,
    ) -> Result<Self, Error> {
        let names: BTreeSet<_> = names.into_iter().chain(Host::itself()).collect();
        let names: Vec<_> = names.iter().map(Host::to_string).collect();
        let kept = Credentials::read(&file).ok();
        let good = kept.filter(|it| is_good(it, &authority, &names).unwrap_or(false));
        let credentials = match good {
            Some(credentials) => credentials,
            None => made(&authority, &names)?,
        };
        credentials.write(&file).map_err(Error::Keep)?;
        let configuration = watch::Sender::new(Arc::new(listening(&credentials)?));
        let credentials = watch::Sender::new(credentials);
        Ok(Self { file, authority, names, credentials, configuration })
    }

    /// TLS configuration of the newest certificate.
    pub(super) fn configuration(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.configuration.subscribe()
    }

    /// The newest credentials.
    pub(super) fn credentials(&self) -> watch::Receiver<Credentials> {
        self.credentials.subscribe()
    }

    /// Renews the certificate when necessary, forever.
    pub(super) async fn keep(self) {
        loop {
            time::sleep(INTERVAL).await;
            let is_good = is_good(&self.credentials.borrow(), &self.authority, &self.names);
            match is_good {
                Ok(true) => {}
                Ok(false) => match self.renew() {
                    Ok(()) => info!("renewed the controller's certificate"),
                    Err(error) => warn!("cannot renew the controller's certificate: {error}"),
                },
                Err(error) => warn!("cannot check the controller's certificate: {error}"),
            }
        }
    }

    fn renew(&self) -> Result<(), Error> {
        let credentials = made(&self.authority, &self.names)?;
        self.configuration.send_replace(Arc::new(listening(&credentials)?));
        self.credentials.send_replace(credentials.clone());
        credentials.write(&self.file).map_err(Error::Keep)
    }
}

/// Issues new credentials.
fn made(authority: &SharedCa, names: &[String]) -> Result<Credentials, Error> {
    let (request, now) = (Request::new()?, now());
    // A mesh has one controller.
    let subject = Subject { name: Name::of_the_controller(), role: Role::Controller };
    let issued = authority.lock().issue(&subject, &request.pem()?, names, now)?;
    Ok(Credentials::new(&request, &issued))
}

/// Whether the credentials stay valid for a while, have these names, and trust the same CAs as the CA itself.
fn is_good(
    credentials: &Credentials,
    authority: &SharedCa,
    names: &[String],
) -> Result<bool, Error> {
    let authority = authority.lock();
    let Some((_, serial)) = credentials.subject_and_serial() else { return Ok(false) };
    let is_trusted = authority.trust_pem(now())? == credentials.trust_pem;
    let is_called_so = authority.also_known_as(serial)?.as_deref() == Some(names);
    Ok(is_trusted
        && is_called_so
        && authority.is_good(serial, now())?
        && !credentials.ends_soon(now()))
}

/// The current time in whole seconds, as in certificates.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}
