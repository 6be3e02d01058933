//! Writes only whole records: the file is readable after every flush.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::preallocated::{PreallocatedFile, WriteTarget};

/// Records are collected up to this size before they are written. File systems with large folios (ext4 since Linux
/// 6.16) allocate larger pieces for larger writes.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// Max pending bytes: one more record, which is at most a packet of the largest snap length with its header and
/// comment.
pub(super) const PENDING_BYTES: usize = BUFFER_BYTES + 262_144 + 1024;

/// The first record of a sequence.
pub(super) struct Record {
    pub(super) length: usize,
    /// The packet in it, if it has one.
    pub(super) packet: Option<RecordedPacket>,
}

/// A packet in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedPacket {
    /// Number of its interface in the file.
    pub(super) interface: u32,
    /// Length on the wire.
    pub(super) length: u32,
}

/// Packets that were collected and could not be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostPackets {
    pub(super) packets: u64,
    /// Their bytes on the wire.
    pub(super) bytes: u64,
}

impl LostPackets {
    pub(super) fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// A fast level that compresses well: a capture must keep up with its packets.
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

    /// A zstd frame with `bytes`.
    pub(super) fn compress(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, &mut self.frame)?;
        Ok(&self.frame)
    }
}

/// Finds the first record of a sequence in a file's format; none if the sequence ends or is invalid.
pub(super) type RecordParser = fn(&[u8]) -> Option<Record>;

/// Collects records, writes them together, and removes a record truncated by a full disk.
pub(super) struct Buffer<T = PreallocatedFile> {
    target: T,
    /// Whether the target can be truncated: false for a pipe, and for a file that already had content.
    can_truncate: bool,
    parse_record: RecordParser,
    pending: Vec<u8>,
    /// Compresses the output, if requested.
    zstd: Option<ZstdFrames>,
    /// Bytes of whole records, or of whole zstd frames, in the target.
    written: u64,
    /// Bytes of records passed on, before compression.
    collected: u64,
    /// For each interface, as far as it has lost packets.
    lost: Vec<LostPackets>,
    /// Whether the target ends with an incomplete record, after which nothing may be written.
    is_broken: bool,
}

impl Buffer {
    /// Creates the file at `path`, or uses standard output for `-`.
    pub(super) fn create(
        path: &Path,
        parse_record: RecordParser,
        zstd: Option<ZstdFrames>,
    ) -> io::Result<Self> {
        let file = if path == Path::new("-") { standard_output()? } else { File::create(path)? };
        let metadata = file.metadata()?;
        let can_truncate = metadata.is_file() && metadata.len() == 0;
        Ok(Self::with_target(
            PreallocatedFile::new(file, can_truncate),
            can_truncate,
            parse_record,
            zstd,
        ))
    }
}

impl<T: WriteTarget> Buffer<T> {
    fn with_target(
        target: T,
        can_truncate: bool,
        parse_record: RecordParser,
        zstd: Option<ZstdFrames>,
    ) -> Self {
        let pending = Vec::with_capacity(PENDING_BYTES);
        let (written, collected, lost, is_broken) = (0, 0, Vec::new(), false);
        Self {
            target,
            can_truncate,
            parse_record,
            pending,
            zstd,
            written,
            collected,
            lost,
            is_broken,
        }
    }

    /// Buffer for the next record.
    pub(super) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Whether enough is collected for a write.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= BUFFER_BYTES
    }

    /// Whether the output is compressed.
    pub(super) fn compresses(&self) -> bool {
        self.zstd.is_some()
    }

    /// Bytes of the records of this file so far, before compression.
    pub(super) fn length(&self) -> u64 {
        self.collected + self.pending.len() as u64
    }

    /// Packets of an interface that were collected and could not be written.
    pub(super) fn lost(&self, interface: usize) -> LostPackets {
        self.lost.get(interface).copied().unwrap_or_default()
    }

    /// Writes the pending records. Records that cannot be written completely are lost.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut done = 0;
        let result = self.write_out(&mut done);
        let mut whole = done;
        if result.is_err() {
            // A truncated zstd frame cannot be read at all.
            let records = if self.zstd.is_none() { done } else { 0 };
            whole = self.whole_records(records);
            self.truncate_after(whole, done);
        }
        self.written += whole as u64;
        self.collected += self.pending.len() as u64;
        self.pending.clear();
        result
    }

    /// Writes the pending bytes, directly or as one zstd frame; `done` counts the bytes written, also if the rest
    /// fails.
    fn write_out(&mut self, done: &mut usize) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let out = match &mut self.zstd {
            Some(zstd) => zstd.compress(&self.pending)?,
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

    /// End of the last pending record within the first `done` bytes.
    fn whole_records(&self, done: usize) -> usize {
        let ends = records(&self.pending, self.parse_record).map(|(end, _)| end);
        ends.take_while(|&end| end <= done).last().unwrap_or(0)
    }

    /// Truncates the target after its last whole record, which ends at `whole` in the pending bytes.
    fn truncate_after(&mut self, whole: usize, done: usize) {
        for packet in
            records(&self.pending[whole..], self.parse_record).filter_map(|(_, packet)| packet)
        {
            let interface = packet.interface as usize;
            if self.lost.len() <= interface {
                self.lost.resize(interface + 1, LostPackets::default());
            }
            if let Some(lost) = self.lost.get_mut(interface) {
                lost.add(LostPackets { packets: 1, bytes: packet.length.into() });
            }
        }
        let end = self.written + whole as u64;
        let cut = self.can_truncate && self.target.truncate(end).is_ok();
        self.is_broken |= !cut && done > whole;
    }
}

