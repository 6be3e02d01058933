//! Timelines: conversion from raw stamps to system time with an error bound.
//!
//! A timeline is an immutable snapshot. It divides the raw values into pieces. Within a piece time is a straight
//! line. Its error is a constant plus an optional growth per tick of the distance from the nearer anchor. The pieces
//! come from the anchors of a [`crate::Calibrator`]; [`crate::pieces`] defines their slopes and errors.

use std::sync::Arc;

use crate::anchor::Entry;
use crate::piece::{FastPiece, Piece};
use crate::ratio::Ratio;
use crate::vdso::KernelLine;
use crate::vdso::history::{CounterAt, Lines, Segment};
use crate::{Anchor, DifferenceClock, Domain, RawStamp, Span, Stamp, Time, Utc};

/// Converts raw stamps of one domain to UTC.
#[derive(Clone, Debug)]
pub struct Timeline {
    domain: Domain,
    /// The pieces before `gap` and `beyond`, ascending by `start`. The first piece starts at zero.
    pieces: Arc<[Piece]>,
    /// The piece before `beyond`, if the kernel changed its line after `pieces` were made.
    gap: Option<Piece>,
    /// The last piece.
    beyond: Piece,
    /// The kernel's own lines, if pieces are made of them. `beyond` continues them.
    kernel: Option<Lines>,
    difference: DifferenceClock,
    steps: u32,
    /// The anchors of the pieces.
    entries: Arc<[Entry]>,
}

impl Timeline {
    /// A timeline of these pieces and of the anchors that they were made of. The pieces are not empty, ascend and
    /// start at zero.
    pub(crate) fn new(
        domain: Domain,
        mut pieces: Vec<Piece>,
        difference: DifferenceClock,
        steps: u32,
        entries: Vec<Entry>,
    ) -> Self {
        debug_assert!(pieces.first().is_some_and(|piece| piece.start == 0));
        debug_assert!(pieces.is_sorted_by_key(|piece| piece.start));
        let beyond = pieces.pop().expect("a timeline has a piece");
        let (pieces, entries) = (pieces.into(), entries.into());
        Self { domain, pieces, gap: None, beyond, kernel: None, difference, steps, entries }
    }

    /// This timeline with the kernel's own lines instead of lines between anchors, where `lines` has any; and with
    /// `difference`, if given.
    pub(crate) fn with_kernel_lines(
        &self,
        lines: Lines,
        difference: Option<DifferenceClock>,
    ) -> Self {
        let exact = lines.older().chain([lines.newest()]).map(Segment::piece);
        let by_anchors = self.pieces.iter().chain([&self.beyond]).copied();
        let by_anchors = by_anchors.take_while(|piece| piece.start < lines.first());
        let pieces = by_anchors.chain(exact).collect();
        let difference = difference.unwrap_or(self.difference);
        Self { pieces, difference, ..self.ending_with(lines) }
    }

    /// This timeline, of the kernel's lines, with the one that is in force at the raw value `now`. None if it has no
    /// such lines, or the clock was set back. Allocates no memory if this timeline is not itself extended.
    pub(crate) fn extended(&self, line: &KernelLine, now: u64) -> Option<Self> {
        let lines = self.kernel.as_ref()?.extended(line, now)?;
        Some(self.ending_with(lines))
    }

    fn ending_with(&self, lines: Lines) -> Self {
        let beyond = lines.newest().piece_beyond(lines.until(), self.beyond.error_slope);
        let gap = lines.new_gap().map(Segment::piece);
        Self { gap, beyond, kernel: Some(lines), ..self.clone() }
    }

    /// The pieces, ascending by `start`.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        self.pieces.iter().chain(&self.gap).chain([&self.beyond]).copied().collect()
    }

    /// This timeline with other pieces, which are not empty, ascend and start at zero.
    pub(crate) fn with_pieces(&self, pieces: Vec<Piece>) -> Self {
        let entries = self.entries.to_vec();
        Self::new(self.domain, pieces, self.difference, self.steps, entries)
    }

    /// This timeline with another clock for spans.
    pub(crate) fn with_difference(self, difference: DifferenceClock) -> Self {
        Self { difference, ..self }
    }

    /// The kernel's own lines, if pieces are made of them.
    pub(crate) const fn kernel_lines(&self) -> Option<&Lines> {
        self.kernel.as_ref()
    }

    /// The piece of a raw value that the kernel's own lines convert.
    pub(crate) fn kernel_piece(&self, raw: u64) -> Option<&Piece> {
        let lines = self.kernel.as_ref()?;
        (lines.first()..=lines.until()).contains(&raw).then(|| self.piece_of(raw).0)
    }

    /// Whether the newest part is the kernel's own conversion ([`crate::vdso`]).
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.kernel.is_some()
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
        timeline.beyond.error = Span::MAX;
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
        let (piece, _) = self.piece_of(raw);
        let raw_stamp = RawStamp { domain: self.domain, value: raw };
        Stamp { raw: raw_stamp, utc: piece.utc(raw), error: piece.error(raw) }
    }

    /// The raw value at which the system clock showed `utc`: the inverse of [`Self::convert`], for stamps of the kernel,
    /// within 5 ns. A time that the clock showed twice, because it was set back, is taken as the later one.
    ///
    /// `None` for times that the kernel's own lines do not cover ([`Self::is_exact`]), such as those after this
    /// timeline was made, and for those during which the clock was stepped or slewed by more.
    #[must_use]
    pub fn raw_at(&self, utc: Time<Utc>) -> Option<RawStamp> {
        match self.kernel.as_ref()?.latest_counter_at(utc.as_nanos()) {
            CounterAt::Value(value) => Some(RawStamp { domain: self.domain, value }),
            CounterAt::Uncertain(_) | CounterAt::Unknown => None,
        }
    }

    /// Converts many raw values and appends the stamps to `out`, in the same order.
    ///
    /// Fast for ascending values, as of one capture thread: the piece is looked up once for each run of values in it.
    pub fn convert_batch(&self, raw: &[u64], out: &mut Vec<Stamp>) {
        let domain = self.domain;
        let mut rest = raw;
        while let Some((&first, others)) = rest.split_first() {
            let piece = self.fast_piece(first);
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

    /// The last piece.
    pub(crate) const fn newest(&self) -> &Piece {
        &self.beyond
    }

    fn fast_piece(&self, raw: u64) -> FastPiece {
        let (piece, last) = self.piece_of(raw);
        FastPiece::of(piece, last)
    }

    /// The piece of `raw`, and its last raw value.
    fn piece_of(&self, raw: u64) -> (&Piece, u64) {
        if raw >= self.beyond.start {
            return (&self.beyond, u64::MAX);
        }
        if let Some(gap) = self.gap.as_ref().filter(|gap| raw >= gap.start) {
            return (gap, self.beyond.start - 1);
        }
        let after = self.pieces.partition_point(|piece| piece.start <= raw);
        let next = self.pieces.get(after).or(self.gap.as_ref()).unwrap_or(&self.beyond);
        match self.pieces[..after].last() {
            Some(piece) => (piece, next.start - 1),
            None => (&self.beyond, u64::MAX),
        }
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
