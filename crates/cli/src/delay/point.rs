//! The kind of a point argument: file, pipe or interface.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use wirestamp_capture::file::split_interface;

/// A point of observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A capture file; can be read repeatedly.
    File(PathBuf),
    /// A capture that can be read once, while it is written.
    Pipe(PathBuf),
    /// The packets of an interface, captured to a temporary file before they are compared.
    Captured(PathBuf),
    /// Any other name: an interface.
    Interface,
}

impl Point {
    pub(super) fn named(name: &str) -> Self {
        if name == "-" {
            return Self::Pipe(name.into());
        }
        // The path may name an interface of the file.
        match fs::metadata(split_interface(Path::new(name)).0).map(|found| found.file_type()) {
            Ok(kind) if kind.is_fifo() || kind.is_char_device() => Self::Pipe(name.into()),
            Ok(_) => Self::File(name.into()),
            Err(_) => Self::Interface,
        }
    }

    /// The path of the capture, unless it is an interface.
    pub(super) fn capture(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Pipe(path) | Self::Captured(path) => Some(path),
            Self::Interface => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_path_is_an_interface() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pcap");
        fs::write(&file, "").unwrap();
        let kind = |path: &Path| Point::named(path.to_str().unwrap());
        assert_eq!(kind(&file), Point::File(file.clone()));
        assert_eq!(kind(Path::new("/dev/null")), Point::Pipe("/dev/null".into()));
        assert_eq!(Point::named("eth0@there"), Point::Interface);
        assert!(Point::named("-").capture().is_some());
        assert!(Point::named("eth0").capture().is_none());
    }
}
