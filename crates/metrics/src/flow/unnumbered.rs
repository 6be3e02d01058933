//! Packets of which no number tells when they are missing.

use wirestamp_clock::{Span, Time, Utc};

use super::table::{Carries, Flow};

/// The packets of a flow that are neither of RTP nor of a test of iperf3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unnumbered {
    first: Time<Utc>,
    last: Time<Utc>,
    /// The least time between two of them.
    closest: Span,
}

impl Unnumbered {
    /// Those of a flow; none if it has none.
    pub(super) fn of(flow: &Flow) -> Option<Self> {
        if let Carries::Udp(media) = &flow.carries
            && media.test.test().is_some()
        {
            return None;
        }
        let (first, last) = flow.rest.first.zip(flow.rest.last)?;
        let closest = Span::from_nanos(flow.rest.gaps.min().map_or(i64::MAX, |it| it.max(1)));
        Some(Self { first, last, closest })
    }

    /// How many may have passed in a stretch of time, if no two came closer together than those that
    /// were seen.
    pub(super) fn within(&self, (from, until): (Time<Utc>, Time<Utc>)) -> u64 {
        if until < self.first || self.last < from {
            return 0;
        }
        let times = (until - from).as_nanos().max(0) / self.closest.as_nanos();
        times.unsigned_abs() + 1
    }
}
