//! Credentials of a node, in a file.

use std::fs;
use std::io;
use std::iter;
use std::path::Path;

use jiff::Timestamp;
use pem::Pem;

use super::authority::pem_text;
use super::{Issued, LIFETIME, Request, Serial, Subject, certificate};
use crate::atomic_file;

/// Private key and certificate of a node, and the CA certificates that it trusts, all in PEM.
///
/// They are stored in one file, in this order, so that they always match. Other programs can read it: `curl --cert FILE
/// --cacert FILE`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Private key.
    pub key_pem: String,
    /// Certificate.
    pub certificate_pem: String,
    /// CA certificates, the issuing one first.
    pub trust_pem: String,
}

impl Credentials {
    /// Credentials from a request and its certificate.
    #[must_use]
    pub fn new(request: &Request, issued: &Issued) -> Self {
        Self {
            key_pem: request.key_pem(),
            certificate_pem: issued.certificate_pem.clone(),
            trust_pem: issued.trust_pem.clone(),
        }
    }

    /// Certificate chain, as presented to peers.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        self.certificate_pem.clone() + &self.trust_pem
    }

    /// Subject and serial number; none if the certificate is not of a mesh.
    #[must_use]
    pub fn subject_and_serial(&self) -> Option<(Subject, Serial)> {
        let certificate = pem::parse(&self.certificate_pem).ok()?;
        Subject::of(certificate.contents()).ok()
    }

    /// Whether less than a third of the lifetime is left.
    #[must_use]
    pub fn ends_soon(&self, now: Timestamp) -> bool {
        let certificate = pem::parse(&self.certificate_pem).ok();
        let ends = certificate.and_then(|it| certificate::ends(it.contents()));
        ends.is_none_or(|ends| ends.duration_since(now) < LIFETIME / 3)
    }

    /// Checks that the file can be written: it is a regular file or does not exist, and its folder is writable.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn can_be_written(path: &Path) -> io::Result<()> {
        atomic_file::new_file(path).map(drop).map_err(|error| about(path, &error))
    }

    /// Writes a file that only its owner can read, replacing an existing one.
    ///
    /// # Errors
    /// When the file cannot be written. The error contains the path.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = self.key_pem.clone() + &self.certificate_pem + &self.trust_pem;
        atomic_file::replace(path, text.as_bytes()).map_err(|error| about(path, &error))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the file does not exist, cannot be read or has other contents. The error contains the path.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read(path).map_err(|error| about(path, &error))?;
        let parts = pem::parse_many(text).unwrap_or_default();
        let (certificates, keys): (Vec<_>, Vec<_>) =
            parts.iter().partition(|part| part.tag() == "CERTIFICATE");
        let key = keys.into_iter().find(|part: &&Pem| part.tag() == "PRIVATE KEY");
        let (Some(key), [certificate, first, others @ ..]) = (key, &certificates[..]) else {
            let error = io::Error::new(
                io::ErrorKind::InvalidData,
                "expected a private key, its certificate, and CA certificates, in PEM",
            );
            return Err(about(path, &error));
        };
        Ok(Self {
            key_pem: pem_text(key),
            certificate_pem: pem_text(certificate),
            trust_pem: iter::once(first).chain(others).map(|part| pem_text(part)).collect(),
        })
    }
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn some(bytes: &[u8]) -> Credentials {
        let part = |tag: &str| pem_text(&Pem::new(tag, bytes));
        Credentials {
            key_pem: part("PRIVATE KEY"),
            certificate_pem: part("CERTIFICATE"),
            trust_pem: part("CERTIFICATE") + &part("CERTIFICATE"),
        }
    }

    #[test]
    fn credentials_round_trip_and_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roof.pem");
        some(b"old").write(&path).unwrap();
        some(b"new").write(&path).unwrap();
        assert!(Credentials::read(&path).unwrap() == some(b"new"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(some(b"new").chain_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn errors_contain_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roof.pem");
        let error = |path: &Path| Credentials::read(path).map(drop).unwrap_err().to_string();
        assert!(error(&path).contains("roof.pem: No such file"));
        let Credentials { key_pem, certificate_pem, trust_pem } = some(b"x");
        for wrong in ["", "text", &key_pem, &trust_pem, &(key_pem.clone() + &certificate_pem)] {
            fs::write(&path, wrong).unwrap();
            assert!(error(&path).contains("expected a private key, its certificate"), "{wrong}");
        }
        let nowhere = some(b"x").write(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert!(nowhere.starts_with("/proc/nowhere: "), "{nowhere}");
        for none in [Path::new("/dev/full"), folder.path()] {
            let written = some(b"x").write(none).unwrap_err().to_string();
            assert!(written.ends_with("not a regular file"), "{written}");
            Credentials::can_be_written(none).unwrap_err();
        }
        Credentials::can_be_written(&path).unwrap();
    }
}
