//! Messages that are kept in files.

use std::fs;
use std::io;
use std::path::Path;

use prost::Message;

/// The message in a file.
///
/// # Errors
/// When the file is not there, cannot be read, or is something else.
pub(crate) fn read<M: Message + Default>(file: &Path) -> io::Result<M> {
    M::decode(&*fs::read(file)?).map_err(io::Error::other)
}

/// Writes one in place of what is there, so that there is always a whole file.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(file: &Path, message: &impl Message) -> io::Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, message.encode_to_vec())?;
    fs::rename(beside, file)
}
