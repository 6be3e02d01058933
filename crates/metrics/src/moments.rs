//! Mean and variance, computed incrementally.

use crate::numeric::count_to_f64;

/// Values added up before a merge: one division per value would be the most expensive step.
const BLOCK: u64 = 256;

/// Count, mean and squared differences in double precision.
///
/// Within a block, values are added up as differences from its first one. Blocks are merged as in Chan, Golub &
/// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", Stanford CS-TR-79-773, 1979.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
    block: Block,
}

/// Values not merged yet.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    count: u64,
    first: f64,
    /// Sum of the differences from the first.
    sum: f64,
    sum_of_squares: f64,
}

impl Moments {
    /// Adds a value.
    pub(crate) fn record(&mut self, value: f64) {
        let block = &mut self.block;
        if block.count == 0 {
            block.first = value;
        }
        let difference = value - block.first;
        block.count += 1;
        block.sum += difference;
        block.sum_of_squares += difference * difference;
        if block.count == BLOCK {
            *self = self.merged_block();
        }
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        let theirs = other.merged_block();
        *self = self.merged_block().with(theirs.count, theirs.mean, theirs.squares);
    }

    /// Mean; 0 without values.
    pub(crate) fn mean(&self) -> f64 {
        self.merged_block().mean
    }

    /// Standard deviation of the sample (with n - 1); 0 for a single value.
    pub(crate) fn standard_deviation(&self) -> f64 {
        let whole = self.merged_block();
        match whole.count {
            0 | 1 => 0.0,
            // Rounding can make the sum for equal values slightly negative.
            count => (whole.squares.max(0.0) / count_to_f64(count - 1)).sqrt(),
        }
    }

    /// The state with an empty block.
    fn merged_block(&self) -> Self {
        let Block { count, first, sum, sum_of_squares } = self.block;
        if count == 0 {
            return *self;
        }
        let values = count_to_f64(count);
        self.with(count, first + sum / values, sum_of_squares - sum * sum / values)
    }

    /// Adds `count` values with this mean and these squared differences from it.
    fn with(&self, count: u64, mean: f64, squares: f64) -> Self {
        let total = self.count + count;
        if count == 0 {
            return *self;
        }
        let (ours, theirs) = (count_to_f64(self.count), count_to_f64(count));
        let apart = mean - self.mean;
        let share = theirs / count_to_f64(total);
        Self {
            count: total,
            mean: self.mean + apart * share,
            squares: self.squares + squares + apart * apart * ours * share,
            block: Block::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_make_no_difference(
            values in prop::collection::vec(-1e9..1e9_f64, 2..1000),
            offset in -1e9..1e9_f64,
            first in 0usize..1000,
        ) {
            let (mut moments, mut rest) = (Moments::default(), Moments::default());
            let (early, late) = values.split_at(first.min(values.len()));
            early.iter().for_each(|value| moments.record(value + offset));
            late.iter().for_each(|value| rest.record(value + offset));
            moments.merge(&rest);
            let count = count_to_f64(values.len() as u64);
            let mean = values.iter().map(|value| value + offset).sum::<f64>() / count;
            let squares: f64 = values.iter().map(|value| (value + offset - mean).powi(2)).sum();
            let deviation = (squares / (count - 1.0)).sqrt();
            prop_assert!((moments.mean() - mean).abs() < 1e-3);
            let differ = (moments.standard_deviation() - deviation).abs() / deviation.max(1.0);
            prop_assert!(differ < 1e-9, "{differ}");
        }
    }
}
