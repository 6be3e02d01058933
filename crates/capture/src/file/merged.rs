//! Several capture files as one capture, in the order of their stamps.

use std::borrow::Cow;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use wirestamp_clock::{Time, Utc};

use super::folder::{DatedFile, changed, files_of};
use super::interface::Interface;
use super::read_ahead::Packets;
use super::reader::{Packet, Reader, lost_by_all};
use super::selection::split_interface;
use crate::{CaptureLoss, Error};

const PIPE: &str = "it can be read once only; write it to a file first";
const TWICE: &str = "it is given twice; leave one out";

/// The packets of several capture files, merged by their stamps. A file is open from its first packet to its last, so a ring of
/// many files needs one at a time.
pub struct MergedFiles {
    /// The paths that were given, as text.
    name: PathBuf,
    /// Files whose first packet is later than those read so far, the latest first.
    waiting: Vec<DatedFile>,
    open: Vec<OpenFile>,
    /// The file that begins last of those with packets that were opened.
    newest: Option<NewestFile>,
    /// Index in `open` of the packet that was returned last.
    returned: Option<usize>,
    /// Whether the packets before the damage of a file are read, and those of the other files.
    partial: bool,
    /// Damaged files, one text each.
    damage: Vec<String>,
    /// The first two files that overlap in time.
    overlap: Option<[PathBuf; 2]>,
    /// Interfaces of the files that were read to their end.
    interfaces: Vec<Interface>,
    /// Losses not yet returned.
    missed: Vec<CaptureLoss>,
}

/// The file that was opened last.
struct NewestFile {
    number: usize,
    first: Option<Time<Utc>>,
    path: PathBuf,
}

/// A file, and its next packet.
struct OpenFile {
    /// Files that were waiting when it was opened.
    number: usize,
    reader: Reader,
    /// Without bytes.
    next: Packet<'static>,
    bytes: Vec<u8>,
}

impl MergedFiles {
    /// Opens the files of `paths`. Each is a file, `file#interface`, or a folder, of which all captures are read. With `partial`,
    /// a damaged file is read up to the damage.
    ///
    /// # Errors
    /// A path cannot be read, is no capture file, is a pipe, or leads to a file that another one leads to.
    pub fn open(paths: &[PathBuf], partial: bool) -> Result<Self, Error> {
        let mut waiting = Vec::new();
        for path in paths {
            let not_several = |reason| Error::NotSeveral { path: path.clone(), reason };
            if path == Path::new("-") {
                return Err(not_several(PIPE));
            }
            let (file, interface) = split_interface(path);
            let failed = |cause| Error::Read { path: path.clone(), cause };
            let metadata = fs::metadata(&file).map_err(failed)?;
            if metadata.is_dir() && interface.is_none() {
                waiting.append(&mut files_of(path, first_time)?);
            } else if metadata.is_dir() || metadata.is_file() {
                let first = match first_time(path) {
                    Err(Error::Damaged { .. }) if partial => None,
                    first => first?,
                };
                let first = first.or_else(|| changed(&metadata));
                waiting.push(DatedFile { first, path: path.clone() });
            } else {
                return Err(not_several(PIPE));
            }
        }
        if let Some(path) = repeated(&waiting) {
            return Err(Error::NotSeveral { path, reason: TWICE });
        }
        waiting.sort_by(|one, other| other.cmp(one));
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        Ok(Self {
            name: names.join(", ").into(),
            waiting,
            open: Vec::new(),
            newest: None,
            returned: None,
            partial,
            damage: Vec::new(),
            overlap: None,
            interfaces: Vec::new(),
            missed: Vec::new(),
        })
    }

    /// The paths of the files, as text.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Packets missing in the files, as far as they have been read; none if a file does not have the number. Of the files of
    /// a ring, the last one has the number of all.
    #[must_use]
    pub fn capture_lost(&self) -> Option<u64> {
        let open = self.open.iter().flat_map(|file| file.reader.selected());
        lost_by_all(&self.interfaces.iter().chain(open).collect::<Vec<_>>())
    }

