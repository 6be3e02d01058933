//! Files that are replaced atomically and readable by their owner only.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use prost::Message;
use tempfile::NamedTempFile;

/// Reads a protobuf message from a file.
///
/// # Errors
/// When the file does not exist, cannot be read, or has other contents.
pub(crate) fn read<M: Message + Default>(file: &Path) -> io::Result<M> {
    M::decode(&*fs::read(file)?).map_err(io::Error::other)
}

/// Replaces a file with a protobuf message.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(file: &Path, message: &impl Message) -> io::Result<()> {
    replace(file, &message.encode_to_vec())
}

/// Replaces the contents of a file atomically.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = new_file(path)?;
    file.write_all(contents)?;
    // Without it, a power failure may leave the new name with old or no contents.
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder_of(path))?.sync_all()
}

/// A temporary file in the folder of `path`, to replace it.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn new_file(path: &Path) -> io::Result<NamedTempFile> {
    if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        return Err(io::Error::other("not a regular file"));
    }
    NamedTempFile::new_in(folder_of(path))
}

/// The folder of a file.
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
    fn replaced_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("duties");
        fs::write(&path, "public").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, &Assignment::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read::<Assignment>(&path).unwrap(), Assignment::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
