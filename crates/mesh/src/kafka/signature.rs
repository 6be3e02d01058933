//! Signatures of records, with the certificates of the mesh.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use rustls::SignatureScheme;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SigningKey;
use thiserror::Error;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Error;
use super::v1::Signed;
use crate::pki::{Credentials, Role, Serial, Subject};

/// Keys of the mesh are ECDSA on curve P-256.
const SCHEME: SignatureScheme = SignatureScheme::ECDSA_NISTP256_SHA256;

/// How long a certificate counts as verified, and max number of certificates that are kept.
const VERIFIED_FOR: Duration = Duration::from_secs(60);
const MAX_VERIFIED: usize = 4096;

/// Signs records with the newest credentials of a node.
pub(crate) struct Signer {
    credentials: watch::Receiver<Credentials>,
    key: Arc<dyn SigningKey>,
    certificate: Vec<u8>,
}

/// Why a record is not authentic.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Forged {
    #[error("it is not a signed record")]
    Unreadable,
    #[error("its certificate is not valid: {0}")]
    Certificate(String),
    #[error("its signature is wrong")]
    Signature,
    #[error("the {0} may not send it")]
    Role(Subject),
}

/// Verifies records by the CA certificates of a node's newest credentials.
pub(crate) struct Verifier {
    credentials: watch::Receiver<Credentials>,
    certificates: Arc<dyn ClientCertVerifier>,
    provider: CryptoProvider,
    /// Verified certificates: subject, serial number, public key and time.
    verified: HashMap<Vec<u8>, (Sender, Instant)>,
}

/// Sender of a record.
#[derive(Clone)]
struct Sender {
    subject: Subject,
    serial: Serial,
    public_key: Vec<u8>,
}

impl Signer {
    pub(crate) fn new(mut credentials: watch::Receiver<Credentials>) -> Result<Self, Error> {
        let (key, certificate) = signing_key(&credentials.borrow_and_update())?;
        Ok(Self { credentials, key, certificate })
    }

    /// A signed record for a topic.
    pub(crate) fn sign(&mut self, topic: &str, body: &impl Message) -> Result<Vec<u8>, Error> {
        if self.credentials.has_changed().unwrap_or(false) {
            (self.key, self.certificate) = signing_key(&self.credentials.borrow_and_update())?;
        }
        let unusable = || Error::Sign("the key of the certificate is not ECDSA P-256".to_owned());
        let signer = self.key.choose_scheme(&[SCHEME]).ok_or_else(unusable)?;
        let body = body.encode_to_vec();
        let signature = signer.sign(&signed_bytes(topic, &body));
        let signature = signature.map_err(|error| Error::Sign(error.to_string()))?;
        Ok(Signed { certificate: self.certificate.clone(), signature, body }.encode_to_vec())
    }
}

impl Verifier {
    pub(crate) fn new(mut credentials: watch::Receiver<Credentials>) -> Result<Self, Error> {
        let certificates = certificates(&credentials.borrow_and_update())?;
        let (provider, verified) = (ring::default_provider(), HashMap::new());
        Ok(Self { credentials, certificates, provider, verified })
    }

    /// Sender and body of a record of a topic, from a node with one of these roles. Whether the certificate was revoked
    /// is not checked.
    pub(crate) fn verify(
        &mut self,
        topic: &str,
        record: &[u8],
        may: &[Role],
        now: Instant,
    ) -> Result<(Subject, Serial, Vec<u8>), Forged> {
        let signed = Signed::decode(record).map_err(|_| Forged::Unreadable)?;
        let Signed { certificate, signature, body } = signed;
        let Sender { subject, serial, public_key } = self.sender(certificate, now)?;
        let message = signed_bytes(topic, &body);
        let mapping = self.provider.signature_verification_algorithms.mapping;
        let mut fitting = mapping.iter().filter(|(scheme, _)| *scheme == SCHEME);
        let is_signed = fitting.any(|(_, algorithms)| {
            algorithms
                .iter()
                .any(|it| it.verify_signature(&public_key, &message, &signature).is_ok())
        });
        if !is_signed {
            return Err(Forged::Signature);
        }
        if !may.contains(&subject.role) {
            return Err(Forged::Role(subject));
        }
        Ok((subject, serial, body))
    }

