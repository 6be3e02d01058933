//! Sets of files: when the next one begins, and its name.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use wirestamp_clock::{Span, Time, Utc};

use super::{Rotation, local_time};

/// The current file of a set.
pub(super) struct FileSet {
    path: PathBuf,
    rotation: Rotation,
    /// Start time of the file, or of the first file with that time in its name.
    started: Time<Utc>,
    /// Whether the name contains the time.
    is_named_by_time: bool,
    /// Number of the file among those with the same name.
    number: u32,
    /// Number of files started because of the time. Excludes the first file.
    timed_files: u32,
}

impl FileSet {
    pub(super) fn new(path: &Path, rotation: Rotation, now: Time<Utc>) -> Self {
        let is_named_by_time =
            rotation.seconds.is_some() && path.as_os_str().as_encoded_bytes().contains(&b'%');
        let path = path.to_owned();
        Self { path, rotation, started: now, is_named_by_time, number: 0, timed_files: 0 }
    }

    /// Changes to the next file if a packet stamped at `time` belongs there; the current file has `length` bytes.
    /// Returns whether it changed.
    pub(super) fn rotate(&mut self, time: Time<Utc>, length: u64) -> bool {
        if self.is_old(time) {
            self.number = if self.is_named_by_time { 0 } else { self.next_number() };
            self.started = time;
            self.timed_files += 1;
        } else if self.rotation.bytes.is_some_and(|max| length > max) {
            self.number = self.next_number();
        } else {
            return false;
        }
        true
    }

    /// The number after this one. Only sets by size overwrite files.
    fn next_number(&self) -> u32 {
        let Rotation { bytes, files, .. } = self.rotation;
        let next = self.number.wrapping_add(1);
        let is_last = bytes.is_some() && files.is_some_and(|files| next >= files);
        if is_last { 0 } else { next }
    }

    fn is_old(&self, time: Time<Utc>) -> bool {
        let Rotation { bytes, seconds, files } = self.rotation;
        let is_last = bytes.is_none() && files.is_some_and(|files| self.timed_files + 1 >= files);
        let Some(seconds) = seconds else { return false };
        !is_last && time - self.started >= Span::from_secs(seconds.into())
    }

    /// The name of the file.
    pub(super) fn name(&self) -> io::Result<PathBuf> {
        let Rotation { bytes, seconds, files } = self.rotation;
        let base = match seconds {
            Some(_) => local_time::format(&self.path, self.started)?,
            None => self.path.clone(),
        };
        let files = files.filter(|_| bytes.is_some());
        let digits = files.map_or(0, |files| digits(files.saturating_sub(1)));
        if self.number == 0 && digits == 0 {
            return Ok(base);
        }
        let mut name = OsString::from(base);
        name.push(format!("{:0digits$}", self.number));
        Ok(name.into())
    }
}

/// Number of digits; 0 for 0.
fn digits(number: u32) -> usize {
    number.checked_ilog10().map_or(0, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time<Utc> {
        Time::from_nanos(1_700_000_000_000_000_000 + seconds * 1_000_000_000)
    }

    /// The names of the first files, with a packet every second, where every third packet exceeds the size.
    fn names(path: &str, rotation: Rotation, packets: i64) -> Vec<String> {
        let mut set = FileSet::new(Path::new(path), rotation, at(0));
        let mut names = vec![set.name().unwrap().display().to_string()];
        let mut length = 0;
        for second in 0..packets {
            if set.rotate(at(second), length) {
                names.push(set.name().unwrap().display().to_string());
                length = 0;
            }
            length += 10;
        }
        names
    }

    const BY_SIZE: Rotation = Rotation { bytes: Some(29), seconds: None, files: None };

    // tcpdump 4.99.3 gives its files the same names.
    #[test]
    fn files_by_size_are_numbered_after_the_first() {
        assert_eq!(names("x", BY_SIZE, 9), ["x", "x1", "x2"]);
        assert_eq!(names("x%s", BY_SIZE, 4), ["x%s", "x%s1"]);
    }

    #[test]
    fn ring_of_files_wraps_and_has_leading_zeroes() {
        let ring = |files| Rotation { files: Some(files), ..BY_SIZE };
        assert_eq!(names("x", ring(3), 15), ["x0", "x1", "x2", "x0", "x1"]);
        assert_eq!(names("x", ring(11), 4), ["x00", "x01"]);
        assert_eq!(names("x", ring(10), 4), ["x0", "x1"]);
        assert_eq!(names("x", ring(1), 9), ["x", "x", "x"]);
    }

    #[test]
    fn files_by_time_have_it_in_their_names() {
        let by_time = Rotation { bytes: None, seconds: Some(2), files: None };
        let expected = ["x1700000000", "x1700000002", "x1700000004"];
        assert_eq!(names("x%s", by_time, 6), expected);
        assert_eq!(names("x%s", Rotation { files: Some(2), ..by_time }, 20), expected[..2]);
    }

    #[test]
    fn files_by_time_without_it_in_their_names_are_numbered() {
        let by_time = Rotation { bytes: None, seconds: Some(2), files: None };
        assert_eq!(names("x", by_time, 6), ["x", "x1", "x2"]);
        assert_eq!(names("x", Rotation { files: Some(2), ..by_time }, 20), ["x", "x1"]);
        let both = Rotation { bytes: Some(29), ..by_time };
        assert_eq!(names("x", both, 6), ["x", "x1", "x2"]);
    }

    #[test]
    fn files_by_both_restart_numbers_with_each_time() {
        let both = Rotation { seconds: Some(5), ..BY_SIZE };
        let expected = ["x1700000000", "x17000000001", "x1700000005", "x17000000051"];
        assert_eq!(names("x%s", both, 9), expected);
    }
}
