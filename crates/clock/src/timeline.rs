//! Timelines: conversion from raw stamps to system time with an error bound.
//!
//! A timeline is an immutable snapshot. It divides the raw values into pieces. Within a piece time is a straight
//! line. Its error is a constant plus an optional growth per tick of the distance from the nearer anchor. The pieces
//! come from the anchors of a [`crate::Calibrator`]; [`crate::pieces`] defines their slopes and errors.

use std::num::NonZeroU64;

use crate::anchor::Entry;
use crate::ratio::Ratio;
use crate::{Anchor, DifferenceClock, Domain, RawStamp, Span, Stamp, Time, Utc};

/// Error of the arithmetic: a time is rounded to a nanosecond, and the growth of its error is rounded down.
pub(crate) const ROUNDING: Span = Span::from_nanos(2);

/// Converts raw stamps of one domain to UTC.
#[derive(Clone, Debug)]
pub struct Timeline {
    domain: Domain,
    /// Never empty; ascending by `start`. The first starts at zero.
    pieces: Vec<Piece>,
    difference: DifferenceClock,
    steps: u32,
    /// The anchors of the pieces.
    entries: Vec<Entry>,
}

/// A range of raw values that one straight line converts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// First raw value of the piece; it ends at the start of the next one.
    pub(crate) start: u64,
    /// The anchor from which distances are measured, and its time.
    pub(crate) origin: u64,
    pub(crate) origin_utc: Time<Utc>,
    /// Nanoseconds per tick.
    pub(crate) slope: Ratio,
    /// Ticks to the anchor at the other end, if there is one.
    pub(crate) length: Option<NonZeroU64>,
    /// The error at the anchors, and its growth in nanoseconds per tick away from the nearer one. The growth is
    /// rounded down, so that the error at the anchors includes one nanosecond for it.
    pub(crate) error: Span,
    pub(crate) error_slope: Ratio,
}

/// Time of a raw value on a line through `origin`, before or after it; saturates.
pub(crate) fn on_line(origin: u64, origin_utc: Time<Utc>, slope: Ratio, raw: u64) -> Time<Utc> {
    let nanos = slope.scale(raw.abs_diff(origin));
    let origin_utc = origin_utc.as_nanos();
    Time::from_nanos(if raw >= origin {
        origin_utc.saturating_add_unsigned(nanos)
    } else {
        origin_utc.saturating_sub_unsigned(nanos)
    })
}

impl Piece {
    /// Time of a raw value on the piece's line; saturates.
    pub(crate) fn utc(&self, raw: u64) -> Time<Utc> {
        on_line(self.origin, self.origin_utc, self.slope, raw)
    }

    /// Error of a raw value; saturates.
    pub(crate) fn error(&self, raw: u64) -> Span {
        let distance = raw.abs_diff(self.origin);
        let nearer =
            self.length.map_or(distance, |length| distance.min(length.get().abs_diff(distance)));
        let growth = self.error_slope.scale_down(nearer);
        Span::from_nanos(self.error.as_nanos().saturating_add_unsigned(growth))
    }
}

/// The part of a piece that converts without overflow, for the inner loop without saturating arithmetic. Its results
/// equal those of [`Piece`].
#[derive(Clone, Copy)]
struct FastPiece {
    origin: u64,
    origin_utc: i64,
    slope: Ratio,
    /// Distance of the other anchor, or twice the reach without one.
    length: u64,
    error: i64,
    error_slope: Ratio,
    /// Largest distance beyond the origin that is converted here.
    reach: u64,
}

impl FastPiece {
    /// The fast part of `piece`, which ends at the raw value `last`.
    fn of(piece: &Piece, last: u64) -> Self {
        // With both terms under 2^62, sums stay under 2^63.
        const ROOM: i64 = 1 << 62;
        let (origin_utc, error) = (piece.origin_utc.as_nanos(), piece.error.as_nanos());
        let fits = |slope: Ratio| slope.largest_within(ROOM.unsigned_abs());
        let room = fits(piece.slope).min(fits(piece.error_slope)).min(u64::MAX / 2);
        let reach = match last.checked_sub(piece.origin) {
            Some(width) if origin_utc.unsigned_abs() < ROOM.unsigned_abs() && error < ROOM => {
                width.min(room)
            }
            _ => 0,
        };
        Self {
            origin: piece.origin,
            origin_utc,
            slope: piece.slope,
            length: piece.length.map_or(u64::MAX, NonZeroU64::get),
            error,
            error_slope: piece.error_slope,
            reach,
        }
    }