/// The records of a sequence: the end of each, and its packet if it has one.
fn records(
    sequence: &[u8],
    parse_record: RecordParser,
) -> impl Iterator<Item = (usize, Option<RecordedPacket>)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let Record { length, packet } = parse_record(sequence.get(end..)?)?;
        end += length;
        (length > 0).then_some((end, packet))
    })
}

/// Standard output without the buffer of [`io::stdout`], which holds back a partial line.
pub(super) fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{pcap, pcapng};
    use super::*;

    /// Makes a packet record of a length.
    type MakeRecord = fn(u32) -> Vec<u8>;

    /// A record of pcapng: kind, length, interface, time, captured length, length on the wire.
    fn of_pcapng(length: u32) -> Vec<u8> {
        record(&[6, length, 0, 0, 0, length - 32, length], length)
    }

    /// A record of classic pcap: time, captured length, length on the wire.
    fn of_pcap(length: u32) -> Vec<u8> {
        record(&[0, 0, length - 16, length], length)
    }

    fn record(words: &[u32], length: u32) -> Vec<u8> {
        let mut record: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        record.resize(length as usize, 0);
        record
    }

    /// A disk with room for that many bytes.
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

    impl WriteTarget for Disk {
        fn truncate(&mut self, length: u64) -> io::Result<()> {
            self.0.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    const FORMATS: [(RecordParser, MakeRecord); 2] =
        [(pcapng::parse_record, of_pcapng), (pcap::parse_record, of_pcap)];

    /// Writes records of 40, 32 and 32 bytes to a disk of 80, the last two at once.
    fn fill((parse_record, make): (RecordParser, MakeRecord), can_truncate: bool) -> Buffer<Disk> {
        let mut buffer =
            Buffer::with_target(Disk(Vec::new(), 80), can_truncate, parse_record, None);
        write(&mut buffer, make, &[40]).unwrap();
        let error = write(&mut buffer, make, &[32, 32]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        buffer
    }

    fn write(buffer: &mut Buffer<Disk>, make: MakeRecord, lengths: &[u32]) -> io::Result<()> {
        for &length in lengths {
            buffer.pending().extend(make(length));
        }
        buffer.flush()
    }

    #[test]
    fn truncated_record_is_removed_and_counted() {
        for format in FORMATS {
            let mut buffer = fill(format, true);
            assert_eq!((buffer.target.0.len(), buffer.lost(0).packets), (72, 1));
            buffer.target.1 = 200;
            write(&mut buffer, format.1, &[36]).unwrap();
            assert_eq!(buffer.target.0.len(), 108);
        }
    }

    #[test]
    fn nothing_follows_a_partial_record() {
        for format in FORMATS {
            let mut buffer = fill(format, false);
            assert_eq!((buffer.target.0.len(), buffer.lost(0).packets), (80, 1));
            buffer.target.1 = 200;
            for lost in [2, 3] {
                assert!(write(&mut buffer, format.1, &[36]).is_err());
                assert_eq!((buffer.target.0.len(), buffer.lost(0).packets), (80, lost));
            }
        }
    }

    #[test]
    fn truncated_zstd_frame_loses_all_its_packets() {
        let zstd = ZstdFrames::new().unwrap();
        let mut buffer =
            Buffer::with_target(Disk(Vec::new(), 100), true, pcapng::parse_record, Some(zstd));
        write(&mut buffer, of_pcapng, &[600, 600]).unwrap();
        let whole = buffer.target.0.len();
        buffer.target.1 = whole + 5;
        assert!(write(&mut buffer, of_pcapng, &[600, 600]).is_err());
        assert_eq!(
            (buffer.target.0.len(), buffer.lost(0).packets, buffer.length()),
            (whole, 2, 2400)
        );
        assert_eq!(zstd::decode_all(&*buffer.target.0).unwrap().len(), 1200);
    }
}
