//! What the two sides of a connection show each other, and whom they trust.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, RootCertStore,
    ServerConfig, SignatureScheme,
};

use crate::pki::{Credentials, Role, Subject, Token};

/// Why nobody can be called, or listened to.
#[derive(Debug, thiserror::Error)]
#[error("no connection can be made: {0}")]
pub struct Unusable(String);

impl Unusable {
    /// There is nobody at what is no address.
    pub(super) fn address(text: &str) -> Self {
        Self(format!("{text:?} is no address: expected HOST:PORT"))
    }
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// How a node listens that shows these credentials: callers may have a certificate of the same authority, or
/// none.
pub(crate) fn listening(shown: &Credentials) -> Result<ServerConfig, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(&shown.trust_pem)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(|error| Unusable(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&shown.chain_pem())?, key(shown)?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// How a node of a role is called by one that shows its credentials, and trusts whom they trust.
pub(super) fn calling(role: Role, shown: &Credentials) -> Result<ClientConfig, Unusable> {
    let known_by = KnownBy::Authority(roots(&shown.trust_pem)?);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Called::new(role, known_by)));
    let config = builder.with_client_auth_cert(certificates(&shown.chain_pem())?, key(shown)?)?;
    Ok(of_grpc(config))
}

/// How a node of a role is called by one that has nothing but a token.
pub(super) fn first_call(role: Role, token: Token) -> Result<ClientConfig, Unusable> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Called::new(role, KnownBy::Token(token))))
        .with_no_client_auth();
    Ok(of_grpc(config))
}

fn of_grpc(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Nodes are known by their roles, so that there is no name to ask for.
    config.enable_sni = false;
    config
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>();
    certificates.map_err(|error| Unusable(error.to_string()))
}

fn key(shown: &Credentials) -> Result<PrivateKeyDer<'static>, Unusable> {
    let key = PrivateKeyDer::from_pem_slice(shown.key_pem.as_bytes());
    key.map_err(|error| Unusable(error.to_string()))
}

fn roots(pem: &str) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Who is called.
#[derive(Debug)]
struct Called {
    role: Role,
    known_by: KnownBy,
    provider: CryptoProvider,
}

#[derive(Debug)]
enum KnownBy {
    Authority(RootCertStore),
    /// What is called shows the authority's certificate itself, and the token knows that.
    Token(Token),
}

impl Called {
    fn new(role: Role, known_by: KnownBy) -> Self {
        Self { role, known_by, provider: ring::default_provider() }
    }

    fn roots(&self, shown: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        match &self.known_by {
            KnownBy::Authority(roots) => Ok(roots.clone()),
            KnownBy::Token(token) => {
                let authority = shown.iter().find(|it| token.is_of(it));
                let authority = authority.ok_or(CertificateError::UnknownIssuer)?;
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into_owned())?;
                Ok(roots)
            }
        }
    }
}

impl ServerCertVerifier for Called {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let roots = self.roots(intermediates)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &roots,
            intermediates,
            now,
            algorithms,
        )?;
        match Subject::of(end_entity) {
            Ok((subject, _)) if subject.role == self.role => Ok(ServerCertVerified::assertion()),
            _ => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
