//! What was changed, kept on disk: a capture that is killed cannot put it back itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::place::Place;

/// Records are gone with the next start of the machine, as the changes are (file-hierarchy(7)).
pub(super) const FOLDER: &str = "/run/wirestamp/tune";

/// One setting as it was.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Entry {
    /// The interface's number: another one of the same name has another.
    pub(super) index: i32,
    pub(super) place: Place,
    pub(super) before: String,
}

/// The record of one interface: a line of JSON for each setting.
///
/// Whoever holds it has it locked. The kernel unlocks it however that process ends, so that a
/// record that can be locked and has lines was left behind.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Opens the record called `name`, and makes one if there is none. None if somebody else has
    /// it.
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

    /// What is in it. A line that was cut short is of a setting that was not changed any more.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut text = String::new();
        (&self.file).rewind()?;
        (&self.file).read_to_string(&mut text)?;
        Ok(parse(&text))
    }

    /// Adds a setting, which may be changed after that.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        self.file.write_all(line.as_bytes())
    }

    /// Keeps these settings only.
    pub(super) fn keep(&mut self, entries: &[Entry]) -> io::Result<()> {
        self.file.set_len(0)?;
        entries.iter().try_for_each(|entry| self.add(entry))
    }
}

fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Takes any text for a record; what is found in it can be written and read again.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    let entries = parse(text);
    let written = entries.iter().map(|entry| serde_json::to_string(entry).expect("plain values"));
    let again: String = written.map(|line| line + "\n").collect();
    assert_eq!(parse(&again), entries);
}

impl Drop for Record {
    /// Removes a record that has nothing to say, while it is still locked. Where that fails, an
    /// empty one says nothing either.
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
    fn a_record_belongs_to_one_at_a_time_and_goes_when_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Record::open(&folder.path().join("new"), "1-eth0").unwrap();
        let mut record = open().unwrap();
        assert!(open().is_none());
        record.add(&entry("on")).unwrap();
        drop(record);
        let mut record = open().unwrap();
        assert_eq!(record.entries().unwrap(), [entry("on")]);
        record.keep(&[]).unwrap();
        let path = record.path.clone();
        drop(record);
        assert!(!path.exists());
    }

    #[test]
    fn a_line_cut_short_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path(), "1-eth0").unwrap().unwrap();
        record.add(&entry("on")).unwrap();
        record.file.write_all(br#"{"index":3,"place":{"eth"#).unwrap();
        assert_eq!(record.entries().unwrap(), [entry("on")]);
    }

    proptest! {
        #[test]
        fn no_text_leads_astray(text: String, value: String, index: i32, cut in 0_usize..200) {
            read_any(&text);
            let entry = Entry { index, place: Place::Sys(value.clone()), before: value };
            let line = serde_json::to_string(&entry).unwrap();
            prop_assert_eq!(parse(&line), [entry]);
            let cut: String = line.chars().take(cut).collect();
            read_any(&(cut + &text));
        }
    }
}
