//! A file that grows, on disk space that was allocated before.
//!
//! ext4 reserves the blocks of a growing file one by one as they are first written to, which is
//! half of what a write costs. Blocks that are there already cost no more than the copy.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;

use rustix::fs::{FallocateFlags, FsWord, fallocate, fstatfs};

/// The type of ext4 in statfs(2) (`EXT4_SUPER_MAGIC` of linux/magic.h). XFS allocates ahead by itself,
/// btrfs writes elsewhere, and tmpfs would clear the memory first.
const EXT4: FsWord = 0xEF53;

/// As much is allocated at a time as the file has, within these bounds; a file below the lower one
/// does without.
const AHEAD: RangeInclusive<u64> = 1 << 20..=16 << 20;

/// What a buffer writes to.
pub(super) trait Target: Write + Send {
    /// Takes back what was written after the first `length` bytes.
    fn cut_back(&mut self, length: u64) -> io::Result<()>;
}

/// A file with space ahead of its end. What was not needed is given back when it is dropped, or
/// else by whoever next truncates or deletes the file: its length is right at any time.
pub(super) struct Growing {
    file: File,
    /// Bytes written so far.
    length: u64,
    /// Up to where there is space; none where it is not to be allocated ahead.
    allocated: Option<u64>,
}

impl Growing {
    /// A file that is written from its beginning on, if it `is_new`; otherwise nothing is known of
    /// it, and it is left to grow by itself.
    pub(super) fn new(file: File, is_new: bool) -> Self {
        let on_ext4 = || fstatfs(&file).is_ok_and(|of| of.f_type == EXT4);
        let allocated = (is_new && on_ext4()).then_some(0);
        Self { file, length: 0, allocated }
    }

    /// Sees to it that there is space for `more` bytes. Where there is none to be had the write
    /// will tell, so that this does not.
    fn make_room(&mut self, more: usize) {
        let end = self.length + more as u64;
        let Some(allocated) = self.allocated else { return };
        if self.length < *AHEAD.start() || end <= allocated {
            return;
        }
        let from = allocated.max(self.length);
        let ahead = (end - from).max(self.length.min(*AHEAD.end()));
        let done = fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, ahead);
        self.allocated = done.is_ok().then_some(from + ahead);
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.make_room(bytes.len());
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Target for Growing {
    fn cut_back(&mut self, length: u64) -> io::Result<()> {
        self.allocated = None;
        self.length = length;
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if self.allocated.is_some_and(|allocated| allocated > self.length) {
            // Setting the length that it has frees what lies behind (ext4_setattr in fs/ext4/inode.c).
            // If that fails, some space is unused: nothing of the capture is at stake.
            let _ = self.file.set_len(self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::{env, fs, process};

    use super::*;

    /// A file in the build folder, because a temporary one may be in memory.
    fn path(name: &str) -> PathBuf {
        let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
        folder.join(format!("wirestamp-{name}-{}", process::id()))
    }

    fn allocated(path: &PathBuf) -> u64 {
        fs::metadata(path).unwrap().blocks() * 512
    }

    #[test]
    fn a_file_has_the_length_that_was_written_and_gives_back_what_it_did_not_need() {
        let path = path("growing");
        let mut file = Growing::new(File::create(&path).unwrap(), true);
        let on_ext4 = file.allocated.is_some();
        for _ in 0..20 {
            file.write_all(&[7; 100_000]).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 2_000_000);
        assert_eq!(file.allocated.is_some_and(|until| until >= 2_000_000), on_ext4);
        drop(file);
        assert_eq!(fs::metadata(&path).unwrap().len(), 2_000_000);
        File::open(&path).unwrap().sync_all().unwrap();
        assert!(allocated(&path) < 2_100_000, "{}", allocated(&path));
        assert_eq!(fs::read(&path).unwrap(), [7; 2_000_000]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_back_goes_on_from_there_without_space_ahead() {
        let path = path("cut-back");
        let mut file = Growing::new(File::create(&path).unwrap(), true);
        file.write_all(&[1; 3 << 20]).unwrap();
        file.cut_back(10).unwrap();
        file.write_all(&[2; 2]).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_others_have_begun_is_left_to_grow_by_itself() {
        let path = path("begun");
        let file = Growing::new(File::create(&path).unwrap(), false);
        assert_eq!(file.allocated, None);
        drop(file);
        fs::remove_file(path).unwrap();
    }
}
