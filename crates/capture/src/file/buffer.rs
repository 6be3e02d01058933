//! Lets whole blocks out, and only those: the file is readable after every flush, whatever happens
//! next.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Blocks are collected up to this size before they are written.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

const ENHANCED_PACKET: u32 = 6; // block type of a packet (pcapng, section 4.3)

/// What a buffer writes to.
pub(super) trait Target: Write + Send {
    /// Takes back what was written after the first `length` bytes.
    fn cut_back(&mut self, length: u64) -> io::Result<()>;
}

impl Target for File {
    fn cut_back(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// Collects blocks, writes them in one piece, and takes back one that a full disk cut short.
pub(super) struct Buffer<T = File> {
    target: T,
    /// Whether the target can be cut back: a pipe cannot, nor may a file that others have begun.
    cuttable: bool,
    pending: Vec<u8>,
    /// Bytes of whole blocks in the target.
    written: u64,
    /// Packets that were collected and could not be written.
    lost: u64,
    /// Whether the target ends in part of a block, so that nothing may follow.
    dead: bool,
}

impl Buffer {
    /// Creates the file at `path`, or takes standard output for `-`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            Self::new(standard_output()?)
        } else {
            Self::new(File::create(path)?)
        }
    }

    fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let cuttable = metadata.is_file() && metadata.len() == 0;
        Ok(Self::over(file, cuttable))
    }
}

impl<T: Target> Buffer<T> {
    fn over(target: T, cuttable: bool) -> Self {
        let pending = Vec::with_capacity(2 * BUFFER_BYTES);
        Self { target, cuttable, pending, written: 0, lost: 0, dead: false }
    }

    /// Bytes that wait to be written.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Packets that were collected and could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes what is pending; `done` counts the bytes that went out, also when the rest cannot.
    fn write_out(&mut self, done: &mut usize) -> io::Result<()> {
        if self.dead {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while *done < self.pending.len() {
            match self.target.write(&self.pending[*done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.target.flush()
    }

    /// Ends the target after its last whole block, of those pending the one that ends at `whole`.
    fn give_up_after(&mut self, whole: usize, done: usize) {
        self.lost += packets(&self.pending[whole..]);
        let end = self.written + whole as u64;
        let cut = self.cuttable && self.target.cut_back(end).is_ok();
        self.dead = !cut && done > whole;
    }
}

// `Write`, because that is what the library encodes blocks into.
impl<T: Target> Write for Buffer<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut done = 0;
        let result = self.write_out(&mut done);
        let mut whole = done;
        if result.is_err() {
            whole =
                blocks(&self.pending).take_while(|block| block.end <= done).fold(0, |_, b| b.end);
            self.give_up_after(whole, done);
        }
        self.written += whole as u64;
        self.pending.clear();
        result
    }
}

/// Standard output, unlike [`io::stdout`] without a buffer that keeps back what follows the last
/// line's end.
pub(super) fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// A block in a run of blocks.
struct Block {
    kind: u32,
    end: usize,
}

/// The blocks of a run: the first word of each is its type, the second its length, in this machine's
/// byte order, in which captures are written.
fn blocks(run: &[u8]) -> impl Iterator<Item = Block> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let [a, b, c, d, e, f, g, h] = *run.get(start..)?.first_chunk()?;
        let length = u32::from_ne_bytes([e, f, g, h]) as usize;
        start += length;
        (length > 0).then_some(Block { kind: u32::from_ne_bytes([a, b, c, d]), end: start })
    })
}

/// The number of packets in a run of blocks.
fn packets(run: &[u8]) -> u64 {
    blocks(run).map(|block| u64::from(block.kind == ENHANCED_PACKET)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet's block of `length` bytes, as far as its first two words are concerned.
    fn block(length: u32) -> Vec<u8> {
        let mut block = vec![0; length as usize];
        block[..4].copy_from_slice(&ENHANCED_PACKET.to_ne_bytes());
        block[4..8].copy_from_slice(&length.to_ne_bytes());
        block
    }

    /// Has room for so many bytes, like a disk that fills.
    struct Disk(Vec<u8>, usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fit = bytes.len().min(self.1 - self.0.len());
            self.0.extend_from_slice(&bytes[..fit]);
            if fit == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fit) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Target for Disk {
        fn cut_back(&mut self, length: u64) -> io::Result<()> {
            self.0.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    /// Writes blocks of 24, 20 and 20 bytes to a disk of 50, the last two at once.
    fn fill(cuttable: bool) -> Buffer<Disk> {
        let mut buffer = Buffer::over(Disk(Vec::new(), 50), cuttable);
        buffer.write_all(&block(24)).unwrap();
        buffer.flush().unwrap();
        buffer.write_all(&[block(20), block(20)].concat()).unwrap();
        assert_eq!(buffer.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        buffer
    }

    #[test]
    fn a_block_that_does_not_fit_is_taken_back_and_its_packet_counted() {
        let mut buffer = fill(true);
        assert_eq!((buffer.target.0.len(), buffer.lost()), (44, 1));
        buffer.target.1 = 100;
        buffer.write_all(&block(12)).unwrap();
        buffer.flush().unwrap();
        assert_eq!(buffer.target.0.len(), 56);
    }

    #[test]
    fn nothing_follows_part_of_a_block_that_cannot_be_taken_back() {
        let mut buffer = fill(false);
        assert_eq!((buffer.target.0.len(), buffer.lost()), (50, 1));
        buffer.target.1 = 100;
        buffer.write_all(&block(12)).unwrap();
        assert!(buffer.flush().is_err());
        assert_eq!((buffer.target.0.len(), buffer.lost()), (50, 2));
    }
}
