//! The points of a host that a packet comes to.

use serde::Serialize;

/// A point. Which ones a packet comes to, and in which order, [`super::Direction::points`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// The driver hands a received packet over: to GRO, to a core's backlog or to the stack. It is
    /// handed one that is to be sent: the queue is behind it.
    Driver,
    /// The stack begins with a received packet: GRO and the backlog are behind it.
    Stack,
    /// The socket of a received packet has been found and is about to take it, so that filters of
    /// packets, routing and the protocol's checks are behind it. The socket of one that is sent has let it
    /// go, addressed and routed; those sent on from another interface have none.
    Socket,
    /// The application has it: UDP tells when the call that reads returns, other protocols when the
    /// kernel begins to copy. A segment that is read in parts counts when its first part is.
    Application,
    /// It is about to be put into the queue of its interface, the queueing discipline (tc(8)).
    Queue,
    /// The driver is done with a packet that is sent: a network card has it in its ring, or the other
    /// end of a virtual cable has it.
    Sent,
}

impl Point {
    /// What it is called, here and in the JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Stack => "stack",
            Self::Socket => "socket",
            Self::Application => "application",
            Self::Queue => "queue",
            Self::Sent => "sent",
        }
    }
}
