//! Uncertainty of losses, where it is unknown whether the network or the capture lost a packet.

use wirestamp_clock::{Span, Time, Utc};

/// Amounts by which the true count may be lower or higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncertainty {
    /// Possible decrease.
    pub(super) fewer: u64,
    /// Possible increase.
    pub(super) more: u64,
}

impl Uncertainty {
    /// Uncertainty of a count whose true value lies between `min` and `max`.
    pub(super) fn of(count: u64, min: u64, max: u64) -> Self {
        Self { fewer: count.saturating_sub(min), more: max.saturating_sub(count) }
    }

    /// Uncertainty of a complementary count: it decreases where the other increases.
    pub(super) fn complement(self) -> Self {
        Self { fewer: self.more, more: self.fewer }
    }

    /// Uncertainty of a sum.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_add(other.fewer),
            more: self.more.saturating_add(other.more),
        }
    }

    /// The tighter of two bounds, in each direction.
    pub(super) fn and(self, other: Self) -> Self {
        Self { fewer: self.fewer.min(other.fewer), more: self.more.min(other.more) }
    }

    /// Uncertainty without a part that was removed from the sum.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_sub(other.fewer),
            more: self.more.saturating_sub(other.more),
        }
    }

    /// The larger of both amounts.
    pub(super) fn max(self) -> u64 {
        self.fewer.max(self.more)
    }
}

/// Uncertainty of an [`Impairment`](super::impairment::Impairment).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ImpairmentUncertainty {
    /// Packets lost by the network.
    pub(super) lost: Uncertainty,
    /// Loss periods.
    pub(super) periods: Uncertainty,
}

impl ImpairmentUncertainty {
    /// Uncertainty of a sum.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { lost: self.lost.plus(other.lost), periods: self.periods.plus(other.periods) }
    }

    /// Uncertainty without a part that was removed from the sum.
    pub(super) fn less(self, other: Self) -> Self {
        Self { lost: self.lost.less(other.lost), periods: self.periods.less(other.periods) }
    }
}

/// Packets of a flow that belong neither to RTP nor to an iperf3 test.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnnumberedPackets {
    pub(super) first: Time<Utc>,
    pub(super) last: Time<Utc>,
    /// Min time between two of them.
    pub(super) closest: Span,
}

impl UnnumberedPackets {
    /// Max packets that may have passed in an interval, if no two came closer together than observed.
    pub(super) fn within(&self, (from, until): (Time<Utc>, Time<Utc>)) -> u64 {
        if until < self.first || self.last < from {
            return 0;
        }
        let times = (until - from).as_nanos().max(0) / self.closest.as_nanos();
        times.unsigned_abs() + 1
    }
}
