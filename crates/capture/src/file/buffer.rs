//! Lets whole records out, and only those: the file is readable after every flush, whatever happens
//! next.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::growing::{Growing, Target};

/// Records are collected up to this size before they are written. File systems with large folios
/// (ext4 since Linux 6.16) take memory in the larger pieces the more is written at once.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// What may wait then: one more record, which is at the most a packet of the largest snap length
/// with its header and its comment.
pub(super) const PENDING_BYTES: usize = BUFFER_BYTES + 262_144 + 1024;

/// The first record of a run of them.
pub(super) struct Record {
    pub(super) length: usize,
    /// The packet's length on the wire, if it is a packet.
    pub(super) packet: Option<u32>,
}

/// Packets that were collected and could not be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) packets: u64,
    /// Their bytes on the wire.
    pub(super) bytes: u64,
}

impl Lost {
    pub(super) fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// The fastest of the levels that compress well: a capture must keep up with its packets.
const LEVEL: i32 = 1;

/// Compresses into zstd frames (RFC 8878). Each can be decompressed without the others.
pub(super) struct ZstdFrames {
    compressor: Compressor<'static>,
    frame: Vec<u8>,
}

impl ZstdFrames {
    pub(super) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self { compressor, frame: Vec::with_capacity(compress_bound(PENDING_BYTES)) })
    }

    /// A frame that holds `bytes`.
    pub(super) fn compress(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, &mut self.frame)?;
        Ok(&self.frame)
    }
}

/// Finds the first record of a run in a file's format; none where the run ends or makes no sense.
pub(super) type FirstOf = fn(&[u8]) -> Option<Record>;

/// Collects records, writes them in one piece, and takes back one that a full disk cut short.
pub(super) struct Buffer<T = Growing> {
    target: T,
    /// Whether the target can be cut back: a pipe cannot, nor may a file that others have begun.
    cuttable: bool,
    first_of: FirstOf,
    pending: Vec<u8>,
    /// Compresses what is written, if it is to be.
    frames: Option<ZstdFrames>,
    /// Bytes of whole records, or of whole frames of them, in the target.
    written: u64,
    /// Bytes of records that were collected and left, before compression.
    collected: u64,
    lost: Lost,
    /// Whether the target ends in part of a record, so that nothing may follow.
    dead: bool,
}

impl Buffer {
    /// Creates the file at `path`, or takes standard output for `-`.
    pub(super) fn create(
        path: &Path,
        first_of: FirstOf,
        frames: Option<ZstdFrames>,
    ) -> io::Result<Self> {
        let file = if path == Path::new("-") { standard_output()? } else { File::create(path)? };
        let metadata = file.metadata()?;
        let cuttable = metadata.is_file() && metadata.len() == 0;
        Ok(Self::over(Growing::new(file, cuttable), cuttable, first_of, frames))
    }
}

impl<T: Target> Buffer<T> {
    fn over(target: T, cuttable: bool, first_of: FirstOf, frames: Option<ZstdFrames>) -> Self {
        let pending = Vec::with_capacity(PENDING_BYTES);
        let (written, collected, lost, dead) = (0, 0, Lost::default(), false);
        Self { target, cuttable, first_of, pending, frames, written, collected, lost, dead }
    }

