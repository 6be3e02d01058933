//! What a node is known by, in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pem::Pem;

use super::authority::pem_text;
use super::{Issued, Request};

/// A node's private key and certificate, and whom it trusts. All in PEM.
///
/// They are kept in one file, in this order, so that what is in it always belongs together. Other programs
/// read it too: `curl --cert FILE --cacert FILE`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The private key.
    pub key_pem: String,
    /// The certificate.
    pub certificate_pem: String,
    /// The certificates of the authority, of which the first signed it.
    pub trust_pem: String,
}

impl Credentials {
    /// Those that come of a request.
    #[must_use]
    pub fn new(request: &Request, issued: &Issued) -> Self {
        Self {
            key_pem: request.key_pem(),
            certificate_pem: issued.certificate_pem.clone(),
            trust_pem: issued.trust_pem.clone(),
        }
    }

    /// The certificate with those of the authority behind it, as it is shown to others.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        self.certificate_pem.clone() + &self.trust_pem
    }

    /// Writes them to a file that only its owner can read, in place of one that is there.
    ///
    /// # Errors
    /// When the file cannot be written: which, and why.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = self.key_pem.clone() + &self.certificate_pem + &self.trust_pem;
        replace(path, &text).map_err(|error| about(path, &error))
    }

    /// Reads them from a file.
    ///
    /// # Errors
    /// When the file is not there, cannot be read or is something else: which, and why.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read(path).map_err(|error| about(path, &error))?;
        let parts = pem::parse_many(text).unwrap_or_default();
        let (certificates, others): (Vec<_>, _) =
            parts.iter().partition(|part| part.tag() == "CERTIFICATE");
        let key = others.into_iter().find(|part: &&Pem| part.tag() == "PRIVATE KEY");
        let (Some(key), [certificate, trust @ ..]) = (key, &certificates[..]) else {
            let error = io::Error::new(
                io::ErrorKind::InvalidData,
                "expected a private key, its certificate, and those of the authority, in PEM",
            );
            return Err(about(path, &error));
        };
        Ok(Self {
            key_pem: pem_text(key),
            certificate_pem: pem_text(certificate),
            trust_pem: trust.iter().map(|part| pem_text(part)).collect(),
        })
    }
}

/// Writes a file beside another and puts it in its place, so that there is always a whole one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_added_extension("new");
    // What an earlier try left may have other permissions.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
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
    fn credentials_are_read_as_they_were_written_last_and_by_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roof.pem");
        some(b"old").write(&path).unwrap();
        fs::write(folder.path().join("roof.pem.new"), "torn").unwrap();
        some(b"new").write(&path).unwrap();
        assert!(Credentials::read(&path).unwrap() == some(b"new"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(some(b"new").chain_pem().starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn what_cannot_be_read_or_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roof.pem");
        let error = |path: &Path| Credentials::read(path).map(drop).unwrap_err().to_string();
        assert!(error(&path).contains("roof.pem: No such file"));
        for wrong in ["", "text", &some(b"x").key_pem, &some(b"x").trust_pem] {
            fs::write(&path, wrong).unwrap();
            assert!(error(&path).contains("expected a private key, its certificate"), "{wrong}");
        }
        let nowhere = some(b"x").write(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert!(nowhere.starts_with("/proc/nowhere: "), "{nowhere}");
    }
}
