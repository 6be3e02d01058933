//! The trace ring of one CPU, mapped or read.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering;

use rustix::fs::OFlags;
use strum::{Display, IntoStaticStr};
use wirestamp_sys::mmap::{Access, Mapping, read_trace_ring};

use super::Error;
use super::event::TraceEvent;
use super::page::{Cursor, Missed, PageLayout};
use super::selection::Formats;
use super::sink::EventSink;
use super::tracefs::Instance;

/// Pages that one call reads at most, so that a busy CPU does not keep the others waiting.
const PAGES_AT_ONCE: usize = 256;

/// How records get from the kernel to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr)]
pub enum Reading {
    /// The rings are mapped (Linux 6.10); a system call per page advances the reader.
    #[strum(serialize = "mmap")]
    Mapped,
    /// A system call copies each page.
    #[strum(serialize = "read")]
    Copied,
}

/// The ring of one CPU.
#[derive(Debug)]
pub(super) struct Ring {
    cpu: u32,
    file: File,
    layout: PageLayout,
    mapped: Option<MappedRing>,
    /// The newest page.
    page: Vec<u8>,
    cursor: Cursor,
    /// Events lost since the last event.
    missed: Missed,
    delivered: u64,
}

/// A mapped ring: first page `struct trace_buffer_meta` of linux/trace_mmap.h, then the sub-buffers.
#[derive(Debug)]
struct MappedRing {
    head: Mapping,
    buffers: Mapping,
    buffer_size: usize,
    /// Sub-buffer that was read last, and its timestamp.
    current: Option<(u32, u64)>,
}

/// Offsets in `struct trace_buffer_meta`.
mod head {
    pub(super) const SIZE: usize = 0;
    pub(super) const BUFFER_SIZE: usize = 8;
    pub(super) const BUFFERS: usize = 12;
    pub(super) const READER: usize = 24;
    /// Bytes of data in the reader's buffer.
    pub(super) const WRITTEN: usize = 28;
    /// Bytes of the struct that this module reads.
    pub(super) const LENGTH: usize = 32;
}

impl Ring {
    /// Opens the ring of `cpu`, read by copying.
    pub(super) fn open(instance: &Instance, cpu: u32, layout: PageLayout) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let path = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let file =
            options.open(path).map_err(Error::of(format!("open the trace ring of {cpu}")))?;
        let page = vec![0; layout.page_size()];
        let (cursor, missed) = (Cursor::default(), Missed::None);
        Ok(Self { cpu, file, layout, mapped: None, page, cursor, missed, delivered: 0 })
    }

    /// Maps the ring. Its size is final from now on.
    pub(super) fn map(&mut self) -> std::io::Result<()> {
        let map = |offset, length| {
            let offset = i64::try_from(offset).map_err(|_| ErrorKind::InvalidData)?;
            Mapping::shared(self.file.as_fd(), offset, length, Access::Read)
        };
        let first = map(0, rustix::param::page_size())?;
        let size = first.word(head::SIZE).load(Ordering::Relaxed) as usize;
        let buffer_size = first.word(head::BUFFER_SIZE).load(Ordering::Relaxed) as usize;
        let buffers = first.word(head::BUFFERS).load(Ordering::Relaxed) as usize;
        if size < head::LENGTH || buffer_size != self.page.len() {
            return Err(std::io::Error::other("the ring has an unknown layout"));
        }
        let length = buffer_size.checked_mul(buffers).ok_or(ErrorKind::InvalidData)?;
        let buffers = map(size, length)?;
        self.mapped = Some(MappedRing { head: first, buffers, buffer_size, current: None });
        Ok(())
    }

    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Events that the sink received.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Passes the events in the ring to `sink`, some pages at most. Returns whether the ring was read to its end.
    pub(super) fn drain(
        &mut self,
        formats: &Formats,
        sink: &mut dyn EventSink,
    ) -> Result<bool, Error> {
        for _ in 0..PAGES_AT_ONCE {
            let Some(written) = self.next_page()? else { return Ok(true) };
            self.deliver(written, formats, sink)?;
        }
        Ok(false)
    }

    /// Gets the next page, or more of the last one, and places the cursor. Returns the bytes of data that the kernel has
    /// written; none if there are no new ones.
    fn next_page(&mut self) -> Result<Option<usize>, Error> {
        let failed = || Error::of(format!("read the trace ring of CPU {}", self.cpu));
        if let Some(ring) = &mut self.mapped {
            read_trace_ring(self.file.as_fd()).map_err(failed())?;
            let reader = ring.head.word(head::READER).load(Ordering::Acquire);
            let written = ring.head.word(head::WRITTEN).load(Ordering::Acquire) as usize;
            let is_same = ring.current.is_some_and(|(id, _)| id == reader);
            if is_same && written <= self.cursor.position() {
                return Ok(None);
            }
            ring.copy(reader, &mut self.page);
            let Some(page) = self.layout.page(&self.page) else { return Ok(None) };
            let current = Some((reader, page.timestamp));
            if ring.current != current {
                ring.current = current;
                self.cursor = Cursor::new(page.timestamp);
                self.missed = self.missed.and(page.missed);
            }
            let written = written.min(page.data.len());
            return Ok((written > self.cursor.position()).then_some(written));
        }
        let length = match self.file.read(&mut self.page) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            read => read.map_err(failed())?,
        };
        let page = self.page.get(..length).and_then(|read| self.layout.page(read));
        let Some(page) = page else { return Ok(Some(self.cursor.position())) };
        self.cursor = Cursor::new(page.timestamp);
        self.missed = self.missed.and(page.missed);
        Ok(Some(page.committed))
    }

    /// Passes the records up to `written` to `sink`.
    fn deliver(
        &mut self,
        written: usize,
        formats: &Formats,
        sink: &mut dyn EventSink,
    ) -> Result<(), Error> {
        let Some(page) = self.layout.page(&self.page) else { return Ok(()) };
        let data = &page.data[..written.min(page.data.len())];
        // A malformed entry and an unknown event are counted: the kernel's count of read events includes them.
        while let Some(record) = self.cursor.next(data) {
            let Ok(record) = record else { break };
            let Some(format) = formats.of(record.data) else { continue };
            let (raw, cpu, lost_before) = (record.time, self.cpu, self.missed);
            sink.event(&TraceEvent { raw, cpu, lost_before, format, record: record.data })?;
            self.missed = Missed::None;
            self.delivered += 1;
        }
        Ok(())
    }
}

impl MappedRing {
    /// Copies a sub-buffer. The kernel may write behind the part that it has reported.
    fn copy(&self, reader: u32, page: &mut [u8]) {
        let start = reader as usize * self.buffer_size;
        for (offset, word) in (start..).step_by(8).zip(page.chunks_exact_mut(8)) {
            word.copy_from_slice(&self.buffers.load::<u64>(offset).to_ne_bytes());
        }
    }
}
