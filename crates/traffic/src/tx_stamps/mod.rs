//! When each packet was queued and when it left, as the kernel and the hardware say:
//! `Documentation/networking/timestamping.rst`.
//!
//! The kernel puts each stamp on the error queue of the socket that the packet came from, with the
//! packet's number. The thread that sends takes them off between packets, while the next deadline
//! is far enough; what is not taken in time waits in the queue.

mod pending;
mod queue;
mod report;
mod support;

use serde::Serialize;
use wirestamp_clock::{Time, Utc};

pub(crate) use pending::Pending;
pub(crate) use queue::StampQueue;
#[cfg(fuzzing)]
pub(crate) use report::read_any;

/// A point on a packet's way out at which it can be stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampKind {
    /// Before it enters the interface's queueing discipline.
    Sched,
    /// When the driver hands it to the hardware, or to the other end of a virtual link.
    Software,
    /// When the hardware sends it, by the hardware's own clock.
    Hardware,
}

impl StampKind {
    /// Every kind, in the order in which a packet passes them.
    pub const ALL: [Self; 3] = [Self::Sched, Self::Software, Self::Hardware];

    /// Its name, as reports use it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sched => "sched",
            Self::Software => "software",
            Self::Hardware => "hardware",
        }
    }
}

/// Something for each kind of stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PerKind<T> {
    /// For [`StampKind::Sched`].
    pub sched: T,
    /// For [`StampKind::Software`].
    pub software: T,
    /// For [`StampKind::Hardware`].
    pub hardware: T,
}

impl<T> PerKind<T> {
    /// What there is for `kind`.
    pub const fn of(&self, kind: StampKind) -> &T {
        match kind {
            StampKind::Sched => &self.sched,
            StampKind::Software => &self.software,
            StampKind::Hardware => &self.hardware,
        }
    }

    /// What there is for `kind`, to be changed.
    pub const fn of_mut(&mut self, kind: StampKind) -> &mut T {
        match kind {
            StampKind::Sched => &mut self.sched,
            StampKind::Software => &mut self.software,
            StampKind::Hardware => &mut self.hardware,
        }
    }

    /// What `make` makes for each kind.
    pub fn each(mut make: impl FnMut(StampKind) -> T) -> Self {
        let [sched, software, hardware] = StampKind::ALL.map(&mut make);
        Self { sched, software, hardware }
    }
}

/// A packet's stamps. `sched` and `software` are the system clock's; `hardware` is the hardware
/// clock's, which is UTC only where something keeps it there (phc2sys(8)).
pub type TxStamps = PerKind<Option<Time<Utc>>>;

/// For each kind why it cannot be had, or none where it is asked for.
pub type Unavailable = PerKind<Option<String>>;
