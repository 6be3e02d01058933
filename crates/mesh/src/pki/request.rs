//! What a node asks the authority with.

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData};

use super::Result;

/// A node's new key, and the request to sign it. For whom, is told by the token that comes with it, or by
/// the certificate that it shall follow.
pub struct Request {
    key: KeyPair,
}

impl Request {
    /// A new key: ECDSA on the curve P-256.
    ///
    /// # Errors
    /// When the system has no random numbers.
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

    /// Whether a certificate is for this key.
    #[must_use]
    pub fn is_answered_by(&self, certificate: &[u8]) -> bool {
        let parsed = x509_parser::parse_x509_certificate(certificate);
        parsed.is_ok_and(|(_, it)| it.public_key().raw == self.key.subject_public_key_info())
    }
}
