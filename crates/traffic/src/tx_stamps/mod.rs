//! Transmit stamps of kernel and hardware: `Documentation/networking/timestamping.rst`.
//!
//! The kernel puts each stamp, with the packet's number, on the error queue of the sending socket. The
//! sending thread reads the queue between packets, while the next deadline is far enough; unread
//! stamps wait in the queue.

mod pending;
mod queue;
mod support;

use serde::Serialize;
use strum::IntoStaticStr;
use wirestamp_clock::{Time, Utc};

pub(crate) use pending::PendingStamps;
pub(crate) use queue::StampQueue;

/// A point of the transmit path that has a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum StampKind {
    /// Before the interface's queueing discipline.
    Sched,
    /// In the driver, before the hardware or the peer of a virtual link.
    Software,
    /// In the hardware, by the hardware's clock.
    Hardware,
}

impl StampKind {
    /// All kinds, in the order of the transmit path.
    pub const ALL: [Self; 3] = [Self::Sched, Self::Software, Self::Hardware];

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One value per kind of stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerStampKind<T> {
    /// Before the interface's queueing discipline ([`StampKind::Sched`]).
    pub sched: T,
    /// In the driver ([`StampKind::Software`]).
    pub software: T,
    /// In the hardware ([`StampKind::Hardware`]).
    pub hardware: T,
}

impl<T> PerStampKind<T> {
    /// The value for `kind`.
    pub const fn of(&self, kind: StampKind) -> &T {
        match kind {
            StampKind::Sched => &self.sched,
            StampKind::Software => &self.software,
            StampKind::Hardware => &self.hardware,
        }
    }

    /// The mutable value for `kind`.
    pub const fn of_mut(&mut self, kind: StampKind) -> &mut T {
        match kind {
            StampKind::Sched => &mut self.sched,
            StampKind::Software => &mut self.software,
            StampKind::Hardware => &mut self.hardware,
        }
    }

    /// The values that `make` returns for each kind.
    pub fn each(mut make: impl FnMut(StampKind) -> T) -> Self {
        let [sched, software, hardware] = StampKind::ALL.map(&mut make);
        Self { sched, software, hardware }
    }
}

/// A packet's stamps. `sched` and `software` are of the system clock. `hardware` is of the hardware clock, which is UTC
/// only if a program such as phc2sys(8) synchronizes it.
pub type TxStamps = PerStampKind<Option<Time<Utc>>>;

/// The reason why each kind is unavailable; none where it is available.
pub type UnavailableStamps = PerStampKind<Option<String>>;
