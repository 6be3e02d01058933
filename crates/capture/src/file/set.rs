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
    /// Number of the file among those with the same time.
    number: u32,
    /// Number of files started because of the time. Excludes the first file.
    timed_files: u32,
}

impl FileSet {
    pub(super) fn new(path: &Path, rotation: Rotation, now: Time<Utc>) -> Self {
        Self { path: path.to_owned(), rotation, started: now, number: 0, timed_files: 0 }
    }

    /// Changes to the next file if a packet stamped at `time` belongs there; the current file has `length` bytes.
    /// Returns whether it changed.
    pub(super) fn rotate(&mut self, time: Time<Utc>, length: u64) -> bool {
        if self.is_old(time) {
            (self.started, self.number) = (time, 0);
            self.timed_files += 1;
        } else if self.rotation.bytes.is_some_and(|max| length > max) {
            let next = self.number.wrapping_add(1);
            self.number =
                if self.rotation.files.is_some_and(|files| next >= files) { 0 } else { next };
        } else {
            return false;
        }
        true
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
        let digits = files.map_or(0, |files| digits(files.saturating_sub(1)));
        if bytes.is_none() || (self.number == 0 && digits == 0) {
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
        assert_eq!(names("x", by_time, 4), ["x", "x"]);
        assert_eq!(names("x%s", Rotation { files: Some(2), ..by_time }, 20), expected[..2]);
    }

    #[test]
    fn files_by_both_restart_numbers_with_each_time() {
        let both = Rotation { seconds: Some(5), ..BY_SIZE };
        let expected = ["x1700000000", "x17000000001", "x1700000005", "x17000000051"];
        assert_eq!(names("x%s", both, 9), expected);
    }
}
