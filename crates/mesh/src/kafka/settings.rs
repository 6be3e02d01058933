//! How to reach a Kafka cluster.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rskafka::client::{Credentials, SaslConfig};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use strum::{Display, EnumString};

use super::Error;

/// How to reach a Kafka cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Some of its brokers, `HOST:PORT`.
    pub brokers: Vec<String>,
    /// File with the CA certificates of its brokers, in PEM; connections are not encrypted without it.
    pub ca: Option<PathBuf>,
    /// User, if the brokers require one.
    pub login: Option<Login>,
    /// Number of partitions if the topic of the batches must be created, at least 1.
    pub partitions: u32,
}

/// A user of the cluster (SASL, RFC 4422).
#[derive(Clone)]
pub struct Login {
    /// Mechanism.
    pub mechanism: Mechanism,
    /// Name.
    pub name: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Mechanism of SASL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Mechanism {
    /// RFC 4616; only over encrypted connections.
    Plain,
    /// RFC 7677.
    #[strum(serialize = "scram-sha-256")]
    ScramSha256,
    /// The same with SHA-512.
    #[default]
    #[strum(serialize = "scram-sha-512")]
    ScramSha512,
}

impl Settings {
    /// The brokers in messages.
    pub(crate) fn name(&self) -> String {
        format!("Kafka at {}", self.brokers.join(","))
    }

    pub(super) fn sasl(&self) -> Option<SaslConfig> {
        let Login { mechanism, name, password } = self.login.clone()?;
        let credentials = Credentials::new(name, password);
        Some(match mechanism {
            Mechanism::Plain => SaslConfig::Plain(credentials),
            Mechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
            Mechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
        })
    }

    pub(super) fn tls(&self) -> Result<Option<Arc<ClientConfig>>, Error> {
        let Some(file) = &self.ca else { return Ok(None) };
        let config = tls(file).map_err(|why| Error::Ca { file: file.clone(), cause: why })?;
        Ok(Some(Arc::new(config)))
    }
}

fn tls(file: &Path) -> Result<ClientConfig, String> {
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it contains no certificate in PEM".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
