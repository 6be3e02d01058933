//! The new file, which has another name until it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::file::buffer::standard_output;

/// What is written to. A regular file is removed unless it is finished.
pub(super) struct Output {
    file: File,
    /// None for what can only be written as it is: a pipe, a device.
    name: Option<Name>,
}

/// The two names of a regular file.
struct Name {
    partial: PathBuf,
    whole: PathBuf,
}

impl Output {
    /// Creates the file `path` under its other name, opens the pipe or device `path`, or takes
    /// standard output for `-`.
    ///
    /// # Errors
    /// When that fails, or there is a file of the other name.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { file: standard_output()?, name: None });
        }
        let there = match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Ok(Self { file: File::create(path)?, name: None });
            }
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A link goes on leading to the file whose place is taken.
        let whole = if there.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let partial = partial(&whole);
        // Never a file that is there: it may be what is read.
        let file = File::create_new(&partial).map_err(|error| in_the_way(&partial, error))?;
        let output = Self { file, name: Some(Name { partial, whole }) };
        if let Some(metadata) = there {
            output.file.set_permissions(metadata.permissions())?;
        }
        Ok(output)
    }

    /// Writes all that is `pending`, and empties it.
    pub(super) fn write(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all(pending)?;
        pending.clear();
        Ok(())
    }

    /// Gives the file its name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(Name { partial, whole }) = &self.name {
            // Some file systems tell only now that there was no room.
            self.file.sync_all()?;
            fs::rename(partial, whole)?;
            self.name = None;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Nothing can be done about a file that cannot be removed, and its name says what it is.
            let _ = fs::remove_file(&name.partial);
        }
    }
}

fn in_the_way(partial: &Path, error: io::Error) -> io::Error {
    let kind = error.kind();
    if kind != io::ErrorKind::AlreadyExists {
        return error;
    }
    let partial = partial.display();
    let reason = format!("{partial} is there already: delete it, unless it is still being written");
    io::Error::new(kind, reason)
}

fn partial(whole: &Path) -> PathBuf {
    let mut name = OsString::from(whole);
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
    fn what_was_there_stays_until_the_new_file_is_whole() {
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
    fn a_file_in_the_way_is_no_business_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(partial(&path), "somebody's").unwrap();
        let error = Output::create(&path).err().unwrap();
        assert!(error.to_string().contains("file.partial is there already"), "{error}");
        assert_eq!(fs::read(partial(&path)).unwrap(), b"somebody's");
        assert!(!path.exists());
    }

    #[test]
    fn a_device_is_written_as_it_is() {
        let mut output = Output::create(Path::new("/dev/null")).unwrap();
        output.write(&mut b"gone".to_vec()).unwrap();
        output.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file() && !Path::new("/dev/null.partial").exists());
    }
}
