//! The observation points in a host, by the direction of packets.

use serde::Serialize;
use strum::IntoStaticStr;

/// A point on a packet's path. [`Direction::points`] lists the points of a direction, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Point {
    /// Received packet: the driver passes it to GRO, to a core's backlog or to the stack. Sent packet: the driver
    /// receives it from the queue.
    Driver,
    /// The stack starts with a received packet, after GRO and the backlog.
    Stack,
    /// Received packet: the kernel has found the socket and is about to deliver the packet, after packet filters,
    /// routing and the protocol's checks. Sent packet: it has left the socket, addressed and routed. Forwarded
    /// packets do not have this point.
    Socket,
    /// The application has the packet. UDP: the read call returns; other protocols: the kernel starts to copy. A
    /// segment that is read in parts counts at its first part.
    Application,
    /// The packet is about to enter the queue of its interface, the queueing discipline (tc(8)).
    Queue,
    /// The driver has completed a sent packet: it is in the ring of a network card, or at the other end of a
    /// virtual cable.
    Sent,
}

impl Point {
    /// Name in the output and in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether an interface receives or sends the followed packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The interface receives them.
    #[default]
    In,
    /// The interface sends them.
    Out,
}

impl Direction {
    /// The points on these packets' path, in order. Their indexes are the numbers in `bpf/journey.h` or
    /// `bpf/leaving.h`.
    #[must_use]
    pub const fn points(self) -> [Point; 4] {
        match self {
            Self::In => [Point::Driver, Point::Stack, Point::Socket, Point::Application],
            Self::Out => [Point::Socket, Point::Queue, Point::Driver, Point::Sent],
        }
    }
}