    #[inline(always)]
    fn reaches(&self, raw: u64) -> bool {
        raw.wrapping_sub(self.origin) <= self.reach
    }

    /// Time and error of a raw value within reach.
    #[inline(always)]
    #[expect(clippy::cast_possible_wrap, reason = "under 2^62 within reach")]
    fn convert(&self, raw: u64) -> (Time<Utc>, Span) {
        let distance = raw.wrapping_sub(self.origin);
        let nearer = distance.min(self.length.wrapping_sub(distance));
        let nanos = self.slope.scale_within(distance) as i64;
        let growth = self.error_slope.scale_down_within(nearer) as i64;
        let utc = Time::from_nanos(self.origin_utc.wrapping_add(nanos));
        (utc, Span::from_nanos(self.error.wrapping_add(growth)))
    }
}

impl Timeline {
    /// A timeline of these pieces and of the anchors that they were made of. The pieces are not empty, ascend and
    /// start at zero.
    pub(crate) fn new(
        domain: Domain,
        pieces: Vec<Piece>,
        difference: DifferenceClock,
        steps: u32,
        entries: Vec<Entry>,
    ) -> Self {
        debug_assert!(pieces.first().is_some_and(|piece| piece.start == 0));
        debug_assert!(pieces.is_sorted_by_key(|piece| piece.start));
        Self { domain, pieces, difference, steps, entries }
    }

    /// For stamps that already are nanoseconds of UTC, as the kernel's are ([`Domain::Realtime`]). The error is their
    /// resolution, 1 ns: they are the system clock's own readings.
    #[must_use]
    pub fn realtime() -> Self {
        Self::identity_after(Domain::Realtime, 0)
    }

    /// For stamps of a network card's clock without calibration: all errors are unbounded.
    pub(crate) fn unknown() -> Self {
        let mut timeline = Self::identity_after(Domain::Nic, 0);
        timeline.pieces.iter_mut().for_each(|piece| piece.error = Span::MAX);
        timeline
    }

    /// As [`Self::realtime`], for any domain and with this number of steps of the system clock.
    pub(crate) fn identity_after(domain: Domain, steps: u32) -> Self {
        let piece = Piece {
            start: 0,
            origin: 0,
            origin_utc: Time::from_nanos(0),
            slope: Ratio::ONE,
            length: None,
            error: Span::from_nanos(1),
            error_slope: Ratio::ZERO,
        };
        Self::new(domain, vec![piece], DifferenceClock::nanoseconds(domain), steps, Vec::new())
    }

    /// Domain of the stamps that this converts.
    #[must_use]
    pub const fn domain(&self) -> Domain {
        self.domain
    }

    /// System time of a raw value of this timeline's domain, with its error bound.
    ///
    /// Every raw value has a result. Between two anchors it is interpolated; beyond them it is extrapolated, with an
    /// error that grows with the distance.
    #[must_use]
    pub fn convert(&self, raw: u64) -> Stamp {
        let piece = &self.pieces[self.piece_of(raw)];
        let raw_stamp = RawStamp { domain: self.domain, value: raw };
        Stamp { raw: raw_stamp, utc: piece.utc(raw), error: piece.error(raw) }
    }

