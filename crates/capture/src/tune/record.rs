//! The changed settings on disk, because a killed capture cannot restore them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::place::Place;

/// Records are deleted at the next boot, as the changes are (file-hierarchy(7)).
pub(super) const FOLDER: &str = "/run/wirestamp/tune";

/// Original value of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Entry {
    /// Interface index, which distinguishes interfaces of the same name.
    pub(super) index: i32,
    pub(super) place: Place,
    pub(super) before: String,
}

/// End of a replacement: only this number of entries before it remain. Written last, so that a process that is killed
/// before leaves the old entries too.
#[derive(Deserialize, Serialize)]
struct Replaced {
    remaining: usize,
}

/// The record of one interface: a line of JSON for each setting, and one for each [`Replaced`].
///
/// Its owner holds a lock, which the kernel releases when the process ends. If a record has lines and can be locked,
/// its owner has ended without restoring these settings.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Opens the record called `name`, and creates it if necessary. None if another process holds it.
    pub(super) fn open(folder: &Path, name: &str) -> io::Result<Option<Self>> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        let path = folder.join(name);
        loop {
            let file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Its owner may have removed it between the two calls.
            let inode = file.metadata()?.ino();
            if fs::metadata(&path).is_ok_and(|found| found.ino() == inode) {
                return Ok(Some(Self { file, path }));
            }
        }
    }

    /// The entries. A truncated line belongs to a setting that was not changed.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut text = String::new();
        (&self.file).rewind()?;
        (&self.file).read_to_string(&mut text)?;
        Ok(parse(&text))
    }

    /// Adds a setting, which may be changed after that.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.file.write_all(line(entry)?.as_bytes())
    }

    /// Replaces the entries. At each time of it, the record has all old entries or all new ones.
    pub(super) fn replace(&mut self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            return self.file.set_len(0);
        }
        if self.entries()? == entries {
            return Ok(());
        }
        let mut text = entries.iter().map(line).collect::<serde_json::Result<String>>()?;
        text += &line(&Replaced { remaining: entries.len() })?;
        self.file.write_all(text.as_bytes())
    }
}

/// A line of the record. It begins with a line break, because a killed process may have left a part of a line.
fn line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(format!("\n{}\n", serde_json::to_string(value)?))
}

fn parse(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        if let Ok(entry) = serde_json::from_str(line) {
            entries.push(entry);
        } else if let Ok(Replaced { remaining }) = serde_json::from_str(line) {
            entries.drain(..entries.len().saturating_sub(remaining));
        }
    }
    entries
}

/// Parses any text; valid entries must survive a round trip.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    let entries = parse(text);
    let written = entries.iter().map(|entry| serde_json::to_string(entry).expect("plain values"));
    let again: String = written.map(|line| line + "\n").collect();
    assert_eq!(parse(&again), entries);
}

impl Drop for Record {
    /// Removes an empty record while it is still locked. A failure leaves an empty record, which has no effect.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tune::place::Knob;

    fn entry(value: &str) -> Entry {
        Entry { index: 3, place: Place::Ethtool(Knob::Gro), before: value.to_owned() }
    }

    #[test]
    fn record_has_one_owner_and_is_removed_when_empty() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Record::open(&folder.path().join("new"), "1-eth0").unwrap();
        let mut record = open().unwrap();
        assert!(open().is_none());
        record.add(&entry("on")).unwrap();
        drop(record);
        let mut record = open().unwrap();
        assert_eq!(record.entries().unwrap(), [entry("on")]);
        record.replace(&[]).unwrap();
        let path = record.path.clone();
        drop(record);
        assert!(!path.exists());
    }

    #[test]
    fn truncated_line_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path(), "1-eth0").unwrap().unwrap();
        record.add(&entry("on")).unwrap();
        record.file.write_all(br#"{"index":3,"place":{"eth"#).unwrap();
        assert_eq!(record.entries().unwrap(), [entry("on")]);
    }

    #[test]
    fn killed_replacement_loses_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path(), "1-eth0").unwrap().unwrap();
        let old = ["1", "2", "3"].map(entry);
        old.iter().for_each(|entry| record.add(entry).unwrap());
        let before = fs::read_to_string(&record.path).unwrap().len();
        record.replace(&old[1..2]).unwrap();
        assert_eq!(record.entries().unwrap(), old[1..2]);
        let text = fs::read_to_string(&record.path).unwrap();
        for end in before..=text.len() {
            record.replace(&[]).unwrap();
            record.file.write_all(&text.as_bytes()[..end]).unwrap();
            // The last line is complete without its line break.
            let kept = if end + 1 < text.len() { &old[..] } else { &old[1..2] };
            record.add(&entry("4")).unwrap();
            let entries = record.entries().unwrap();
            assert!(kept.iter().all(|entry| entries.contains(entry)), "{end}: {entries:?}");
            assert_eq!(entries.last(), Some(&entry("4")), "{end}");
        }
    }

    #[test]
    fn unchanged_entries_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path(), "1-eth0").unwrap().unwrap();
        record.add(&entry("on")).unwrap();
        let before = fs::read(&record.path).unwrap();
        record.replace(&[entry("on")]).unwrap();
        assert_eq!(fs::read(&record.path).unwrap(), before);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text: String, value: String, index: i32, cut in 0_usize..200) {
            read_any(&text);
            let entry = Entry { index, place: Place::Sys(value.clone()), before: value };
            let line = serde_json::to_string(&entry).unwrap();
            prop_assert_eq!(parse(&line), [entry]);
            let cut: String = line.chars().take(cut).collect();
            read_any(&(cut + &text));
        }
    }
}
