//! Reads the packets of a file ahead, in a separate thread.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use wirestamp_capture::Error;
use wirestamp_capture::file::{Packet, Reader};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::LinkType;

use super::ReplayError;

/// Max frames read ahead: covers a disk delay of 4 ms at a million frames per second.
const READ_AHEAD_FRAMES: usize = 4096;

/// A packet of the file.
#[derive(Debug)]
pub(super) struct RecordedFrame {
    /// Number of times the file was read completely before.
    pub(super) round: u64,
    /// Time in the file.
    pub(super) time: Time<Utc>,
    pub(super) bytes: Vec<u8>,
    pub(super) is_ethernet: bool,
    /// Whether the file has only the beginning of the packet.
    pub(super) is_truncated: bool,
}

impl RecordedFrame {
    fn new(round: u64, packet: Packet<'_>) -> Self {
        let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        Self {
            round,
            time: packet.time,
            is_ethernet: packet.link == LinkType::Ethernet,
            is_truncated: captured < packet.length,
            bytes: packet.bytes.into_owned(),
        }
    }
}

/// Rejects a file without packets, or whose first packet is not an Ethernet frame.
pub(super) fn check(path: &Path) -> Result<(), ReplayError> {
    match Reader::open(path)?.next_packet()? {
        None => Err(ReplayError::Empty(path.to_owned())),
        Some(packet) if packet.link != LinkType::Ethernet => {
            Err(ReplayError::NotEthernet(path.to_owned()))
        }
        Some(_) => Ok(()),
    }
}

/// Iterator over the packets of all loops. The reading thread ends when it is dropped.
pub(super) struct FrameReader(Receiver<Result<RecordedFrame, Error>>);

impl FrameReader {
    /// Starts to read.
    pub(super) fn start(path: PathBuf, loops: u64) -> Self {
        let (ahead, frame_reader) = sync_channel(READ_AHEAD_FRAMES);
        thread::spawn(move || {
            for round in 0..loops {
                match read(&path, round, &ahead) {
                    Ok(true) => {}
                    // The receiver was dropped: the replay was stopped.
                    Ok(false) => break,
                    Err(error) => {
                        let _ = ahead.send(Err(error));
                        break;
                    }
                }
            }
        });
        Self(frame_reader)
    }
}

impl Iterator for FrameReader {
    type Item = Result<RecordedFrame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.recv().ok()
    }
}

/// Reads the file once; returns false if the receiver was dropped.
fn read(
    path: &Path,
    round: u64,
    ahead: &SyncSender<Result<RecordedFrame, Error>>,
) -> Result<bool, Error> {
    let mut reader = Reader::open(path)?;
    while let Some(packet) = reader.next_packet()? {
        if ahead.send(Ok(RecordedFrame::new(round, packet))).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
