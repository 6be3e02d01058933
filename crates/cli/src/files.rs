//! Files and their names.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether two paths lead to one file, whatever they look like.
pub(crate) fn are_one(a: &Path, b: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|file: Metadata| (file.dev(), file.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}
