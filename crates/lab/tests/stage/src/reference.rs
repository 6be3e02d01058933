//! Reference capture of the packets that leave the stage.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wirestamp_clock::{Time, Utc};
use wirestamp_lab::TAP_B;
use wirestamp_lab::wire::Wire;

use crate::socket::FrameSocket;
use crate::stage::NumberOf;

/// Interval between reads. Waiting packets already have their stamps; a wake-up for each packet would
/// cost more than reading it.
const READ_INTERVAL: Duration = Duration::from_millis(1);

/// A reference capture at tap B: reads the kernel's stamps of arriving packets.
#[derive(Debug)]
pub struct ReferenceCapture {
    socket: FrameSocket,
}

/// A test packet that arrived at tap B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceArrival {
    /// Number of the packet.
    pub number: u64,
    /// The kernel's stamp.
    pub stamp: Time<Utc>,
}

/// Result of the reference capture.
#[derive(Clone, Debug, Default)]
pub struct ReferenceReport {
    /// The test packets in the order of arrival, duplicates included.
    pub arrivals: Vec<ReferenceArrival>,
    /// Frames that the capture had no room for; if it is not 0, the capture is no reference.
    pub missed: u64,
    /// Test packets without a kernel stamp; they are not in `arrivals`.
    pub unstamped: u64,
}

impl ReferenceCapture {
    /// Starts to capture at tap B.
    ///
    /// # Errors
    /// Usually because `CAP_NET_RAW` is missing.
    pub fn open(wire: &Wire) -> io::Result<Self> {
        Ok(Self { socket: wire.sink.run(|| FrameSocket::open(TAP_B))?? })
    }

    /// Captures until `stop` is set and all arrived packets are read. `read` counts the packets read.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(
        mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        read: &AtomicU64,
    ) -> io::Result<ReferenceReport> {
        let mut report = ReferenceReport::default();
        loop {
            let stopping = stop.load(Ordering::Acquire);
            while let Some(received) = self.socket.receive()? {
                match (number_of(received.frame()), received.stamp) {
                    (None, _) => {}
                    (Some(number), Some(stamp)) => {
                        report.arrivals.push(ReferenceArrival { number, stamp });
                    }
                    (Some(_), None) => report.unstamped += 1,
                }
            }
            read.store(report.arrivals.len() as u64, Ordering::Release);
            if stopping {
                report.missed = self.socket.missed()?;
                return Ok(report);
            }
            thread::sleep(READ_INTERVAL);
        }
    }
}
