//! Delays over time, reduced to the resolution of a figure.

use std::ops::Range;

use super::format::{approximate, real};

/// The delays of the packets sent in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slice {
    /// The middle of the slice, in seconds.
    pub(super) at: f64,
    /// The smallest delay in nanoseconds.
    pub(super) least: f64,
    /// The median delay in nanoseconds, or the mean if the median is not known.
    pub(super) middle: f64,
    /// The largest delay in nanoseconds.
    pub(super) most: f64,
}

/// The range in seconds from 0, or from the min of `times` if that is negative, to the max of `times`. Times that are
/// not finite are ignored. An empty range becomes one second.
pub(super) fn span(times: impl Iterator<Item = f64>) -> Range<f64> {
    let finite = times.filter(|time| time.is_finite());
    let (start, end) = finite.fold((0.0_f64, 0.0_f64), |(a, b), time| (a.min(time), b.max(time)));
    if start < end { start..end } else { 0.0..1.0 }
}

/// The delays in `slices` equal slices of `span`, without those in which no packet was sent.
pub(super) fn slices(delays: &[(f64, i64)], span: &Range<f64>, slices: u32) -> Vec<Slice> {
    let mut members: Vec<(u32, i64)> = delays
        .iter()
        .filter(|(time, _)| time.is_finite())
        .map(|(time, delay)| (slice_of(*time, span, slices), *delay))
        .collect();
    members.sort_unstable();
    let width = (span.end - span.start) / f64::from(slices.max(1));
    let of_slice = |members: &[(u32, i64)]| {
        let (index, least) = *members.first()?;
        let (_, most) = *members.last()?;
        let (_, median) = *members.get(members.len() / 2)?;
        let [least, middle, most] = [least, median, most].map(approximate);
        Some(Slice { at: span.start + (f64::from(index) + 0.5) * width, least, middle, most })
    };
    members.chunk_by(|a, b| a.0 == b.0).filter_map(of_slice).collect()
}

/// The first of `times`, in seconds, in each of `slices` slices of `span`. Empty slices are left out.
pub(super) fn moments(times: &[f64], span: &Range<f64>, slices: u32) -> Vec<f64> {
    let finite = times.iter().copied().filter(|time| time.is_finite());
    let mut moments: Vec<(u32, f64)> =
        finite.map(|time| (slice_of(time, span, slices), time)).collect();
    moments.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    moments.dedup_by_key(|(slice, _)| *slice);
    moments.into_iter().map(|(_, time)| time).collect()
}

/// The mean length of a slice in nanoseconds.
pub(super) fn slice_length_ns(span: &Range<f64>, slices: u32) -> f64 {
    (span.end - span.start) * 1e9 / real(u64::from(slices.max(1)))
}

/// Index of the slice that contains `time`, of `slices` slices of `span`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "kept within 0 and the number of slices, which is a u32"
)]
fn slice_of(time: f64, span: &Range<f64>, slices: u32) -> u32 {
    let last = f64::from(slices.max(1)) - 1.0;
    let share = (time - span.start) / (span.end - span.start);
    (share * (last + 1.0)).floor().clamp(0.0, last) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_keeps_its_extremes() {
        let delays = [(0.1, 5), (0.2, 1), (0.3, 9), (1.9, 4), (f64::NAN, 100)];
        let thinned = slices(&delays, &(0.0..2.0), 2);
        assert_eq!(
            thinned,
            [
                Slice { at: 0.5, least: 1.0, middle: 5.0, most: 9.0 },
                Slice { at: 1.5, least: 4.0, middle: 4.0, most: 4.0 },
            ]
        );
    }

    #[test]
    fn the_last_moment_of_the_span_is_in_its_last_slice() {
        assert_eq!(slice_of(2.0, &(0.0..2.0), 4), 3);
        assert_eq!(slice_of(-1.0, &(0.0..2.0), 4), 0);
    }

    #[test]
    fn losses_in_one_slice_are_one_mark() {
        assert_eq!(moments(&[0.02, 0.01, 5.0, f64::INFINITY], &(0.0..10.0), 100), [0.01, 5.0]);
    }

    #[test]
    fn a_span_is_never_empty() {
        assert_eq!(span([].into_iter()), 0.0..1.0);
        assert_eq!(span([0.0, f64::NAN].into_iter()), 0.0..1.0);
        assert_eq!(span([3.0, -1.0].into_iter()), -1.0..3.0);
    }
}
