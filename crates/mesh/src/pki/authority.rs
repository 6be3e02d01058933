//! The authority.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};

use super::register::{Change, Register, Signer};
use super::{Entry, Error, Issued, Result, Role, Serial, Subject, Token, certificate};
use crate::Name;

/// How long the certificate of a node is good. Nodes renew theirs before, so that it is also how long it
/// takes at the most until all of them know of a new key of the authority.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How long a certificate of the authority is good.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// The authority of a mesh: private keys, and a register of what they have signed.
///
/// Its file is a SQLite database that only its owner can read. Several programs may use it at once.
pub struct Authority {
    register: Register,
}

impl Authority {
    /// Makes a new one, in a new file.
    ///
    /// # Errors
    /// When there is a file, or it cannot be made.
    pub fn create(path: &Path, now: Timestamp) -> Result<Self> {
        Register::create(path, &signer(now, now)?)?;
        Self::open(path)
    }

    /// The one in a file.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { register: Register::open(path)? })
    }

    /// Makes a new key. Nodes learn of it when they renew their certificates; when all have, it signs. What
    /// the older ones have signed stays good. Returns from when on the new key signs.
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

    /// Makes a new key that signs at once, and takes back everything that the older ones have signed, because
    /// somebody else may have them. Every node has to be let in again.
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

    /// The certificates of the authority in PEM, that of the one that signs first: what signs the
    /// certificates of others.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn trust_pem(&self, now: Timestamp) -> Result<String> {
        Ok(trust_pem(&self.register.signers(now)?))
    }

    /// All certificates of nodes that it has signed, in this order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.register.entries()
    }

    /// Who can be let in by a token that was not used yet, and until when.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn invited(&self, now: Timestamp) -> Result<Vec<(Subject, Timestamp)>> {
        self.register.invited(now)
    }

    /// Whether the certificate of a number is good: signed by this authority, not ended, not revoked.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_good(&self, serial: Serial, now: Timestamp) -> Result<bool> {
        Ok(self.register.entry(serial)?.is_some_and(|entry| entry.is_good(now)))
    }

    /// By what else whom the certificate of a number is for is called; none if this authority signed no such.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn also_known_as(&self, serial: Serial) -> Result<Option<Vec<String>>> {
        Ok(self.register.entry(serial)?.map(|entry| entry.also_known_as))
    }

    /// Makes a token that lets a node in once, for so long. The node knows the authority by the key that
    /// signs now, so that whom it calls has to show a certificate of that.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn token(
        &mut self,
        subject: &Subject,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Token> {
        let change = self.register.change()?;
        let token = Token::new(random()?, &signing(&change, now)?.certificate);
        change.add_token(&token, subject, after(now, lifetime))?;
        change.commit()?;
        Ok(token)
    }

    /// Signs the request of a node that has a token, which then is used: it serves nobody else, and the same
    /// key once more, should the answer get lost. Certificates that the node had before are revoked: it
    /// takes its own place.
    ///
    /// # Errors
    /// When the token cannot be used, or the request cannot be read; then the token stays as it was.
    pub fn enrol(&mut self, token: &Token, request_pem: &str, now: Timestamp) -> Result<Issued> {
        let request = CertificateSigningRequestParams::from_pem(request_pem)?;
        let change = self.register.change()?;
        let key = Sha256::digest(request.public_key.der_bytes());
        let subject = change.use_token(token, &key, now)?;
        change.revoke(&subject.name, Some(subject.role), now)?;
        let issued = sign(&change, subject, &request.public_key, &[], now)?;
        change.commit()?;
        Ok(issued)
    }

    /// Signs a request that the owner of the authority makes for somebody, who may have other names:
    /// domains and addresses, as browsers know servers by.
    ///
    /// # Errors
    /// When the request or a name cannot be read.
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

    /// Signs the request of a node whose certificate of this number ends some day. That stays good, so that
    /// nothing breaks off.
    ///
    /// # Errors
    /// When the certificate is not good any more, or the request cannot be read.
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
        let known = known.ok_or_else(|| Error::NotGood(subject.clone()))?;
        let (key, names) = (&request.public_key, &known.also_known_as);
        let issued = sign(&change, known.subject, key, names, now)?;
        change.commit()?;
        Ok(issued)
    }

    /// Takes back the certificates and tokens of a name: of one role, or of all. Returns how many.
    ///
    /// # Errors
    /// When there are none, or the database cannot be written.
    pub fn revoke(&mut self, name: &Name, role: Option<Role>, now: Timestamp) -> Result<u64> {
        let change = self.register.change()?;
        let revoked = change.revoke(name, role, now)? + change.take_back(name, role, now)?;
        change.commit()?;
        if revoked == 0 { Err(Error::NothingToRevoke(name.clone())) } else { Ok(revoked) }
    }
}

/// A new key of the authority, which signs from a time on.
fn signer(now: Timestamp, signs_from: Timestamp) -> Result<Signer> {
    let (serial, key) = (Serial::new(random()?), KeyPair::generate()?);
    let expires = after(now, AUTHORITY_LIFETIME);
    let certificate = certificate::of_authority(serial, (now, expires)).self_signed(&key)?;
    let certificate = certificate.der().to_vec();
    Ok(Signer { serial, certificate, key: key.serialize_der(), signs_from, expires })
}

/// Signs a certificate for a key, and enters it.
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

/// The certificate of the authority that signs now.
fn signing(change: &Change<'_>, now: Timestamp) -> Result<Signer> {
    let first = change.signers(now)?.into_iter().next();
    first.filter(|signer| signer.signs_from <= now).ok_or(Error::Ended)
}

fn trust_pem(signers: &[Signer]) -> String {
    let certificate = |signer: &Signer| pem_text(&Pem::new("CERTIFICATE", &*signer.certificate));
    signers.iter().map(certificate).collect()
}

/// As RFC 7468 has it.
pub(super) fn pem_text(part: &Pem) -> String {
    pem::encode_config(part, EncodeConfig::new().set_line_ending(LineEnding::LF))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes)
}

/// A time later by so much, or the last that there is.
fn after(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
