//! Files that only their owner can read, and that are always whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use prost::Message;
use tempfile::NamedTempFile;

/// The message in a file.
///
/// # Errors
/// When the file is not there, cannot be read, or is something else.
pub(crate) fn read<M: Message + Default>(file: &Path) -> io::Result<M> {
    M::decode(&*fs::read(file)?).map_err(io::Error::other)
}

/// Writes one in place of what is there.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(file: &Path, message: &impl Message) -> io::Result<()> {
    replace(file, &message.encode_to_vec())
}

/// Puts a new file in the place of another.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = new_file(path)?;
    file.write_all(contents)?;
    // Or else a loss of power may leave the name of a file that is not written yet.
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder_of(path))?.sync_all()
}

/// A file beside another, to take its place.
///
/// # Errors
/// When there can be none.
pub(crate) fn new_file(path: &Path) -> io::Result<NamedTempFile> {
    if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        return Err(io::Error::other("this is no file"));
    }
    NamedTempFile::new_in(folder_of(path))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::v1::Assignment;

    #[test]
    fn what_takes_the_place_of_a_file_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("duties");
        fs::write(&path, "anybody's").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, &Assignment::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read::<Assignment>(&path).unwrap(), Assignment::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