    /// Losses of the capture after the last packet read.
    #[must_use]
    pub fn take_missed(&mut self) -> Vec<CaptureLoss> {
        let mut missed = mem::take(&mut self.missed);
        missed.extend(self.open.iter_mut().flat_map(|file| file.reader.take_missed()));
        missed
    }

    /// Positions of damage, if only the packets before it were read.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The first two files that overlap in time, as far as they have been read.
    #[must_use]
    pub const fn overlap(&self) -> Option<&[PathBuf; 2]> {
        self.overlap.as_ref()
    }

    /// Opens the files that begin before the next packet of those that are open.
    fn open_due(&mut self) -> Result<(), Error> {
        while let Some(DatedFile { first, .. }) = self.waiting.last() {
            let next = self.open.iter().map(|file| file.next.time).min();
            if next.is_some_and(|next| Some(next) < *first) {
                break;
            }
            let Some(DatedFile { first, path }) = self.waiting.pop() else { break };
            let place = self.open.len();
            let (number, reader) = (self.waiting.len(), Reader::open(&path)?);
            self.open.push(OpenFile { number, reader, next: Packet::empty(), bytes: Vec::new() });
            self.advance(place)?;
            if self.open.len() > place {
                self.newest = Some(NewestFile { number, first, path });
                self.find_overlap();
            }
        }
        Ok(())
    }

    /// Notes the first file that has a packet after the begin of the newest one.
    fn find_overlap(&mut self) {
        let Some(newest) = self.newest.as_ref().filter(|_| self.overlap.is_none()) else { return };
        let is_later = |it: &&OpenFile| Some(it.next.time) > newest.first;
        let mut others = self.open.iter().filter(|it| it.number != newest.number);
        if let Some(other) = others.find(is_later) {
            self.overlap = Some([other.reader.path().to_owned(), newest.path.clone()]);
        }
    }

    /// Reads the next packet of an open file, or closes it.
    fn advance(&mut self, place: usize) -> Result<(), Error> {
        let OpenFile { reader, next, bytes, .. } = &mut self.open[place];
        match reader.next_packet() {
            Ok(Some(packet)) => {
                bytes.clear();
                bytes.extend_from_slice(&packet.bytes);
                *next = packet.without_bytes();
                return Ok(());
            }
            Ok(None) => {}
            Err(
                error @ (Error::Damaged { .. }
                | Error::LinkType { .. }
                | Error::WithoutTimes { .. }),
            ) if self.partial => self.damage.push(error.to_string()),
            Err(error) => return Err(error),
        }
        let mut file = self.open.remove(place);
        self.missed.append(&mut file.reader.take_missed());
        self.interfaces.extend(file.reader.selected().cloned());
        Ok(())
    }
}

impl Packets for MergedFiles {
    /// The next packet of all files. Its interface is one of its own file.
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        if let Some(place) = self.returned.take() {
            self.advance(place)?;
        }
        self.open_due()?;
        self.find_overlap();
        let files = self.open.iter().enumerate();
        let Some((place, _)) = files.min_by_key(|(_, file)| file.next.time) else {
            return Ok(None);
        };
        self.returned = Some(place);
        let OpenFile { next, bytes, .. } = &mut self.open[place];
        let mut missed = mem::take(&mut self.missed);
        missed.append(&mut next.missed);
        Ok(Some(Packet { missed, bytes: Cow::Borrowed(bytes), ..*next }))
    }
}

/// Stamp of the first packet of a file, if it has one.
fn first_time(path: &Path) -> Result<Option<Time<Utc>>, Error> {
    Ok(Reader::open(path)?.next_packet()?.map(|packet| packet.time))
}

/// A file that several paths lead to, unless each of them has another interface.
fn repeated(files: &[DatedFile]) -> Option<PathBuf> {
    let of = |path: &PathBuf| {
        let (file, interface) = split_interface(path);
        (fs::canonicalize(&file).unwrap_or(file), interface)
    };
    let all: Vec<_> = files.iter().map(|file| of(&file.path)).collect();
    let is_repeated = |place: usize| {
        let (file, interface) = &all[place];
        all[..place].iter().any(|(other, its)| {
            file == other && (interface.is_none() || its.is_none() || interface == its)
        })
    };
    (0..all.len()).find(|place| is_repeated(*place)).map(|place| files[place].path.clone())
}
