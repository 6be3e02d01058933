//! Direction of the followed packets.

use serde::Serialize;

use super::Point;

/// Whether an interface receives or sends the followed packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
