//! Messages that are kept in files.

use std::fs::{self, File};
use std::io::{self, Write};
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
    let mut new = File::create(&beside)?;
    new.write_all(&message.encode_to_vec())?;
    // Or else a loss of power may leave the name of a file that is not written yet.
    new.sync_all()?;
    fs::rename(beside, file)
}
