//! The certificate authority (CA) of a mesh.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};

use super::register::{Change, Register, Signer};
use super::{Entry, Error, Issued, Result, Role, Serial, Subject, Token, UnusedToken, certificate};
use crate::Name;

/// Lifetime of a node's certificate. Nodes renew in time, so after this all nodes have the certificate of a new CA key.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Lifetime of a CA certificate.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// The CA of a mesh: its private keys, and a register of issued certificates.
///
/// Stored in a SQLite database that only its owner can read. Several processes may use it at once.
pub struct Authority {
    register: Register,
}

impl Authority {
    /// Creates a CA in a new file.
    ///
    /// # Errors
    /// When the file exists or cannot be created.
    pub fn create(path: &Path, now: Timestamp) -> Result<Self> {
        Register::create(path, &signer(now, now)?)?;
        Self::open(path)
    }

    /// Opens the CA in a file.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { register: Register::open(path)? })
    }

    /// Creates a new key. Nodes receive its certificate when they renew their own. Afterwards the new key signs.
    /// Certificates of older keys stay valid. Returns the time from which the new key signs.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn rotate(&mut self, now: Timestamp) -> Result<Timestamp> {
        let signer = signer(now, after(now, LIFETIME))?;
        let change = self.register.change()?;
        change.add_signer(&signer)?;
        change.commit()?;
        Ok(signer.signs_from)
    }

    /// Creates a new key that signs at once, and revokes everything that the older keys signed, because they may be
    /// compromised. Every node must be enrolled again.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn start_anew(&mut self, now: Timestamp) -> Result<()> {
        let signer = signer(now, now)?;
        let change = self.register.change()?;
        change.distrust_all(now)?;
        change.add_signer(&signer)?;
        change.commit()
    }

    /// The CA certificates in PEM, the signing one first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn trust_pem(&self, now: Timestamp) -> Result<String> {
        Ok(trust_pem(&self.register.signers(now)?))
    }

    /// All issued certificates, in order of issue.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.register.entries()
    }

    /// Unused tokens that have not expired.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unused_tokens(&self, now: Timestamp) -> Result<Vec<UnusedToken>> {
        self.register.unused_tokens(now)
    }

    /// Whether a certificate is valid: issued by this CA, not expired, not revoked.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_good(&self, serial: Serial, now: Timestamp) -> Result<bool> {
        Ok(self.register.entry(serial)?.is_some_and(|entry| entry.is_good(now)))
    }

    /// Other names in a certificate; none if this CA did not issue it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn also_known_as(&self, serial: Serial) -> Result<Option<Vec<String>>> {
        Ok(self.register.entry(serial)?.map(|entry| entry.also_known_as))
    }

    /// Creates a token that enrols a node once, within `lifetime`. It contains the fingerprint of the signing key, so
    /// the node can verify the controller.
    ///
    /// # Errors
    /// When the name is that of the controller's own collector, or the database cannot be written.
    pub fn token(
        &mut self,
        subject: &Subject,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Token> {
        if subject.role == Role::Collector && subject.name == Name::of_the_controller() {
            return Err(Error::OwnCollector(subject.name.clone()));
        }
        let change = self.register.change()?;
        let token = Token::new(random()?, &signing(&change, now)?.certificate);
        change.add_token(&token, subject, after(now, lifetime))?;
        change.commit()?;
        Ok(token)
    }

    /// Signs the request of a node with a token, which is then used up: it only works again for the same key, in case
    /// the response was lost. Earlier certificates of the node are revoked.
    ///
    /// A token that is not valid costs one read of the database: anyone may send it. The request is parsed, and the
    /// database locked for writing, only after that.
    ///
    /// # Errors
    /// When the token is not valid, or the request cannot be parsed; then the token stays unused.
    pub fn enrol(&mut self, token: &Token, request_pem: &str, now: Timestamp) -> Result<Issued> {
        self.register.check_token(token, now)?;
        let request = CertificateSigningRequestParams::from_pem(request_pem)?;
        let change = self.register.change()?;
        let key = Sha256::digest(request.public_key.der_bytes());
        let subject = change.use_token(token, &key, now)?;
        change.revoke(&subject.name, Some(subject.role), now)?;
        let issued = sign(&change, subject, &request.public_key, &[], now)?;
        change.commit()?;
        Ok(issued)
    }

    /// Signs a request made by the owner of the CA. The certificate may contain other host names and addresses, for
    /// browsers.
    ///
    /// # Errors
    /// When the request or a name is not valid.
    pub fn issue(
        &mut self,
        subject: &Subject,
        request_pem: &str,
        also_known_as: &[String],
        now: Timestamp,
    ) -> Result<Issued> {
        let request = CertificateSigningRequestParams::from_pem(request_pem)?;
        let change = self.register.change()?;
        let issued = sign(&change, subject.clone(), &request.public_key, also_known_as, now)?;
        change.commit()?;
        Ok(issued)
    }

    /// Signs the renewal request of a node. Its old certificate stays valid, so connections are not interrupted.
    ///
    /// # Errors
    /// When the certificate is not valid any more, or the request cannot be parsed.
    pub fn renew(
        &mut self,
        subject: &Subject,
        serial: Serial,
        request_pem: &str,
        now: Timestamp,
    ) -> Result<Issued> {
        let request = CertificateSigningRequestParams::from_pem(request_pem)?;
        let change = self.register.change()?;
        let known = change.entry(serial)?.filter(|it| it.subject == *subject && it.is_good(now));
        let known = known.ok_or_else(|| Error::InvalidCertificate(subject.clone()))?;
        let (key, names) = (&request.public_key, &known.also_known_as);
        let issued = sign(&change, known.subject, key, names, now)?;
        change.commit()?;
        Ok(issued)
    }

    /// Revokes the certificates and tokens of a name, for one role or all. Returns how many.
    ///
    /// # Errors
    /// When there are none, or the database cannot be written.
    pub fn revoke(&mut self, name: &Name, role: Option<Role>, now: Timestamp) -> Result<u64> {
        let change = self.register.change()?;
        let revoked = change.revoke(name, role, now)? + change.take_back(name, role, now)?;
        change.commit()?;
        if revoked == 0 { Err(Error::NothingToRevoke(name.clone())) } else { Ok(revoked) }
    }

    /// Revokes one certificate or token of a name: that whose serial, or identifier ([`UnusedToken::id`]), begins with
    /// these hexadecimal digits.
    ///
    /// # Errors
    /// When there is none or more than one, or the database cannot be written.
    pub fn revoke_one(&mut self, name: &Name, id: &str, now: Timestamp) -> Result<()> {
        let change = self.register.change()?;
        match change.revoke_by_id(name, id, now)? {
            0 => Err(Error::NothingToRevoke(name.clone())),
            1 => change.commit(),
            _ => Err(Error::AmbiguousId { name: name.clone(), id: id.to_owned() }),
        }
    }
}

