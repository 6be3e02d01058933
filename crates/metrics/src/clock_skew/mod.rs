//! Skew between two clocks, estimated from the delays between them.

mod hull;

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};
use hull::{Corner, Hull};

#[cfg(test)]
mod tests;

/// Number of hulls that share the packets; their estimates are compared.
const PARTS: usize = 4;

/// Estimates the skew between the clocks of two points from packet delays.
///
/// No packet is faster than an empty network, so the delays lie on or above a line whose slope is the skew, and some
/// are close to it. The estimated line is below all points and nearest to them on average over the packets: the linear
/// programme of Moon, Skelly and Towsley, "Estimation and Removal of Clock Skew from Network Delay Measurements",
/// INFOCOM 1999. It is the edge of the lower convex hull over the mean sending time (Zhang, Liu and Xia, "Clock
/// Synchronization Algorithms for Network Measurements", INFOCOM 2002).
///
/// A change of the path's min delay, and clocks that are steered during the measurement, look like skew or hide it.
/// Memory is constant.
#[derive(Clone, Debug, Default)]
pub struct ClockSkew {
    packets: u64,
    /// Mean sending time, relative to the first.
    mean: f64,
    first: Option<Time<Utc>>,
    parts: [Hull; PARTS],
}

/// An estimated skew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SkewEstimate {
    /// Rate of B's clock relative to A's, in parts per million of A's time.
    pub ppm: f64,
    /// Uncertainty: max difference from the estimates of four separate quarters of the packets, plus rounding to
    /// nanoseconds. Covers random queueing, but not path changes.
    pub error_ppm: f64,
    /// Delay of the line at the time `since`: the min delay there.
    #[serde(skip)]
    pub floor: Span,
    /// Sending time of the first packet.
    #[serde(skip)]
    pub since: Time<Utc>,
}

impl SkewEstimate {
    /// Whether it differs from zero by more than its uncertainty.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.ppm.abs() > self.error_ppm
    }
}

impl ClockSkew {
    /// Records a packet sent at `sent` by A's clock, with `delay` by both clocks.
    pub fn record(&mut self, sent: Time<Utc>, delay: Span) {
        let first = *self.first.get_or_insert(sent);
        self.packets += 1;
        self.mean += (since(first, sent) - self.mean) / count_to_f64(self.packets);
        let part = usize::try_from(self.packets % PARTS as u64).unwrap_or(0);
        self.parts[part].insert((sent.as_nanos(), delay.as_nanos()));
    }

    /// Skew; `None` for fewer than eight packets, or if all were sent at once.
    #[must_use]
    pub fn estimate(&self) -> Option<SkewEstimate> {
        let first = self.first.filter(|_| self.packets >= 2 * PARTS as u64)?;
        let centre = (first + whole(self.mean)).as_nanos();
        let mut hull = Hull::default();
        self.parts.iter().flat_map(|it| &it.corners).for_each(|corner| hull.insert(*corner));
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

/// Slope of an edge. Two corners of a hull never have the same time.
fn slope(left: Corner, right: Corner) -> f64 {
    nanos_to_f64(right.1.saturating_sub(left.1)) / nanos_to_f64(right.0.saturating_sub(left.0))
}

#[expect(clippy::cast_possible_truncation, reason = "what does not fit saturates")]
fn whole(nanos: f64) -> Span {
    Span::from_nanos(nanos as i64)
}
