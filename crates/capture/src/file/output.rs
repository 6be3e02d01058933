//! The new file, which has a temporary name until it is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::file::buffer::standard_output;

/// The output. A regular file is removed unless it is finished.
pub(super) struct Output {
    file: File,
    /// None for a pipe or a device, which is written directly.
    name: Option<Name>,
}

/// Temporary and final name of a regular file.
struct Name {
    partial: PathBuf,
    complete: PathBuf,
}

impl Output {
    /// Creates the file `path` under its temporary name, opens the pipe or device `path`, or uses standard output
    /// for `-`.
    ///
    /// # Errors
    /// That fails, or there is a file with the temporary name.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { file: standard_output()?, name: None });
        }
        let existing = match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Ok(Self { file: File::create(path)?, name: None });
            }
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // If `path` is a symbolic link, its target is replaced, and the link stays.
        let complete = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let partial = partial(&complete);
        // Never an existing file: it may be the input.
        let file = File::create_new(&partial).map_err(|error| already_exists(&partial, error))?;
        let output = Self { file, name: Some(Name { partial, complete }) };
        if let Some(metadata) = existing {
            output.file.set_permissions(metadata.permissions())?;
        }
        Ok(output)
    }

    /// Writes and empties `pending`.
    pub(super) fn write(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all(pending)?;
        pending.clear();
        Ok(())
    }

    /// Renames the file to its final name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(Name { partial, complete }) = &self.name {
            // Some file systems report a full disk only now.
            self.file.sync_all()?;
            fs::rename(partial, complete)?;
            self.name = None;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // If this fails, the temporary name shows that the file is incomplete.
            let _ = fs::remove_file(&name.partial);
        }
    }
}

fn already_exists(partial: &Path, error: io::Error) -> io::Error {
    let kind = error.kind();
    if kind != io::ErrorKind::AlreadyExists {
        return error;
    }
    let partial = partial.display();
    let reason = format!("{partial} exists; delete it, unless it is still being written");
    io::Error::new(kind, reason)
}

fn partial(complete: &Path) -> PathBuf {
    let mut name = OsString::from(complete);
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn existing_file_stays_until_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();

        let mut output = Output::create(&link).unwrap();
        output.write(&mut b"aft".to_vec()).unwrap();
        assert_eq!(names(folder.path()), ["file", "file.partial", "link"]);
        drop(output);
        assert_eq!(names(folder.path()), ["file", "link"]);
        assert_eq!(fs::read(&path).unwrap(), b"before");

        let mut output = Output::create(&link).unwrap();
        output.write(&mut b"after".to_vec()).unwrap();
        output.finish().unwrap();
        assert_eq!(names(folder.path()), ["file", "link"]);
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn existing_partial_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(partial(&path), "somebody's").unwrap();
        let error = Output::create(&path).err().unwrap();
        assert!(error.to_string().contains("file.partial exists"), "{error}");
        assert_eq!(fs::read(partial(&path)).unwrap(), b"somebody's");
        assert!(!path.exists());
    }

    #[test]
    fn device_is_written_directly() {
        let mut output = Output::create(Path::new("/dev/null")).unwrap();
        output.write(&mut b"gone".to_vec()).unwrap();
        output.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file() && !Path::new("/dev/null.partial").exists());
    }
}
