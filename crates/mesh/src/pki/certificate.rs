//! Contents of certificates.

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyUsagePurpose, SanType, SerialNumber,
};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Error, Result, Serial, Subject};

/// Tolerated clock difference: certificates are valid from this many seconds before their issue.
const LEEWAY: i64 = 300;

/// An issued certificate.
#[derive(Clone, Debug)]
pub struct Issued {
    /// Subject.
    pub subject: Subject,
    /// Serial number.
    pub serial: Serial,
    /// Certificate in DER.
    pub der: Vec<u8>,
    /// Certificate in PEM.
    pub certificate_pem: String,
    /// CA certificates in PEM, the issuing one first.
    pub trust_pem: String,
    /// Expiry.
    pub expires: Timestamp,
}

/// Parameters of a node's certificate.
pub(super) fn of_node(
    subject: &Subject,
    serial: Serial,
    also_known_as: &[String],
    times: (Timestamp, Timestamp),
) -> Result<CertificateParams> {
    if let Some(name) = also_known_as.iter().find(|name| Subject::is_of_the_mesh(name)) {
        return Err(Error::OwnName(name.clone()));
    }
    let mut parameters = CertificateParams::new(also_known_as)?;
    parameters.subject_alt_names.insert(0, SanType::DnsName(subject.domain().try_into()?));
    parameters.serial_number = Some(SerialNumber::from_slice(serial.bytes()));
    parameters.distinguished_name = called(subject.name.as_ref());
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if subject.role.listens() {
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    parameters.use_authority_key_identifier_extension = true;
    set_times(&mut parameters, times);
    Ok(parameters)
}

/// Parameters of a CA certificate.
pub(super) fn of_authority(serial: Serial, times: (Timestamp, Timestamp)) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.serial_number = Some(SerialNumber::from_slice(serial.bytes()));
    // CA certificates need different names, or chains would be ambiguous.
    parameters.distinguished_name = called(&format!("Wirestamp mesh {serial}"));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    set_times(&mut parameters, times);
    parameters
}

/// Expiry of a certificate.
pub(super) fn ends(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn set_times(parameters: &mut CertificateParams, (from, until): (Timestamp, Timestamp)) {
    parameters.not_before = date(from.as_second() - LEEWAY);
    parameters.not_after = date(until.as_second());
}

/// Date of a time in seconds since 1970. Times beyond the year 9999 become the epoch, which is never valid.
fn date(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
