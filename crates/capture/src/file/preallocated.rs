//! A file that grows into preallocated disk space.
//!
//! ext4 reserves the blocks of a growing file one by one on their first write, which is half the cost of a write.
//! Preallocated blocks cost only the copy.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;

use rustix::fs::{FallocateFlags, FsWord, fallocate, fstatfs};

/// Type of ext4 in statfs(2) (`EXT4_SUPER_MAGIC` of linux/magic.h). XFS preallocates automatically, btrfs writes
/// to other blocks, and tmpfs would clear the memory first.
const EXT4: FsWord = 0xEF53;

/// Bytes to preallocate: the file's current size, within these bounds. Smaller files are not preallocated.
const PREALLOCATION: RangeInclusive<u64> = 1 << 20..=16 << 20;

/// Output of a buffer.
pub(super) trait WriteTarget: Write + Send {
    /// Removes everything after the first `length` bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A file with preallocated space. Unused space is freed on drop, or when another process truncates or deletes the
/// file. The file's length is always correct.
pub(super) struct PreallocatedFile {
    file: File,
    /// Bytes written so far.
    length: u64,
    /// End of the allocated space; none if nothing is preallocated.
    allocated: Option<u64>,
}

impl PreallocatedFile {
    /// Preallocates space only for a file that `is_new`: the length of another file is unknown.
    pub(super) fn new(file: File, is_new: bool) -> Self {
        let on_ext4 = || fstatfs(&file).is_ok_and(|of| of.f_type == EXT4);
        let allocated = (is_new && on_ext4()).then_some(0);
        Self { file, length: 0, allocated }
    }

    /// Preallocates space for `more` bytes. If that fails, the write reports the error.
    fn make_room(&mut self, more: usize) {
        let end = self.length + more as u64;
        let Some(allocated) = self.allocated else { return };
        if self.length < *PREALLOCATION.start() || end <= allocated {
            return;
        }
        let from = allocated.max(self.length);
        let ahead = (end - from).max(self.length.min(*PREALLOCATION.end()));
        let done = fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, ahead);
        self.allocated = done.is_ok().then_some(from + ahead);
    }
}

impl Write for PreallocatedFile {
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

impl WriteTarget for PreallocatedFile {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.allocated = None;
        self.length = length;
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }
}

impl Drop for PreallocatedFile {
    fn drop(&mut self) {
        if self.allocated.is_some_and(|allocated| allocated > self.length) {
            // Setting the current length frees the space after it (ext4_setattr in fs/ext4/inode.c). A failure only
            // leaves space unused.
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
    fn unused_space_is_freed() {
        let path = path("growing");
        let mut file = PreallocatedFile::new(File::create(&path).unwrap(), true);
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
    fn truncated_file_is_not_preallocated() {
        let path = path("cut-back");
        let mut file = PreallocatedFile::new(File::create(&path).unwrap(), true);
        file.write_all(&[1; 3 << 20]).unwrap();
        file.truncate(10).unwrap();
        file.write_all(&[2; 2]).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn existing_file_is_not_preallocated() {
        let path = path("begun");
        let file = PreallocatedFile::new(File::create(&path).unwrap(), false);
        assert_eq!(file.allocated, None);
        drop(file);
        fs::remove_file(path).unwrap();
    }
}
