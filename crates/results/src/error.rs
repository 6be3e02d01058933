//! Errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// Error of writing a table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be written.
    #[error(
        "cannot write {path}: {cause}; check that the folder exists, is writable and has free space"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Cause from the system.
        cause: io::Error,
    },
}

impl Error {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Write { path, cause }
    }
}
