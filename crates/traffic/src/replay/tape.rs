//! The packets of a file, read ahead by a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use wirestamp_capture::Error;
use wirestamp_capture::file::{Packet, Reader};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::LinkType;

use super::ReplayError;

/// How many frames are read ahead: at a million a second, 4 ms that a disk may take.
const AHEAD: usize = 4096;

/// A packet of the file.
#[derive(Debug)]
pub(super) struct Frame {
    /// How many times the file had been read to its end before.
    pub(super) round: u64,
    /// Its time in the file.
    pub(super) time: Time<Utc>,
    pub(super) bytes: Vec<u8>,
    pub(super) is_ethernet: bool,
    /// Whether the file has only its beginning.
    pub(super) is_cut: bool,
}

impl Frame {
    fn new(round: u64, packet: Packet<'_>) -> Self {
        let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        Self {
            round,
            time: packet.time,
            is_ethernet: packet.link == LinkType::Ethernet,
            is_cut: captured < packet.length,
            bytes: packet.bytes.into_owned(),
        }
    }
}

/// Refuses a file that has nothing to send.
pub(super) fn check(path: &Path) -> Result<(), ReplayError> {
    match Reader::open(path)?.next_packet()? {
        None => Err(ReplayError::Empty(path.to_owned())),
        Some(packet) if packet.link != LinkType::Ethernet => {
            Err(ReplayError::NotEthernet(path.to_owned()))
        }
        Some(_) => Ok(()),
    }
}

/// The packets of a file, as often as they are wanted. The thread that reads ends with it.
pub(super) struct Tape(Receiver<Result<Frame, Error>>);

impl Tape {
    /// Begins to read.
    pub(super) fn start(path: PathBuf, loops: u64) -> Self {
        let (ahead, tape) = sync_channel(AHEAD);
        thread::spawn(move || {
            for round in 0..loops {
                match read(&path, round, &ahead) {
                    Ok(true) => {}
                    // Nobody waits for more: the replay was stopped.
                    Ok(false) => break,
                    Err(error) => {
                        let _ = ahead.send(Err(error));
                        break;
                    }
                }
            }
        });
        Self(tape)
    }
}

impl Iterator for Tape {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.recv().ok()
    }
}

/// Reads the file once; false if nobody waits for its packets any more.
fn read(path: &Path, round: u64, ahead: &SyncSender<Result<Frame, Error>>) -> Result<bool, Error> {
    let mut reader = Reader::open(path)?;
    while let Some(packet) = reader.next_packet()? {
        if ahead.send(Ok(Frame::new(round, packet))).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
