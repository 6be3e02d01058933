//! Between which bounds a figure lies where it cannot be known who lost a packet.

/// By how much a count may be too great or too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncertainty {
    /// So many fewer it may be.
    pub(super) fewer: u64,
    /// So many more.
    pub(super) more: u64,
}

impl Uncertainty {
    /// That of a count of which it is known that it lies between two others.
    pub(super) fn of(count: u64, least: u64, most: u64) -> Self {
        Self { fewer: count.saturating_sub(least), more: most.saturating_sub(count) }
    }

    /// That of a count which is fewer by what the other is more.
    pub(super) fn mirrored(self) -> Self {
        Self { fewer: self.more, more: self.fewer }
    }

    /// That of a sum.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_add(other.fewer),
            more: self.more.saturating_add(other.more),
        }
    }

    /// That of a count of which two things are known.
    pub(super) fn and(self, other: Self) -> Self {
        Self { fewer: self.fewer.min(other.fewer), more: self.more.min(other.more) }
    }

    /// Without a part that has gone.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            fewer: self.fewer.saturating_sub(other.fewer),
            more: self.more.saturating_sub(other.more),
        }
    }

    /// The greater of both.
    pub(super) fn greatest(self) -> u64 {
        self.fewer.max(self.more)
    }
}

/// What is in doubt of an [`Impairment`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ImpairmentUncertainty {
    /// The packets that the network lost.
    pub(super) lost: Uncertainty,
    /// The runs that they make.
    pub(super) periods: Uncertainty,
}

impl ImpairmentUncertainty {
    /// That of both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { lost: self.lost.plus(other.lost), periods: self.periods.plus(other.periods) }
    }

    /// Without a part that has gone.
    pub(super) fn less(self, other: Self) -> Self {
        Self { lost: self.lost.less(other.lost), periods: self.periods.less(other.periods) }
    }
}
