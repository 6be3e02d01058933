//! TLS configurations of servers and callers.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, RootCertStore,
    ServerConfig, SignatureScheme,
};

use crate::pki::{Credentials, Role, Subject, Token};

/// Why a TLS configuration cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a connection: {0}")]
pub struct Unusable(String);

impl Unusable {
    /// The address is not valid.
    pub(super) fn address(text: &str) -> Self {
        Self(format!("{text:?} is not an address: expected HOST:PORT"))
    }
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Server configuration with these credentials. Callers may have a certificate of the same CA, or none.
pub(crate) fn listening(presented: &Credentials) -> Result<ServerConfig, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(&presented.trust_pem)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(|error| Unusable(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&presented.chain_pem())?, key(presented)?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Client configuration with credentials, for servers of a role.
pub(super) fn calling(role: Role, presented: &Credentials) -> Result<ClientConfig, Unusable> {
    let anchor = TrustAnchor::Authority(roots(&presented.trust_pem)?);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier::new(role, anchor)));
    let config =
        builder.with_client_auth_cert(certificates(&presented.chain_pem())?, key(presented)?)?;
    Ok(of_grpc(config))
}

/// Client configuration with a token only, for servers of a role.
pub(super) fn first_call(role: Role, token: Token) -> Result<ClientConfig, Unusable> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier::new(
            role,
            TrustAnchor::Token(token),
        )))
        .with_no_client_auth();
    Ok(of_grpc(config))
}

fn of_grpc(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Nodes are identified by their roles, so there is no server name to send.
    config.enable_sni = false;
    config
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>();
    certificates.map_err(|error| Unusable(error.to_string()))
}

fn key(presented: &Credentials) -> Result<PrivateKeyDer<'static>, Unusable> {
    let key = PrivateKeyDer::from_pem_slice(presented.key_pem.as_bytes());
    key.map_err(|error| Unusable(error.to_string()))
}

fn roots(pem: &str) -> Result<RootCertStore, Unusable> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Verifier of a server: its CA and role.
#[derive(Debug)]
struct ServerVerifier {
    role: Role,
    anchor: TrustAnchor,
    provider: CryptoProvider,
}

#[derive(Debug)]
enum TrustAnchor {
    Authority(RootCertStore),
    /// The server sends the CA certificate, and the token has its fingerprint.
    Token(Token),
}

impl ServerVerifier {
    fn new(role: Role, anchor: TrustAnchor) -> Self {
        Self { role, anchor, provider: ring::default_provider() }
    }

    fn roots(&self, presented: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        match &self.anchor {
            TrustAnchor::Authority(roots) => Ok(roots.clone()),
            TrustAnchor::Token(token) => {
                let authority = presented.iter().find(|it| token.is_of(it));
                let authority = authority.ok_or(CertificateError::UnknownIssuer)?;
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into_owned())?;
                Ok(roots)
            }
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
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
