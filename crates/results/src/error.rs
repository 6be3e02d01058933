//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be written.
    #[error(
        "cannot write {path}: {cause}; the folder has to exist, with room and permission to write"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl Error {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Write { path, cause }
    }
}
