//! Reference capture of the packets that leave the stage.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wirestamp_clock::{Time, Utc};

use super::socket::FrameSocket;
use super::stage::NumberOf;
use crate::{LabError, Netns, TAP_B};

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
    /// Starts to capture.
    ///
    /// # Errors
    /// [`LabError::System`], usually because `CAP_NET_RAW` is missing.
    pub(super) fn open(sink: &Netns) -> Result<Self, LabError> {
        let socket = sink
            .run(|| FrameSocket::open(TAP_B))
            .and_then(|opened| opened)
            .map_err(LabError::system("cannot open the socket of the reference capture"))?;
        Ok(Self { socket })
    }

    /// Captures until `stop` is set and all arrived packets are read. `read` counts the packets read.
    ///
    /// # Errors
    /// [`LabError::System`] when the socket fails.
    pub fn run(
        mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        read: &AtomicU64,
    ) -> Result<ReferenceReport, LabError> {
        self.capture(number_of, stop, read)
            .map_err(LabError::system("cannot run the reference capture"))
    }

    fn capture(
        &mut self,
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
