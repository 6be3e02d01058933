//! The file of anchors of a capture.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::{Path, PathBuf};

use wirestamp_clock::{AnchorFile, AnchorWriter, Timeline};

use super::Provenance;
use crate::Error;

/// A file of anchors that is being written.
pub struct AnchorLog {
    writer: AnchorWriter<File>,
    path: PathBuf,
}

impl AnchorLog {
    /// Creates the file at `path` for the anchors of the clock `name`, of the boot in `provenance`.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path, name: &str, provenance: &Provenance) -> Result<Self, Error> {
        let failed = |cause| Error::Write { path: path.to_owned(), cause };
        let file = File::create(path).map_err(failed)?;
        let writer = AnchorWriter::new(file, name, &provenance.boot_id);
        Ok(Self { writer: writer.map_err(failed)?, path: path.to_owned() })
    }

    /// Appends the new anchors and lines of `timeline`.
    ///
    /// # Errors
    /// They cannot be written. The file then ends with the last whole row, unless it is a pipe, and later updates
    /// add nothing.
    pub fn update(&mut self, timeline: &Timeline) -> Result<(), Error> {
        self.append(|writer| writer.update(timeline))
    }

    /// Appends what is new since the last update, up to the time at which `timeline` was made: after the last stamp.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn finish(&mut self, timeline: &Timeline) -> Result<(), Error> {
        self.append(|writer| writer.finish(timeline))
    }

    fn append(
        &mut self,
        write: impl FnOnce(&mut AnchorWriter<File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut file = self.writer.get_ref();
        let whole = file.stream_position();
        write(&mut self.writer).map_err(|cause| {
            if let Ok(whole) = whole {
                // If this fails, a reader reports the truncated row.
                let _ = self.writer.get_ref().set_len(whole);
            }
            let (path, written) = (self.path.clone(), self.writer.written());
            Error::AnchorsCutShort { path, written, cause }
        })
    }

    /// Anchors written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Number of gaps in the anchors, as [`AnchorWriter::gaps`].
    #[must_use]
    pub fn gaps(&self) -> u32 {
        self.writer.gaps()
    }
}

/// Reads the file of anchors at `path`.
///
/// # Errors
/// It cannot be read, or is not a file of anchors; the error has the line.
pub fn read_anchors(path: &Path) -> Result<AnchorFile, Error> {
    let failed = |cause| Error::Read { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    AnchorFile::read(BufReader::new(file))
        .map_err(|error| Error::Anchors { path: path.to_owned(), reason: error.to_string() })
}
