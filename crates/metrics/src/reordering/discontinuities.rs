//! Reordering discontinuities of a stream: RFC 4737 section 4.5.

use wirestamp_clock::{Time, Utc};

use crate::{CountDistribution, Distribution};

/// Reordering discontinuities of a stream, and the gaps between them.
///
/// A discontinuity is a packet that was the first to arrive before one sent earlier; it becomes known when the late
/// packet arrives. One that becomes known after a later one is left out, because the gap (section 4.5.4) is defined
/// only forwards.
#[derive(Clone, Debug, Default)]
pub struct Discontinuities {
    /// Number of discontinuities (section 4.5.3): packets that were the first to arrive before one sent earlier. One
    /// that becomes known only after a later one is not counted.
    pub count: u64,
    /// Position among the arrivals, and arrival time.
    last: Option<(u64, Time<Utc>)>,
    /// Gaps from each discontinuity to the next, in packets arrived (section 4.5.4).
    pub gaps: CountDistribution,
    /// Gaps between discontinuities in time.
    pub gap_times: Distribution,
}

impl Discontinuities {
    /// Records a late packet behind the arrival number `place`, at `time`.
    pub(super) fn record(&mut self, place: u64, time: Time<Utc>) {
        match self.last {
            Some((last, _)) if last >= place => return,
            Some((last, at)) => {
                self.gaps.record(place - last);
                self.gap_times.record(time - at);
            }
            None => {}
        }
        self.last = Some((place, time));
        self.count += 1;
    }

    /// Adds the figures of another stream.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.gaps.merge(&other.gaps);
        self.gap_times.merge(&other.gap_times);
    }
}
