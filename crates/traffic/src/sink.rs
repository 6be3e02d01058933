//! The receiver of test traffic: counts all arrivals.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use thiserror::Error;
use wirestamp_sys::socket::{dropped, enlarge_receive_buffer};

use crate::arrivals::SequenceTracker;
use crate::{Payload, StreamArrivals};

/// The requested receive buffer: half a second at 1 Gbit/s.
const BUFFER_BYTES: usize = 64 << 20;
/// Max number of tracked streams: at 16 MiB each, 256 MiB.
const MAX_STREAMS: usize = 16;
/// Max wait for a packet before the next check for a stop request.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(10);
/// Max time to count the packets queued at a stop request. A full buffer holds at most a few hundred
/// thousand packets, each with several hundred bytes of kernel data.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The receiver cannot be set up, or its socket failed.
///
/// The message includes the kernel's error. So it is not the `source`: a report that prints the chain
/// would repeat it.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The address is not available.
    #[error("cannot receive at {address}: {cause}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The socket failed.
    #[error("cannot receive test packets: {0}")]
    Receive(io::Error),
}

/// Result of a [`Sink`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SinkReport {
    /// Arrivals of each stream, by stream number.
    pub streams: BTreeMap<u16, StreamArrivals>,
    /// Packets without a test payload, or of a stream beyond the first 16.
    pub foreign: u64,
    /// Packets dropped at the sink's own socket because its buffer was full.
    pub dropped: u32,
    /// Whether packets still arrived a second after the stop request. Then some that arrived before
    /// the request may be missing.
    pub unfinished: bool,
}

impl SinkReport {
    /// Whether every arrival is counted and tracked. If not, the report is no ground truth.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.dropped == 0
            && !self.unfinished
            && self.streams.values().all(|stream| stream.untracked == 0)
    }
}

/// A UDP receiver with a large buffer that counts packets of the [`Sender`](crate::Sender).
///
/// The socket belongs to the network namespace of the thread that binds it.
#[derive(Debug)]
pub struct Sink {
    socket: UdpSocket,
}

impl Sink {
    /// Starts to receive at `address`. No arrival is missed from now on, as long as the buffer has
    /// room for the packets that [`Sink::run`] has not yet read.
    ///
    /// # Errors
    /// [`SinkError::Bind`].
    pub fn bind(address: SocketAddr) -> Result<Self, SinkError> {
        let open = || {
            let socket = UdpSocket::bind(address)?;
            enlarge_receive_buffer(&socket, BUFFER_BYTES)?;
            socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
            Ok(Self { socket })
        };
        open().map_err(|cause| SinkError::Bind { address, cause })
    }

    /// The bound address, with the port that the kernel chose for port 0.
    ///
    /// # Errors
    /// [`SinkError::Receive`].
    pub fn local_addr(&self) -> Result<SocketAddr, SinkError> {
        self.socket.local_addr().map_err(SinkError::Receive)
    }

    /// Counts arrivals until `stop` is set, and then until no packet arrives for 10 ms, at most for a
    /// second.
    ///
    /// # Errors
    /// [`SinkError::Receive`].
    pub fn run(self, stop: &AtomicBool) -> Result<SinkReport, SinkError> {
        self.run_and_drain(stop, DRAIN_TIMEOUT)
    }

    fn run_and_drain(self, stop: &AtomicBool, drain: Duration) -> Result<SinkReport, SinkError> {
        let mut counts = ArrivalCounts::default();
        let mut buffer = [0; 2048];
        let mut deadline = None;
        let unfinished = loop {
            // Checked before the read, so that packets in the buffer at the request are counted.
            if deadline.is_none() && stop.load(Ordering::Acquire) {
                deadline = Some(Instant::now() + drain);
            }
            match self.socket.recv(&mut buffer) {
                Ok(length) => counts.count(&buffer[..length]),
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
        let dropped = dropped(&self.socket).map_err(SinkError::Receive)?;
        Ok(SinkReport { dropped, unfinished, ..counts.report() })
    }
}

/// Arrivals so far.
#[derive(Debug, Default)]
struct ArrivalCounts {
    streams: BTreeMap<u16, SequenceTracker>,
    foreign: u64,
}

impl ArrivalCounts {
    fn count(&mut self, bytes: &[u8]) {
        match Payload::decode(bytes) {
            Some(Payload { stream, sequence, .. })
                if self.streams.len() < MAX_STREAMS || self.streams.contains_key(&stream) =>
            {
                self.streams.entry(stream).or_default().count(sequence);
            }
            _ => self.foreign += 1,
        }
    }

    fn report(&self) -> SinkReport {
        let streams = self.streams.iter().map(|(&id, tracker)| (id, tracker.arrivals)).collect();
        SinkReport { streams, foreign: self.foreign, ..SinkReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;

    use super::*;

    #[test]
    fn seventeenth_stream_and_garbage_are_foreign() {
        let mut counts = ArrivalCounts::default();
        let mut bytes = [0; Payload::MIN_BYTES];
        for stream in 0..17 {
            let time = Time::from_nanos(0);
            let payload = Payload { stream, sequence: 0, intended: time, actual: time };
            payload.encode(&mut bytes);
            counts.count(&bytes);
        }
        counts.count(b"hello");
        let report = counts.report();
        assert_eq!((report.streams.len(), report.foreign), (16, 2));
        assert!(report.is_complete());
    }

    #[test]
    fn drop_at_full_buffer_makes_report_incomplete() {
        let sink = Sink::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let sender = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        enlarge_receive_buffer(&sink.socket, 1).unwrap(); // the kernel's min, 2304 bytes
        for _ in 0..100 {
            sender.send_to(&[0; 1000], sink.local_addr().unwrap()).unwrap();
        }
        let report = sink.run(&AtomicBool::new(true)).unwrap();
        assert!(report.dropped > 0);
        assert_eq!(report.foreign + u64::from(report.dropped), 100);
        assert!(!report.is_complete());
    }

    #[test]
    fn continuous_traffic_does_not_delay_stop() {
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
