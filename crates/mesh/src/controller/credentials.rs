//! The controller's own certificate, which it renews before it ends, and whenever the authority has another key.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::time;
use tracing::{info, warn};

use super::Error;
use crate::Name;
use crate::gate::Gate;
use crate::pki::{Credentials, Request, Role, Subject};
use crate::transport::listening;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(60);

/// Keeps the certificate good.
pub(super) struct Keeper {
    file: PathBuf,
    gate: Arc<Gate>,
    credentials: Credentials,
    configuration: watch::Sender<Arc<ServerConfig>>,
}

impl Keeper {
    /// The credentials in a file, or new ones.
    pub(super) fn open(file: PathBuf, gate: Arc<Gate>) -> Result<Self, Error> {
        let kept = Credentials::read(&file).ok();
        let good = kept.filter(|it| is_good(it, &gate).unwrap_or(false));
        let credentials = match good {
            Some(credentials) => credentials,
            None => made(&gate)?,
        };
        credentials.write(&file).map_err(Error::Keep)?;
        let configuration = watch::Sender::new(Arc::new(listening(&credentials)?));
        Ok(Self { file, gate, credentials, configuration })
    }

    /// How to listen with the newest of them.
    pub(super) fn configuration(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.configuration.subscribe()
    }

    /// Looks after them, for ever.
    pub(super) async fn keep(mut self) {
        loop {
            time::sleep(INTERVAL).await;
            match is_good(&self.credentials, &self.gate) {
                Ok(true) => {}
                Ok(false) => match self.renew() {
                    Ok(()) => info!("renewed the controller's certificate"),
                    Err(error) => warn!("cannot renew the controller's certificate: {error}"),
                },
                Err(error) => warn!("cannot look after the controller's certificate: {error}"),
            }
        }
    }

    fn renew(&mut self) -> Result<(), Error> {
        let credentials = made(&self.gate)?;
        self.configuration.send_replace(Arc::new(listening(&credentials)?));
        self.credentials = credentials;
        self.credentials.write(&self.file).map_err(Error::Keep)
    }
}

/// New ones.
fn made(gate: &Gate) -> Result<Credentials, Error> {
    let (request, now) = (Request::new()?, now());
    // There is one controller in a mesh.
    let subject = Subject { name: Name::of_the_controller(), role: Role::Controller };
    let issued = gate.authority().issue(&subject, &request.pem()?, &names(), now)?;
    Ok(Credentials::new(&request, &issued))
}

/// Whether they are good for a while, and whom they trust is whom the authority wants to be trusted.
fn is_good(credentials: &Credentials, gate: &Gate) -> Result<bool, Error> {
    let authority = gate.authority();
    let Some((_, serial)) = credentials.subject_and_serial() else { return Ok(false) };
    let is_trusted = authority.trust_pem(now())? == credentials.trust_pem;
    Ok(is_trusted && authority.is_good(serial, now())? && !credentials.ends_soon(now()))
}

/// By what else it is called: by people on the same machine.
fn names() -> [String; 3] {
    ["localhost", "127.0.0.1", "::1"].map(str::to_owned)
}

/// Certificates count in seconds.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}
