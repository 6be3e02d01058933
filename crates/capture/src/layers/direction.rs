//! Which way the packets go that are followed.

use serde::Serialize;

use super::Point;

/// Whether an interface receives or sends the packets that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It receives them.
    #[default]
    In,
    /// It sends them.
    Out,
}

impl Direction {
    /// The points that these packets come to, in order. Where one is in there is its number in
    /// `bpf/journey.h` or `bpf/leaving.h`.
    #[must_use]
    pub const fn points(self) -> [Point; 4] {
        match self {
            Self::In => [Point::Driver, Point::Stack, Point::Socket, Point::Application],
            Self::Out => [Point::Socket, Point::Queue, Point::Driver, Point::Sent],
        }
    }
}