    /// The node of a certificate that the CA has issued.
    fn sender(&mut self, certificate: Vec<u8>, now: Instant) -> Result<Sender, Forged> {
        let not_valid = |why: String| Forged::Certificate(why);
        if self.credentials.has_changed().unwrap_or(false) {
            let renewed = certificates(&self.credentials.borrow_and_update());
            self.certificates = renewed.map_err(|error| not_valid(error.to_string()))?;
            self.verified.clear();
        }
        if let Some((sender, at)) = self.verified.get(&certificate)
            && now.saturating_duration_since(*at) < VERIFIED_FOR
        {
            return Ok(sender.clone());
        }
        let der = CertificateDer::from(certificate.as_slice());
        let valid = self.certificates.verify_client_cert(&der, &[], UnixTime::now());
        valid.map_err(|error| not_valid(error.to_string()))?;
        let (subject, serial) =
            Subject::of(&certificate).map_err(|error| not_valid(error.to_string()))?;
        let (_, parsed) =
            X509Certificate::from_der(&certificate).map_err(|_| Forged::Unreadable)?;
        let public_key = parsed.public_key().subject_public_key.data.to_vec();
        let sender = Sender { subject, serial, public_key };
        if self.verified.len() >= MAX_VERIFIED {
            self.verified.clear();
        }
        self.verified.insert(certificate, (sender.clone(), now));
        Ok(sender)
    }
}

/// The signature covers the topic, so that a record cannot be copied to the other one.
fn signed_bytes(topic: &str, body: &[u8]) -> Vec<u8> {
    [topic.as_bytes(), &[0], body].concat()
}

fn signing_key(credentials: &Credentials) -> Result<(Arc<dyn SigningKey>, Vec<u8>), Error> {
    let unusable = |why: String| Error::Sign(why);
    let key = PrivateKeyDer::from_pem_slice(credentials.key_pem.as_bytes());
    let key = key.map_err(|error| unusable(error.to_string()))?;
    let key = ring::default_provider().key_provider.load_private_key(key);
    let key = key.map_err(|error| unusable(error.to_string()))?;
    let certificate = CertificateDer::from_pem_slice(credentials.certificate_pem.as_bytes());
    let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
    Ok((key, certificate.to_vec()))
}

fn certificates(credentials: &Credentials) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let unusable = |why: String| Error::Sign(why);
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(credentials.trust_pem.as_bytes()) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::v1::{Answer, Answers};
    use super::*;
    use crate::pki::{Authority, Request};

    fn credentials(authority: &mut Authority, name: &str, role: Role) -> Credentials {
        let (request, now) = (Request::new().unwrap(), Timestamp::now());
        let subject = Subject { name: name.parse().unwrap(), role };
        let now = Timestamp::from_second(now.as_second()).unwrap();
        let issued = authority.issue(&subject, &request.pem().unwrap(), &[], now).unwrap();
        Credentials::new(&request, &issued)
    }

    fn authority(folder: &std::path::Path) -> Authority {
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        let file = folder.join("authority.sqlite");
        Authority::create(&file, now).unwrap();
        Authority::open(&file).unwrap()
    }

    #[test]
    fn only_unchanged_records_of_members_are_authentic() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [mut own, mut foreign] = folders.each_ref().map(|folder| authority(folder.path()));
        let roof = credentials(&mut own, "roof", Role::Probe);
        let (_keep, collector) = watch::channel(credentials(&mut own, "store", Role::Collector));
        let (change, newest) = watch::channel(roof);
        let mut signer = Signer::new(newest).unwrap();
        let mut verifier = Verifier::new(collector).unwrap();
        let body = Answers { answers: vec![Answer { task: 7, ..Answer::default() }] };
        let record = signer.sign("topic", &body).unwrap();
        let now = Instant::now();
        let mut verify =
            |topic: &str, record: &[u8], role| verifier.verify(topic, record, &[role], now);
        for _ in 0..2 {
            let (subject, _, bytes) = verify("topic", &record, Role::Probe).unwrap();
            assert_eq!((subject.name.as_ref(), bytes), ("roof", body.encode_to_vec()));
        }
        assert_eq!(verify("other", &record, Role::Probe).unwrap_err(), Forged::Signature);
        let why = verify("topic", &record, Role::Collector).unwrap_err().to_string();
        assert_eq!(why, "the probe roof may not send it");
        assert_eq!(verify("topic", &[0xff; 9], Role::Probe).unwrap_err(), Forged::Unreadable);
        // Each changed byte.
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            let is_same =
                verify("topic", &changed, Role::Probe).is_ok_and(|(subject, _, bytes)| {
                    subject.name.as_ref() == "roof" && bytes == body.encode_to_vec()
                });
            assert!(!is_same, "byte {at}");
        }
        // The key of another member, and the certificate of another mesh.
        change.send_replace(credentials(&mut own, "cellar", Role::Probe));
        let (cellar, ..) =
            verify("topic", &signer.sign("topic", &body).unwrap(), Role::Probe).unwrap();
        assert_eq!(cellar.name.as_ref(), "cellar");
        change.send_replace(credentials(&mut foreign, "roof", Role::Probe));
        let why = verify("topic", &signer.sign("topic", &body).unwrap(), Role::Probe).unwrap_err();
        assert!(why.to_string().contains("UnknownIssuer"), "{why}");
    }
}
