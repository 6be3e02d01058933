//! Counts of values of either sign.

use crate::histogram::Histogram;

/// Max values stored individually. A histogram would take more than their 512 bytes, and most flows have no more
/// packets.
const MAX_FEW: usize = 64;

/// Values of a distribution: stored individually while few, then in histograms, one per sign.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Few(Vec<i64>),
    Many(Box<Histograms>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Histograms {
    /// Number of negative values.
    negatives: u64,
    below_zero: Histogram,
    from_zero: Histogram,
}

impl Default for Values {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Values {
    /// Adds a value.
    #[inline]
    pub(crate) fn record(&mut self, value: i64) {
        match self {
            Self::Many(many) => many.record(value),
            Self::Few(few) if few.len() < MAX_FEW => few.push(value),
            Self::Few(_) => self.many().record(value),
        }
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        match other {
            Self::Few(few) => few.iter().for_each(|value| self.record(*value)),
            Self::Many(theirs) => {
                let ours = self.many();
                ours.negatives += theirs.negatives;
                ours.below_zero.merge(&theirs.below_zero);
                ours.from_zero.merge(&theirs.from_zero);
            }
        }
    }

    /// Converts to histograms.
    fn many(&mut self) -> &mut Histograms {
        loop {
            match self {
                Self::Many(many) => return many,
                Self::Few(few) => {
                    let mut many = Box::<Histograms>::default();
                    few.iter().for_each(|value| many.record(*value));
                    *self = Self::Many(many);
                }
            }
        }
    }

    /// Value of this rank, from 1 for the lowest, as exact as stored.
    pub(crate) fn at_rank(&self, rank: u64) -> i64 {
        match self {
            Self::Few(few) => {
                let mut sorted = few.clone();
                sorted.sort_unstable();
                let place = usize::try_from(rank.saturating_sub(1)).unwrap_or(usize::MAX);
                sorted.get(place).copied().unwrap_or(0)
            }
            Self::Many(many) => many.at_rank(rank),
        }
    }

    /// Values in ascending order, each with its count.
    pub(crate) fn buckets(&self) -> Vec<(i64, u64)> {
        match self {
            Self::Few(few) => {
                let mut sorted = few.clone();
                sorted.sort_unstable();
                let equal = sorted.chunk_by(|one, other| one == other);
                equal.filter_map(|equal| Some((*equal.first()?, equal.len() as u64))).collect()
            }
            Self::Many(many) => {
                let below = many.below_zero.buckets().rev();
                let below = below.map(|(value, count)| (-magnitude(value), count));
                let above = many.from_zero.buckets();
                below.chain(above.map(|(value, count)| (magnitude(value), count))).collect()
            }
        }
    }
}

impl Histograms {
    #[inline]
    fn record(&mut self, value: i64) {
        let histogram = if value < 0 {
            self.negatives += 1;
            &mut self.below_zero
        } else {
            &mut self.from_zero
        };
        histogram.record(value.unsigned_abs());
    }

    fn at_rank(&self, rank: u64) -> i64 {
        if rank <= self.negatives {
            // Ascending values are descending magnitudes.
            -magnitude(self.below_zero.at_rank(self.negatives - rank + 1))
        } else {
            magnitude(self.from_zero.at_rank(rank - self.negatives))
        }
    }
}

/// Magnitude of a value; that of `i64::MIN` saturates.
fn magnitude(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
