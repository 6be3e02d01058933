//! Reads a capture file on a thread of its own, ahead of the use of its packets.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, Builder};

use super::reader::{Packet, Reader};
use crate::Error;

/// Size of a chunk, in bytes of packets and in packets: both stay in the cache of the cores until they are used.
const CHUNK_BYTES: usize = 256 * 1024;
const CHUNK_PACKETS: usize = 4096;

/// Chunks that are read ahead.
const QUEUED: usize = 4;

/// A source of packets.
pub trait Packets {
    /// The next packet, or `None` at the end.
    ///
    /// # Errors
    /// As [`Reader::next_packet`].
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error>;
}

impl Packets for Reader {
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        Self::next_packet(self)
    }
}

/// The packets of a file that another thread reads.
pub struct ReadAhead {
    chunks: Receiver<Chunk>,
    /// Chunks whose memory is used again.
    emptied: Sender<Chunk>,
    current: Chunk,
    /// Index of the next packet in the current chunk.
    next: usize,
}

/// Consecutive packets.
#[derive(Default)]
struct Chunk {
    /// Their captured bytes.
    bytes: Vec<u8>,
    packets: Vec<ReadPacket>,
    /// How the file ends behind them; none if more follow.
    end: Option<Result<(), Error>>,
}

/// A packet whose bytes are in its chunk.
struct ReadPacket {
    /// Without bytes.
    packet: Packet<'static>,
    place: Range<usize>,
}

/// Gives the packets of a file, or of several, to `use_packets`, and reads ahead meanwhile. Afterwards, `reader` is at the
/// end of the file, or further than the packets that were used.
///
/// # Errors
/// No thread can be created.
pub fn read_ahead<T>(
    reader: &mut (impl Packets + Send),
    use_packets: impl FnOnce(&mut ReadAhead) -> T,
) -> io::Result<T> {
    thread::scope(|scope| {
        let (filled, chunks) = sync_channel(QUEUED);
        let (emptied, reusable) = channel();
        let read = move || read_all(reader, &filled, &reusable);
        Builder::new().name("read-ahead".to_owned()).spawn_scoped(scope, read)?;
        // Dropped at the end of the scope's closure, which ends the thread.
        let mut packets = ReadAhead { chunks, emptied, current: Chunk::default(), next: 0 };
        Ok(use_packets(&mut packets))
    })
}

fn read_all(reader: &mut impl Packets, filled: &SyncSender<Chunk>, reusable: &Receiver<Chunk>) {
    loop {
        let mut chunk = reusable.try_recv().unwrap_or_default();
        chunk.fill(reader);
        let is_last = chunk.end.is_some();
        // Sending fails when the packets are no longer needed.
        if filled.send(chunk).is_err() || is_last {
            return;
        }
    }
}

impl Chunk {
    fn fill(&mut self, reader: &mut impl Packets) {
        self.bytes.clear();
        self.packets.clear();
        while self.bytes.len() < CHUNK_BYTES && self.packets.len() < CHUNK_PACKETS {
            match reader.next_packet() {
                Ok(Some(packet)) => self.push(packet),
                end => {
                    self.end = Some(end.map(drop));
                    return;
                }
            }
        }
    }

    fn push(&mut self, packet: Packet<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&packet.bytes);
        let place = begin..self.bytes.len();
        self.packets.push(ReadPacket { packet: packet.without_bytes(), place });
    }
}

impl Packets for ReadAhead {
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        while self.next == self.current.packets.len() {
            if let Some(end) = self.current.end.take() {
                return end.map(|()| None);
            }
            // No chunk follows the last one.
            let Ok(chunk) = self.chunks.recv() else { return Ok(None) };
            let used = mem::replace(&mut self.current, chunk);
            self.next = 0;
            // The thread has ended if it has read everything.
            drop(self.emptied.send(used));
        }
        let ReadPacket { packet, place } = &mut self.current.packets[self.next];
        self.next += 1;
        let Packet { interface, time, error, link, length, .. } = *packet;
        let missed = mem::take(&mut packet.missed);
        let bytes = Cow::Borrowed(&self.current.bytes[place.clone()]);
        Ok(Some(Packet { interface, time, error, link, bytes, length, missed }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// More than fit into the chunks that are read ahead.
    const PACKETS: u32 = 50_000;

    /// A classic capture of Ethernet, without its last `cut` bytes.
    fn capture(cut: usize) -> (tempfile::TempDir, Reader) {
        let mut bytes: Vec<u8> =
            [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).as_flattened().into();
        for number in 0..PACKETS {
            let length = 1 + number % 90;
            bytes.extend([number, 0, length, length].map(u32::to_le_bytes).as_flattened());
            bytes.extend((0..length).map(|it| (it + number).to_le_bytes()[0]));
        }
        bytes.truncate(bytes.len() - cut);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packets.pcap");
        fs::write(&path, bytes).unwrap();
        let reader = Reader::open(&path).unwrap();
        (folder, reader)
    }

    /// Times and bytes of the packets, and the error at the end, if any.
    fn read(packets: &mut impl Packets) -> (Vec<(i64, Vec<u8>)>, Option<String>) {
        let mut all = Vec::new();
        let end = loop {
            match packets.next_packet() {
                Ok(Some(packet)) => all.push((packet.time.as_nanos(), packet.bytes.into_owned())),
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        (all, end)
    }

    #[test]
    fn packets_and_damage_are_those_of_the_file() {
        for (cut, count) in [(0, PACKETS), (3, PACKETS - 1)] {
            let (_folder, mut reader) = capture(cut);
            let (packets, end) = read_ahead(&mut reader, read).unwrap();
            let (_folder, mut reader) = capture(cut);
            let direct = read(&mut reader);
            assert_eq!((packets.len(), end.is_some()), (count as usize, cut > 0));
            assert_eq!(packets, direct.0);
            assert_eq!(end.map(|it| it.contains("50000")), direct.1.map(|it| it.contains("50000")));
        }
    }

    #[test]
    fn reading_ends_with_the_use() {
        let (_folder, mut reader) = capture(0);
        let first = |ahead: &mut ReadAhead| Ok(ahead.next_packet()?.map(|it| it.length));
        let first: Result<_, Error> = read_ahead(&mut reader, first).unwrap();
        assert_eq!(first.unwrap(), Some(1));
        assert!(reader.next_packet().unwrap().is_some(), "it has not read the whole file");
    }
}
