//! Certificate signing requests.

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData};

use super::Result;

/// A new key of a node, and the request to sign it. The subject comes from the token or the old certificate.
pub struct Request {
    key: KeyPair,
}

impl Request {
    /// Creates a key: ECDSA on curve P-256.
    ///
    /// # Errors
    /// When random numbers are not available.
    pub fn new() -> Result<Self> {
        Ok(Self { key: KeyPair::generate()? })
    }

    /// The request (PKCS #10, RFC 2986) in PEM.
    ///
    /// # Errors
    /// When the key cannot sign it.
    pub fn pem(&self) -> Result<String> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        Ok(parameters.serialize_request(&self.key)?.pem()?)
    }

    /// The private key (PKCS #8, RFC 5958) in PEM.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Whether a certificate belongs to this key.
    #[must_use]
    pub fn is_answered_by(&self, certificate: &[u8]) -> bool {
        let parsed = x509_parser::parse_x509_certificate(certificate);
        parsed.is_ok_and(|(_, it)| it.public_key().raw == self.key.subject_public_key_info())
    }
}