    /// Where the next record is appended.
    pub(super) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Whether enough has been collected to be written.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= BUFFER_BYTES
    }

    /// Whether what is written is compressed.
    pub(super) fn compresses(&self) -> bool {
        self.frames.is_some()
    }

    /// Bytes of the records of this file so far, before compression.
    pub(super) fn length(&self) -> u64 {
        self.collected + self.pending.len() as u64
    }

    /// What was collected and could not be written.
    pub(super) fn lost(&self) -> Lost {
        self.lost
    }

    /// Writes what is pending. What cannot be written whole is gone.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut done = 0;
        let result = self.write_out(&mut done);
        let mut whole = done;
        if result.is_err() {
            // Of a frame that is cut short nothing can be had.
            let records = if self.frames.is_none() { done } else { 0 };
            whole = self.whole_records(records);
            self.give_up_after(whole, done);
        }
        self.written += whole as u64;
        self.collected += self.pending.len() as u64;
        self.pending.clear();
        result
    }

    /// Writes out what is pending, as it is or as one frame; `done` counts the bytes that went out,
    /// also when the rest cannot.
    fn write_out(&mut self, done: &mut usize) -> io::Result<()> {
        if self.dead {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let out = match &mut self.frames {
            Some(frames) => frames.compress(&self.pending)?,
            None => &self.pending,
        };
        while *done < out.len() {
            match self.target.write(&out[*done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.target.flush()
    }

    /// The end of the last record that ends within the first `done` bytes of those pending.
    fn whole_records(&self, done: usize) -> usize {
        let ends = records(&self.pending, self.first_of).map(|(end, _)| end);
        ends.take_while(|&end| end <= done).last().unwrap_or(0)
    }

    /// Ends the target after its last whole record, of those pending the one that ends at `whole`.
    fn give_up_after(&mut self, whole: usize, done: usize) {
        for length in
            records(&self.pending[whole..], self.first_of).filter_map(|(_, packet)| packet)
        {
            self.lost.add(Lost { packets: 1, bytes: length.into() });
        }
        let end = self.written + whole as u64;
        let cut = self.cuttable && self.target.cut_back(end).is_ok();
        self.dead |= !cut && done > whole;
    }
}

/// The records of a run: where each ends, and the length of its packet if it is one.
fn records(run: &[u8], first_of: FirstOf) -> impl Iterator<Item = (usize, Option<u32>)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let Record { length, packet } = first_of(run.get(end..)?)?;
        end += length;
        (length > 0).then_some((end, packet))
    })
}

/// Standard output, unlike [`io::stdout`] without a buffer that keeps back what follows the last
/// line's end.
pub(super) fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{pcap, pcapng};
    use super::*;

    /// The packet's record of `length` bytes in both formats, as far as their lengths are concerned.
    fn packet(length: u32) -> Vec<u8> {
        let mut record = [6, length, length - 16, 0].map(u32::to_ne_bytes).as_flattened().to_vec();
        record.resize(length as usize, 0);
        record
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

    const FORMATS: [FirstOf; 2] = [pcapng::first_of, pcap::first_of];

    /// Writes records of 24, 20 and 20 bytes to a disk of 50, the last two at once.
    fn fill(first_of: FirstOf, cuttable: bool) -> Buffer<Disk> {
        let mut buffer = Buffer::over(Disk(Vec::new(), 50), cuttable, first_of, None);
        write(&mut buffer, &[24]).unwrap();
        let error = write(&mut buffer, &[20, 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        buffer
    }

    fn write(buffer: &mut Buffer<Disk>, lengths: &[u32]) -> io::Result<()> {
        for &length in lengths {
            buffer.pending().extend(packet(length));
        }
        buffer.flush()
    }

    #[test]
    fn a_record_that_does_not_fit_is_taken_back_and_its_packet_counted() {
        for first_of in FORMATS {
            let mut buffer = fill(first_of, true);
            assert_eq!((buffer.target.0.len(), buffer.lost().packets), (44, 1));
            buffer.target.1 = 100;
            write(&mut buffer, &[16]).unwrap();
            assert_eq!(buffer.target.0.len(), 60);
        }
    }

    #[test]
    fn nothing_ever_follows_part_of_a_record_that_cannot_be_taken_back() {
        for first_of in FORMATS {
            let mut buffer = fill(first_of, false);
            assert_eq!((buffer.target.0.len(), buffer.lost().packets), (50, 1));
            buffer.target.1 = 100;
            for lost in [2, 3] {
                assert!(write(&mut buffer, &[16]).is_err());
                assert_eq!((buffer.target.0.len(), buffer.lost().packets), (50, lost));
            }
        }
    }

    #[test]
    fn of_a_frame_that_does_not_fit_every_packet_is_lost_and_the_frames_before_stay() {
        let frames = ZstdFrames::new().unwrap();
        let mut buffer = Buffer::over(Disk(Vec::new(), 100), true, pcapng::first_of, Some(frames));
        write(&mut buffer, &[600, 600]).unwrap();
        let whole = buffer.target.0.len();
        buffer.target.1 = whole + 5;
        assert!(write(&mut buffer, &[600, 600]).is_err());
        assert_eq!(
            (buffer.target.0.len(), buffer.lost().packets, buffer.length()),
            (whole, 2, 2400)
        );
        assert_eq!(zstd::decode_all(&*buffer.target.0).unwrap().len(), 1200);
    }
}
