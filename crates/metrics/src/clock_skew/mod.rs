//! How fast two clocks come apart, seen in the delays between them.

mod hull;

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};
use hull::{Corner, Hull};

#[cfg(test)]
mod tests;

/// The packets are dealt out to so many hulls, whose estimates are compared.
const PARTS: usize = 4;

/// Estimates the skew between the clocks of two points from the delays of packets.
///
/// No packet is faster than an empty network, so that the delays lie on or above a line whose slope
/// is the skew, and some come close to it. The line looked for lies below all points and is, on
/// average over the packets, nearest to them: the linear programme of Moon, Skelly and Towsley,
/// "Estimation and Removal of Clock Skew from Network Delay Measurements", INFOCOM 1999. It is the edge
/// of the points' lower convex hull over their mean time of sending (Zhang, Liu and Xia, "Clock
/// Synchronization Algorithms for Network Measurements", INFOCOM 2002).
///
/// A change of the path's shortest delay, and clocks that are steered while they are compared, look
/// like skew or hide it. Memory is constant.
#[derive(Clone, Debug, Default)]
pub struct ClockSkew {
    packets: u64,
    /// Of the times of sending, counted from the first.
    mean: f64,
    first: Option<Time<Utc>>,
    parts: [Hull; PARTS],
}

/// A skew, as it was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SkewEstimate {
    /// How much B's clock gains on A's, in parts per million of A's time.
    pub ppm: f64,
    /// How far that may be off: the greatest difference from it when the packets are dealt out to
    /// four and each quarter is taken alone, and what whole nanoseconds do. It covers what
    /// queues do by chance, and not a path that changes.
    pub error_ppm: f64,
    /// Where the line is at the time `since`: the least delay there.
    #[serde(skip)]
    pub floor: Span,
    /// When the first packet was sent.
    #[serde(skip)]
    pub since: Time<Utc>,
}

impl SkewEstimate {
    /// Whether it is told from none.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.ppm.abs() > self.error_ppm
    }
}

impl ClockSkew {
    /// Takes a packet that was sent at `sent` by A's clock and has `delay` by both.
    pub fn record(&mut self, sent: Time<Utc>, delay: Span) {
        let first = *self.first.get_or_insert(sent);
        self.packets += 1;
        self.mean += (since(first, sent) - self.mean) / count_to_f64(self.packets);
        let part = usize::try_from(self.packets % PARTS as u64).unwrap_or(0);
        self.parts[part].insert((sent.as_nanos(), delay.as_nanos()));
    }

    /// The skew, or `None` of fewer packets than eight, or if these were all sent at once.
    #[must_use]
    pub fn estimate(&self) -> Option<SkewEstimate> {
        let first = self.first.filter(|_| self.packets >= 2 * PARTS as u64)?;
        let centre = (first + whole(self.mean)).as_nanos();
        let mut hull = Hull::default();
        self.parts.iter().flat_map(Hull::corners).for_each(|corner| hull.insert(*corner));
        let (left, right) = hull.edge(centre)?;
        let slope = slope(left, right);
        let mut error = 2.0 / nanos_to_f64(right.0.saturating_sub(left.0));
        for part in &self.parts {
            let (left, right) = part.edge(centre)?;
            error = error.max((self::slope(left, right) - slope).abs());
        }
        Some(SkewEstimate {
            ppm: slope * 1e6,
            error_ppm: error * 1e6,
            floor: Span::from_nanos(left.1) + whole(slope * since(Time::from_nanos(left.0), first)),
            since: first,
        })
    }
}

/// Nanoseconds from one time to another.
fn since(from: Time<Utc>, to: Time<Utc>) -> f64 {
    nanos_to_f64((to - from).as_nanos())
}

/// Two corners of a hull are never at one time.
fn slope(left: Corner, right: Corner) -> f64 {
    nanos_to_f64(right.1.saturating_sub(left.1)) / nanos_to_f64(right.0.saturating_sub(left.0))
}

#[expect(clippy::cast_possible_truncation, reason = "what does not fit saturates")]
fn whole(nanos: f64) -> Span {
    Span::from_nanos(nanos as i64)
}
