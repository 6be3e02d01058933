//! The capture files of a folder, such as those of a ring, as one capture.

use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use wirestamp_clock::{Time, Utc};

use super::source::{self, Bytes, CLASSIC_HEADER, Chunks, Kind};
use crate::Error;

/// The bytes of several files, one after the other: sections of pcapng, or packets of classic pcap behind the first header.
pub(super) struct Files {
    waiting: VecDeque<PathBuf>,
    current: Option<Bytes>,
    /// Format of the first file, and its header if it is a classic one.
    first: Option<(Kind, Vec<u8>)>,
}

/// A capture file; sorted by its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DatedFile {
    /// Time of the first packet; of the last change, if there is none.
    pub(super) first: Option<Time<Utc>>,
    pub(super) path: PathBuf,
}

/// The capture files of `folder`, in the order of their first packets, by `first_time`. A file without packets has the time of
/// its last change. Other files, and empty ones, are left out.
///
/// # Errors
/// The folder cannot be read, or has no capture files.
pub(super) fn open(
    folder: &Path,
    first_time: impl Fn(&Path) -> Result<Option<Time<Utc>>, Error>,
) -> Result<Files, Error> {
    let mut files = files_of(folder, first_time)?;
    files.sort();
    let waiting = files.into_iter().map(|file| file.path).collect();
    Ok(Files { waiting, current: None, first: None })
}

/// The capture files of a folder and the times of [`open`], in no particular order.
///
/// # Errors
/// As [`open`].
pub(super) fn files_of(
    folder: &Path,
    first_time: impl Fn(&Path) -> Result<Option<Time<Utc>>, Error>,
) -> Result<Vec<DatedFile>, Error> {
    let failed = |cause| Error::Read { path: folder.to_owned(), cause };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let metadata = fs::metadata(&path).map_err(failed)?;
        if !metadata.is_file() || metadata.len() == 0 || source::open(&path)?.1 == Kind::Other {
            continue;
        }
        let first = match first_time(&path) {
            Ok(first) => first,
            // Compressed, and something else.
            Err(Error::NotACapture { .. }) => continue,
            Err(error) => return Err(error),
        };
        files.push(DatedFile { first: first.or_else(|| changed(&metadata)), path });
    }
    if files.is_empty() {
        let reason = "the folder has no capture files".to_owned();
        return Err(Error::NotACapture { path: folder.to_owned(), reason });
    }
    Ok(files)
}

/// Time of the last change of a file.
pub(super) fn changed(metadata: &Metadata) -> Option<Time<Utc>> {
    Time::try_from(metadata.modified().ok()?).ok()
}

impl Files {
    /// Opens a file, without the header that all classic files have.
    fn begin(&mut self, path: &Path) -> io::Result<Bytes> {
        let (file, kind) = source::open(path).map_err(io::Error::other)?;
        let (mut bytes, kind) = source::decompressed(Box::new(Chunks(file)), kind)?;
        let mut header = Vec::new();
        if kind == Kind::Classic {
            bytes.by_ref().take(CLASSIC_HEADER).read_to_end(&mut header)?;
        }
        match &self.first {
            None => {
                self.first = Some((kind, header.clone()));
                Ok(Box::new(io::Cursor::new(header).chain(bytes)))
            }
            Some((first, of_first)) if *first == kind && source::are_alike(of_first, &header) => {
                Ok(bytes)
            }
            Some(_) => Err(io::Error::other(format!(
                "{} has another format or link type than the files before it",
                path.display()
            ))),
        }
    }
}

impl Read for Files {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                let count = current.read(into)?;
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
            }
            let Some(path) = self.waiting.pop_front() else { return Ok(0) };
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            self.current = Some(self.begin(&path).map_err(named)?);
        }
    }
}