/// A new CA key, which signs from `signs_from` on.
fn signer(now: Timestamp, signs_from: Timestamp) -> Result<Signer> {
    let (serial, key) = (Serial::new(random()?), KeyPair::generate()?);
    let expires = after(now, AUTHORITY_LIFETIME);
    let certificate = certificate::of_authority(serial, (now, expires)).self_signed(&key)?;
    let certificate = certificate.der().to_vec();
    Ok(Signer { serial, certificate, key: key.serialize_der(), signs_from, expires })
}

/// Issues and registers a certificate for a key.
fn sign(
    change: &Change<'_>,
    subject: Subject,
    key: &impl PublicKeyData,
    also_known_as: &[String],
    now: Timestamp,
) -> Result<Issued> {
    let signer = signing(change, now)?;
    let (serial, expires) = (Serial::new(random()?), after(now, LIFETIME).min(signer.expires));
    let parameters = certificate::of_node(&subject, serial, also_known_as, (now, expires))?;
    let issuer = Issuer::from_ca_cert_der(
        &signer.certificate.as_slice().into(),
        KeyPair::try_from(signer.key.as_slice())?,
    )?;
    let certificate = parameters.signed_by(key, &issuer)?;
    let issued = Issued {
        serial,
        der: certificate.der().to_vec(),
        certificate_pem: certificate.pem(),
        trust_pem: trust_pem(&change.signers(now)?),
        subject,
        expires,
    };
    change.add(&issued, also_known_as, now)?;
    Ok(issued)
}

/// The CA certificate that signs now.
fn signing(change: &Change<'_>, now: Timestamp) -> Result<Signer> {
    let first = change.signers(now)?.into_iter().next();
    first.filter(|signer| signer.signs_from <= now).ok_or(Error::CaExpired)
}

fn trust_pem(signers: &[Signer]) -> String {
    let certificate = |signer: &Signer| pem_text(&Pem::new("CERTIFICATE", &*signer.certificate));
    signers.iter().map(certificate).collect()
}

/// PEM text (RFC 7468).
pub(super) fn pem_text(part: &Pem) -> String {
    pem::encode_config(part, EncodeConfig::new().set_line_ending(LineEnding::LF))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes)
}

/// `now + by`, limited to the last representable time.
fn after(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