    /// Converts many raw values and appends the stamps to `out`, in the same order.
    ///
    /// Fast for ascending values, as of one capture thread: the piece is looked up once for each run of values in it.
    pub fn convert_batch(&self, raw: &[u64], out: &mut Vec<Stamp>) {
        let domain = self.domain;
        let mut rest = raw;
        while let Some((&first, others)) = rest.split_first() {
            let piece = self.fast_piece(self.piece_of(first));
            let run = rest.iter().position(|&raw| !piece.reaches(raw)).unwrap_or(rest.len());
            if run == 0 {
                out.push(self.convert(first));
                rest = others;
                continue;
            }
            let (here, beyond) = rest.split_at(run);
            out.extend(here.iter().map(move |&raw| {
                let (utc, error) = piece.convert(raw);
                Stamp { raw: RawStamp { domain, value: raw }, utc, error }
            }));
            rest = beyond;
        }
    }

    /// Number of restarts of the conversion since the calibrator started: steps of the system clock, disruptions of
    /// the calibrated clock (by a suspend or a migration), and steps of a network card's clock.
    ///
    /// In [`Domain::Realtime`] conversion never restarts; there it is the number of the counter's timeline, because
    /// the stamps themselves do not show a step. A step is counted with the next anchor, up to 250 ms later, if
    /// ordinary slewing does not explain it: 500 ppm of the time since the anchor before, and twice that against a
    /// slew in the other direction. If the number is the same at the beginning and at the end of a measurement, the
    /// spans between its stamps contain no step of more than 125 to 250 us, unless the calibrating thread is delayed.
    ///
    /// A slew faster than 500 ppm usually counts as a step at its beginning and as one at its end. Slower slews, and
    /// anything during a fast one, are not counted.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// The anchors of this timeline, oldest first: those of the last minute, or all of a file
    /// ([`crate::AnchorFile`]). Stamps that already are UTC ([`Self::realtime`]) have none.
    pub fn anchors(&self) -> impl DoubleEndedIterator<Item = Anchor> + ExactSizeIterator {
        self.entries.iter().map(|entry| entry.anchor)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Clock for spans between two stamps of this domain.
    #[must_use]
    pub const fn difference(&self) -> DifferenceClock {
        self.difference
    }

    /// The piece that begins at the newest anchor.
    pub(crate) fn newest(&self) -> &Piece {
        self.pieces.last().expect("a timeline has a piece")
    }

    fn fast_piece(&self, index: usize) -> FastPiece {
        let last = self.pieces.get(index + 1).map_or(u64::MAX, |next| next.start - 1);
        FastPiece::of(&self.pieces[index], last)
    }

    /// Index of the piece of `raw`: the last one that starts no later.
    fn piece_of(&self, raw: u64) -> usize {
        // The first piece starts at zero, so the partition point is never zero.
        self.pieces.partition_point(|piece| piece.start <= raw) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::Anchor;
    use crate::history::History;
    use crate::ratio::Rate;
    use crate::ratio::approx;
    use proptest::prelude::*;

    const FIRST_RAW: u64 = 1 << 40;
    const FIRST_UTC: i64 = 1_790_000_000_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn anchor(ticks: u64, nanos: i64, step: i64) -> Anchor {
        Anchor {
            raw: FIRST_RAW + ticks,
            utc: Time::from_nanos(FIRST_UTC + nanos + step),
            monotonic_raw: Time::from_nanos(nanos),
            error: Span::from_nanos(30),
        }
    }

    /// Anchors a second apart; the last `after` come after a step.
    fn timeline(hertz: u64, before: u32, after: u32, step: i64) -> Timeline {
        let nanos_per_tick = 1e9 / approx(hertz);
        let rate = Rate { nanos_per_tick, error: nanos_per_tick * 1e-6 };
        let granularity = Span::from_nanos(1);
        let mut history = History::new(Domain::Counter, anchor(0, 0, 0), rate, granularity);
        for second in 1..before + after {
            let step = if second < before { 0 } else { step };
            history.push(anchor(hertz * u64::from(second), SECOND * i64::from(second), step));
        }
        history.timeline()
    }

    #[test]
    fn timeline_reproduces_its_anchors() {
        let timeline = timeline(2_600_000_000, 6, 0, 0);
        for second in 0..6_i64 {
            let stamp = timeline.convert(FIRST_RAW + 2_600_000_000 * second.unsigned_abs());
            assert_eq!(stamp.utc.as_nanos(), FIRST_UTC + SECOND * second);
            // Events in the first and in the last segment are visible from one side only.
            let seen = [1, 2, 3, 5].contains(&second);
            assert_eq!(stamp.error, Span::from_nanos(if seen { 32 } else { 92 }), "{second}");
        }
    }

    #[test]
    fn error_grows_away_from_anchors() {
        let timeline = timeline(1_000_000_000, 4, 0, 0);
        let error = |seconds: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let ticks = (seconds * 1e9) as u64;
            timeline.convert(FIRST_RAW + ticks).error
        };
        assert!(error(1.5) > error(1.1));
        assert_eq!(error(1.4), error(1.6), "the nearer anchor counts");
        assert!(error(5.0) > error(4.0) && error(4.0) > error(3.1));
        assert!(timeline.convert(0).error > timeline.convert(FIRST_RAW / 2).error);
    }

    #[test]
    fn error_at_a_step_covers_both_epochs() {
        let hour = 3_600 * SECOND;
        for step in [hour, -hour] {
            let timeline = timeline(1_000_000_000, 3, 2, step);
            assert_eq!(timeline.steps(), 1);
            let stamp = timeline.convert(FIRST_RAW + 2_500_000_000);
            assert_eq!(stamp.utc.as_nanos(), FIRST_UTC + SECOND * 5 / 2, "the old epoch");
            assert!(stamp.error.as_nanos() >= hour);
            let before = timeline.convert(FIRST_RAW + 1_500_000_000);
            assert_eq!(before.utc.as_nanos(), FIRST_UTC + SECOND * 3 / 2);
            assert!(before.error < Span::from_nanos(1_000));
            let after = timeline.convert(FIRST_RAW + 3_500_000_000);
            assert_eq!(after.utc.as_nanos(), FIRST_UTC + SECOND * 7 / 2 + step);
            assert!(after.error < Span::from_nanos(1_000));
        }
    }

    #[test]
    fn kernel_stamps_are_utc() {
        let stamp = Timeline::realtime().convert(1_790_000_000_123_456_789);
        assert_eq!(stamp.utc.as_nanos(), 1_790_000_000_123_456_789);
        assert_eq!(stamp.error, Span::from_nanos(1));
        assert_eq!(Timeline::realtime().convert(u64::MAX).utc.as_nanos(), i64::MAX);
    }

    proptest! {
        #[test]
        fn day_of_ticks_converts_within_1_ns(
            hertz in 1_000_000_u64..=6_000_000_000,
            part_of_day in 0.0..=1.0_f64,
        ) {
            let timeline = timeline(hertz, 2, 0, 0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1 of a day")]
            let ticks = (approx(hertz * 86_400) * part_of_day) as u64;
            let utc = timeline.convert(FIRST_RAW + ticks).utc.as_nanos();
            // Exact: utc - FIRST_UTC = ticks / hertz seconds, compared without a division.
            let converted = i128::from(utc - FIRST_UTC) * i128::from(hertz);
            let exact = i128::from(ticks) * i128::from(SECOND);
            prop_assert!((converted - exact).abs() <= i128::from(hertz));
        }

        #[test]
        fn batch_equals_single_conversions(
            hertz in 1_000_000_u64..=6_000_000_000,
            near in prop::collection::vec(0..6_u64 << 30, 0..50),
            anywhere in prop::collection::vec(any::<u64>(), 0..50),
            step in prop::sample::select(vec![0, SECOND, -SECOND]),
        ) {
            let timeline = timeline(hertz, 3, 3, step);
            let near = near.iter().map(|ticks| FIRST_RAW - (1 << 30) + ticks);
            let edges = [0, FIRST_RAW - 1, FIRST_RAW, FIRST_RAW + hertz, u64::MAX];
            let raw: Vec<u64> = near.chain(anywhere).chain(edges).collect();
            let expected: Vec<Stamp> = raw.iter().map(|&raw| timeline.convert(raw)).collect();
            let mut batch = vec![expected[0]];
            timeline.convert_batch(&raw, &mut batch);
            prop_assert_eq!(&batch[1..], &expected[..], "appended, in order");
        }
    }
}
