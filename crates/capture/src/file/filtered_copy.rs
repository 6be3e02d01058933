//! Copies a capture file without some of its packets.
//!
//! The copy has the format of the file, without compression. What is copied is copied as it is: all blocks of pcapng but those of
//! packets that are left out, and the length of a section, which is open then.

use std::path::{Path, PathBuf};

use super::Reader;
use super::buffer::BUFFER_BYTES;
use super::output::Output;
use crate::Error;

/// A copy of a capture file with selected packets. A regular file has the name `FILE.partial` until it is finished.
///
/// Each packet read must be passed to [`Self::packet`] before the next one is read.
pub struct FilteredCopy {
    path: PathBuf,
    output: Output,
    flushes: bool,
}

impl FilteredCopy {
    /// Begins a copy of what `reader` reads from now on, at `path`, or on standard output for `-`. With `flushes`, each packet
    /// is written at once.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, reader: &mut Reader, flushes: bool) -> Result<Self, Error> {
        reader.begin_copy()?;
        let output = Output::create(path);
        let output = output.map_err(|cause| Error::Write { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), output, flushes })
    }

    /// Keeps the last packet of `reader`, or leaves it out.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn packet(&mut self, reader: &mut Reader, keep: bool) -> Result<(), Error> {
        let Some(copied) = reader.copied() else { return Ok(()) };
        if keep {
            copied.keep();
        } else {
            copied.leave_out();
        }
        let writes = self.flushes || copied.length() >= BUFFER_BYTES;
        if writes { self.write(reader) } else { Ok(()) }
    }

    /// Writes the rest of what was read, and gives the file its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, reader: &mut Reader) -> Result<(), Error> {
        self.write(reader)?;
        let Self { path, output, .. } = self;
        output.finish().map_err(|cause| Error::Write { path, cause })
    }

    fn write(&mut self, reader: &mut Reader) -> Result<(), Error> {
        let Some(copied) = reader.copied() else { return Ok(()) };
        let written = self.output.write(copied.kept());
        written.map_err(|cause| Error::Write { path: self.path.clone(), cause })
    }
}
