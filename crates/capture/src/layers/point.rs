//! The points of a host that a received packet comes to.

use serde::Serialize;

/// A point, in the order in which packets come to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// The driver hands the packet over: to GRO, to a core's backlog or to the stack.
    Driver,
    /// The stack begins with it: GRO and the backlog are behind it.
    Stack,
    /// Its socket has been found and is about to take it, so that filters of packets, routing and
    /// the protocol's checks are behind it.
    Socket,
    /// The application has it: UDP tells when the call that reads returns, other protocols when the
    /// kernel begins to copy. A segment that is read in parts counts when its first part is.
    Application,
}

impl Point {
    /// All, in order. Where one is in [`Self::ALL`] is its number in `bpf/layers.bpf.c`.
    pub const ALL: [Self; 4] = [Self::Driver, Self::Stack, Self::Socket, Self::Application];

    /// What it is called, here and in the JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Stack => "stack",
            Self::Socket => "socket",
            Self::Application => "application",
        }
    }
}
