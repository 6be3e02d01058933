//! Histogram for storage: small, and merged without loss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Distribution;
use crate::histogram::{bucket_of, middle_of, min_of};
use crate::numeric::{nanos_to_f64, nearest_rank};

/// Buckets per power of two: 2^6.
const BITS: u32 = 6;

/// Index of the bucket of the min value; that of the max is nearly as far above 0.
const FIRST: i32 = -((64 - BITS.cast_signed()) << BITS);

/// Counts of spans in buckets with fixed bounds, so that several histograms merge exactly.
///
/// Spans up to 127 ns of either sign have a bucket each. Above that, a bucket is at most a 64th of its values wide, so
/// that its middle is within [`CompactHistogram::ERROR`] of each of them.
///
/// Encoded, a bucket with one value takes one byte, and one with several rarely more than two. Serialised as these
/// bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct CompactHistogram {
    /// By bucket index: 0 is that of 0, negative values are below it.
    counts: BTreeMap<i32, u64>,
}

/// A bucket that is not empty. Spans are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Min value, inclusive.
    pub from: i64,
    /// Max value, exclusive.
    pub until: i64,
    /// Number of values.
    pub count: u64,
}

/// Error for bytes that are not a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot decode the histogram: the bytes are malformed or truncated")]
pub struct MalformedHistogram;

impl Bucket {
    /// Middle of its values, in nanoseconds.
    #[must_use]
    pub fn middle(&self) -> f64 {
        f64::midpoint(nanos_to_f64(self.from), nanos_to_f64(self.until.saturating_sub(1)))
    }
}

impl CompactHistogram {
    /// Max relative error of a percentile: half of a 64th.
    pub const ERROR: f64 = 1.0 / 128.0;

    /// Percentiles: those of a [`crate::Summary`].
    const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (place, count) in &other.counts {
            self.add(*place, *count);
        }
    }

    fn add(&mut self, place: i32, count: u64) {
        let counted = self.counts.entry(place).or_default();
        *counted = counted.saturating_add(count);
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The median and the 90th, 99th and 99.9th percentile, in nanoseconds, by the nearest rank, each within
    /// [`Self::ERROR`]. `None` without values.
    #[must_use]
    pub fn percentiles(&self) -> Option<[i64; 4]> {
        let count = self.count();
        (count > 0).then(|| Self::QUANTILES.map(|it| self.at_rank(nearest_rank(it, count))))
    }

    fn at_rank(&self, rank: u64) -> i64 {
        let mut counted = 0_u64;
        let mut places = self.counts.iter();
        let found = places.find(|(_, count)| {
            counted = counted.saturating_add(**count);
            counted >= rank
        });
        found.map_or(0, |(place, _)| {
            let middle = middle_of::<BITS>(bucket(*place));
            if *place < 0 {
                0_i64.saturating_sub_unsigned(middle)
            } else {
                0_i64.saturating_add_unsigned(middle)
            }
        })
    }

    /// Non-empty buckets, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.counts.iter().map(|(place, count)| {
            let bucket = bucket(*place);
            let [min, beyond] = [bucket, bucket + 1].map(min_of::<BITS>);
            let [from, until] = if *place < 0 {
                [beyond, min].map(|it| 1_i64.saturating_sub_unsigned(it))
            } else {
                [min, beyond].map(|it| 0_i64.saturating_add_unsigned(it))
            };
            Bucket { from, until, count: *count }
        })
    }

    /// Encodes the histogram: for each bucket in order, twice the number of empty buckets before it, plus one if it
    /// has several values; then the number of values beyond two. Numbers are LEB128: groups of seven bits, the lowest
    /// first. Empty without values.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (mut bytes, mut next) = (Vec::new(), FIRST);
        for (place, count) in &self.counts {
            let ahead = u64::from((place - next).unsigned_abs());
            push(&mut bytes, ahead << 1 | u64::from(*count > 1));
            if *count > 1 {
                push(&mut bytes, count - 2);
            }
            next = place + 1;
        }
        bytes
    }

    /// Decodes a histogram.
    ///
    /// # Errors
    ///
    /// The bytes are not an encoded histogram.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, MalformedHistogram> {
        let (mut counts, mut next) = (BTreeMap::new(), FIRST);
        while !bytes.is_empty() {
            let first = take(&mut bytes)?;
            let ahead = i32::try_from(first >> 1).map_err(|_| MalformedHistogram)?;
            let place =
                next.checked_add(ahead).filter(|it| *it < -FIRST).ok_or(MalformedHistogram)?;
            let count = match first & 1 {
                0 => 1,
                _ => take(&mut bytes)?.checked_add(2).ok_or(MalformedHistogram)?,
            };
            counts.insert(place, count);
            next = place + 1;
        }
        Ok(Self { counts })
    }
}

impl From<CompactHistogram> for Vec<u8> {
    fn from(histogram: CompactHistogram) -> Self {
        histogram.encode()
    }
}

impl TryFrom<Vec<u8>> for CompactHistogram {
    type Error = MalformedHistogram;

    fn try_from(bytes: Vec<u8>) -> Result<Self, MalformedHistogram> {
        Self::decode(&bytes)
    }
}

impl From<&Distribution> for CompactHistogram {
    /// Converts a distribution; each of its buckets is inside one bucket of this histogram.
    fn from(distribution: &Distribution) -> Self {
        let mut histogram = Self::default();
        for (value, count) in distribution.buckets() {
            histogram.add(place_of(value), count);
        }
        histogram
    }
}

fn place_of(value: i64) -> i32 {
    let bucket = i32::try_from(bucket_of::<BITS>(value.unsigned_abs())).unwrap_or(i32::MAX);
    if value < 0 { -bucket } else { bucket }
}

/// Bucket of the magnitudes of an index.
fn bucket(place: i32) -> usize {
    usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX)
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn take(bytes: &mut &[u8]) -> Result<u64, MalformedHistogram> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(MalformedHistogram)?;
        *bytes = rest;
        let part = u64::from(first & 0x7f);
        if part << shift >> shift != part {
            return Err(MalformedHistogram);
        }
        number |= part << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(MalformedHistogram)
}

#[cfg(test)]
mod tests;
