//! What comes out of the stage, seen by itself.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use wirestamp_clock::{Time, Utc};

use super::socket::FrameSocket;
use super::stage::NumberOf;
use crate::{LabError, Netns, TAP_B};

/// How long arrivals gather before they are read: they have their stamps already, and to wake up
/// for each would cost more than to read it.
const GATHER: Duration = Duration::from_millis(1);

/// A second pair of eyes at tap B: reads the kernel's stamps of what arrives there.
#[derive(Debug)]
pub struct Witness {
    socket: FrameSocket,
}

/// A packet of the test at tap B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its number.
    pub number: u64,
    /// The kernel's stamp.
    pub stamp: Time<Utc>,
}

/// What the witness saw.
#[derive(Clone, Debug, Default)]
pub struct Testimony {
    /// The packets of the test in the order of arrival, every copy.
    pub sightings: Vec<Sighting>,
    /// Frames that the witness had no room for: unless it is 0, it is no witness.
    pub missed: u64,
    /// Packets of the test that the kernel had not stamped, which are not among the sightings.
    pub unstamped: u64,
}

impl Witness {
    /// A witness that watches from now on.
    ///
    /// # Errors
    /// [`LabError::System`], most often for want of `CAP_NET_RAW`.
    pub(super) fn open(sink: &Netns) -> Result<Self, LabError> {
        let socket = sink
            .run(|| FrameSocket::open(TAP_B))
            .and_then(|opened| opened)
            .map_err(LabError::system("cannot open the witness's socket"))?;
        Ok(Self { socket })
    }

    /// Watches until `stop` is set and what has arrived is read. `seen` counts sightings as they
    /// are read.
    ///
    /// # Errors
    /// [`LabError::System`] when the socket fails.
    pub fn run(
        mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        seen: &AtomicU64,
    ) -> Result<Testimony, LabError> {
        self.watch(number_of, stop, seen).map_err(LabError::system("the witness cannot go on"))
    }

    fn watch(
        &mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        seen: &AtomicU64,
    ) -> io::Result<Testimony> {
        let mut testimony = Testimony::default();
        loop {
            let ends = stop.load(Ordering::Acquire);
            while let Some(received) = self.socket.receive()? {
                match (number_of(received.frame()), received.stamp) {
                    (None, _) => {}
                    (Some(number), Some(stamp)) => {
                        testimony.sightings.push(Sighting { number, stamp });
                    }
                    (Some(_), None) => testimony.unstamped += 1,
                }
            }
            seen.store(testimony.sightings.len() as u64, Ordering::Release);
            if ends {
                testimony.missed = self.socket.missed()?;
                return Ok(testimony);
            }
            thread::sleep(GATHER);
        }
    }
}
