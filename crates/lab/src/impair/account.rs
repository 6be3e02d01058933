//! What the stage did, packet by packet.

use wirestamp_clock::{Span, Time, Utc};

use super::plan::Fate;

/// What became of the frames that arrived at the stage.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The packets of the test, in the order in which they arrived.
    pub passages: Vec<Passage>,
    /// Frames that are no part of the test and were passed on at once, in either direction.
    pub others: u64,
    /// Frames that the stage had no room for. Unless it is 0, something was lost that no plan knows
    /// of.
    pub missed: u64,
    /// Packets of the test that the kernel had not stamped: their delay is counted from when the
    /// stage found them.
    pub unstamped: u64,
}

/// A packet of the test at the stage. All times are those of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// Its number.
    pub number: u64,
    /// The kernel's stamp of its arrival.
    pub arrived: Time<Utc>,
    /// What was to happen to it.
    pub fate: Fate,
    /// When it was sent on, and its copy.
    pub sent: [Option<Sending>; 2],
}

/// The sending of a packet: the kernel had it between two readings of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// When it was to be sent, at the earliest.
    pub due: Time<Utc>,
    /// Right before the system call, and never before `due`.
    pub before: Time<Utc>,
    /// Right after it.
    pub after: Time<Utc>,
}

impl Sending {
    /// How much later than chosen the packet was sent.
    #[must_use]
    pub fn lateness(&self) -> Span {
        self.before - self.due
    }
}
