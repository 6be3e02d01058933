//! Quick runs of studies, which `tools/study-quick` makes too.

use std::env;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Where studies keep what they measure.
pub(crate) enum Folder {
    /// Folder with the results of `tools/study-quick`: nothing is measured twice.
    Left(PathBuf),
    /// A new folder.
    New { path: PathBuf, _within: TempDir },
}

impl Folder {
    pub(crate) fn of_quick_runs() -> Self {
        if let Some(folder) = env::var_os("WIRESTAMP_STUDIES") {
            return Self::Left(folder.into());
        }
        let within = tempfile::tempdir().unwrap();
        Self::New { path: within.path().join("new"), _within: within }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Left(path) | Self::New { path, .. } => path,
        }
    }
}
