//! The receiver that knows what arrived.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;

use crate::sequence::Tracker;
use crate::{Payload, StreamTruth, sys};

/// The receive buffer that is asked for: half a second of 1 Gbit/s.
const BUFFER_BYTES: i32 = 64 << 20;
/// How many streams are kept track of; with 16 MiB each, at most 256 MiB.
const STREAMS: usize = 16;
/// How long a wait for a packet takes before it looks whether to stop.
const PATIENCE: Duration = Duration::from_millis(10);
/// How long what is queued at a request to stop may take to be counted. A full buffer holds a few
/// hundred thousand packets at most, each with its book-keeping of several hundred bytes.
const DRAIN: Duration = Duration::from_secs(1);

/// The receiver could not be set up, or stopped working.
///
/// The kernel's answer is in the message and therefore not the error's `source`: printed with its
/// chain of causes, the error would tell it twice.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The address could not be had.
    #[error("cannot receive at {address}: {cause}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The socket failed.
    #[error("receiving failed: {0}")]
    Receive(io::Error),
}

/// What arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SinkReport {
    /// Each stream, by its number.
    pub streams: BTreeMap<u16, StreamTruth>,
    /// Packets that carried no payload of ours, or were of one stream too many (16).
    pub foreign: u64,
    /// Packets that arrived and were dropped at the sink's own socket: its buffer was full.
    pub dropped: u32,
    /// Whether packets kept coming for a second after the request to stop, so that some that came
    /// before it may not have been counted.
    pub unfinished: bool,
}

impl SinkReport {
    /// Whether this is all that arrived: the sink missed nothing and could follow everything.
    /// If not, it is no ground truth.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.dropped == 0
            && !self.unfinished
            && self.streams.values().all(|stream| stream.untracked == 0)
    }
}

/// A UDP receiver that counts packets of the [`Sender`](crate::Sender), with a large buffer.
///
/// It belongs to the network namespace of the thread that makes it.
#[derive(Debug)]
pub struct Sink {
    socket: UdpSocket,
}

impl Sink {
    /// Begins to receive at `address`. From here on nothing that arrives is missed, as long as the
    /// buffer holds what [`Sink::run`] has not yet taken.
    ///
    /// # Errors
    /// [`SinkError::Bind`].
    pub fn bind(address: SocketAddr) -> Result<Self, SinkError> {
        let open = || {
            let socket = UdpSocket::bind(address)?;
            sys::enlarge_receive_buffer(&socket, BUFFER_BYTES)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(Self { socket })
        };
        open().map_err(|cause| SinkError::Bind { address, cause })
    }

    /// The address, with the port that was chosen if 0 was asked for.
    ///
    /// # Errors
    /// [`SinkError::Receive`] when the kernel does not say.
    pub fn local_addr(&self) -> Result<SocketAddr, SinkError> {
        self.socket.local_addr().map_err(SinkError::Receive)
    }

    /// Counts what arrives until `stop` is set and then nothing has come for 10 ms, or for a second
    /// where packets keep coming, whoever sends them.
    ///
    /// # Errors
    /// [`SinkError::Receive`].
    pub fn run(self, stop: &AtomicBool) -> Result<SinkReport, SinkError> {
        self.run_and_drain(stop, DRAIN)
    }

    fn run_and_drain(self, stop: &AtomicBool, drain: Duration) -> Result<SinkReport, SinkError> {
        let mut counts = Counts::default();
        let mut buffer = [0; 2048];
        let mut deadline = None;
        let unfinished = loop {
            // Looked at before the wait, so that what was in the buffer at the request is counted.
            if deadline.is_none() && stop.load(Ordering::Acquire) {
                deadline = Some(Instant::now() + drain);
            }
            match self.socket.recv(&mut buffer) {
                Ok(length) => counts.arrive(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if deadline.is_some() {
                        break false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SinkError::Receive(error)),
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break true;
            }
        };
        let dropped = sys::dropped(&self.socket).map_err(SinkError::Receive)?;
        Ok(SinkReport { dropped, unfinished, ..counts.report() })
    }
}

/// What has arrived so far.
#[derive(Debug, Default)]
struct Counts {
    streams: BTreeMap<u16, Tracker>,
    foreign: u64,
}

impl Counts {
    fn arrive(&mut self, bytes: &[u8]) {
        match Payload::decode(bytes) {
            Ok(Payload { stream, sequence, .. })
                if self.streams.len() < STREAMS || self.streams.contains_key(&stream) =>
            {
                self.streams.entry(stream).or_default().arrive(sequence);
            }
            _ => self.foreign += 1,
        }
    }

    fn report(&self) -> SinkReport {
        let streams = self.streams.iter().map(|(&id, tracker)| (id, tracker.truth())).collect();
        SinkReport { streams, foreign: self.foreign, ..SinkReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;

    use super::*;

    #[test]
    fn one_stream_too_many_is_foreign_and_so_is_garbage() {
        let mut counts = Counts::default();
        let mut bytes = [0; Payload::MIN_BYTES];
        for stream in 0..17 {
            let time = Time::from_nanos(0);
            let payload = Payload { stream, sequence: 0, intended: time, actual: time };
            payload.encode(&mut bytes).unwrap();
            counts.arrive(&bytes);
        }
        counts.arrive(b"hello");
        let report = counts.report();
        assert_eq!((report.streams.len(), report.foreign), (16, 2));
        assert!(report.is_complete());
    }

    #[test]
    fn what_a_full_buffer_drops_makes_the_report_incomplete() {
        let sink = Sink::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let sender = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        sys::enlarge_receive_buffer(&sink.socket, 1).unwrap(); // the kernel's least, 2304 bytes
        for _ in 0..100 {
            sender.send_to(&[0; 1000], sink.local_addr().unwrap()).unwrap();
        }
        let report = sink.run(&AtomicBool::new(true)).unwrap();
        assert!(report.dropped > 0);
        assert_eq!(report.foreign + u64::from(report.dropped), 100);
        assert!(!report.is_complete());
    }

    #[test]
    fn packets_that_keep_coming_do_not_keep_a_sink_that_was_asked_to_stop() {
        let sink = Sink::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let sender = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        for _ in 0..2 {
            sender.send_to(b"hello", sink.local_addr().unwrap()).unwrap();
        }
        let report = sink.run_and_drain(&AtomicBool::new(true), Duration::ZERO).unwrap();
        assert_eq!((report.foreign, report.unfinished), (1, true));
        assert!(!report.is_complete());
    }
}
