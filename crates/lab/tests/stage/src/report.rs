//! Report of the stage: send times of each packet.

use wirestamp_clock::{Span, Time, Utc};

use crate::plan::PlannedDelivery;

/// Report of the frames that arrived at the stage.
#[derive(Clone, Debug, Default)]
pub struct StageReport {
    /// The test packets, in the order of arrival.
    pub packets: Vec<StagedPacket>,
    /// Other frames, forwarded at once in either direction.
    pub others: u64,
    /// Frames that the stage had no room for. If it is not 0, frames were lost outside the plan.
    pub missed: u64,
    /// Test packets without a kernel stamp: their delay counts from the time the stage read them.
    pub unstamped: u64,
}

/// A test packet at the stage. All times are of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug)]
pub struct StagedPacket {
    /// Number of the packet.
    pub number: u64,
    /// The kernel's stamp of its arrival.
    pub arrived: Time<Utc>,
    /// The planned delivery.
    pub planned: PlannedDelivery,
    /// Send times of the packet and its duplicate.
    pub sent: [Option<SendTimes>; 2],
}

/// Planned and actual send time of a packet. The system call was between two clock readings.
#[derive(Clone, Copy, Debug)]
pub struct SendTimes {
    /// Earliest send time by the plan.
    pub due: Time<Utc>,
    /// Right before the system call; never before `due`.
    pub before: Time<Utc>,
    /// Right after the system call.
    pub after: Time<Utc>,
}

impl SendTimes {
    /// Time from `due` to the system call.
    #[must_use]
    pub fn lateness(&self) -> Span {
        self.before - self.due
    }
}
