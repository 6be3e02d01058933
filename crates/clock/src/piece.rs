//! A piece of a timeline: a straight line from raw values to time, with its error.

use std::num::NonZeroU64;

use crate::ratio::Ratio;
use crate::{Span, Time, Utc};

/// Error of the arithmetic: a time is rounded to a nanosecond, and the growth of its error is rounded down.
pub(crate) const ROUNDING: Span = Span::from_nanos(2);

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
pub(crate) struct FastPiece {
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
    pub(crate) fn of(piece: &Piece, last: u64) -> Self {
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
    pub(crate) fn reaches(&self, raw: u64) -> bool {
        raw.wrapping_sub(self.origin) <= self.reach
    }

    /// Time and error of a raw value within reach.
    #[inline(always)]
    #[expect(clippy::cast_possible_wrap, reason = "under 2^62 within reach")]
    pub(crate) fn convert(&self, raw: u64) -> (Time<Utc>, Span) {
        let distance = raw.wrapping_sub(self.origin);
        let nearer = distance.min(self.length.wrapping_sub(distance));
        let nanos = self.slope.scale_within(distance) as i64;
        let growth = self.error_slope.scale_down_within(nearer) as i64;
        let utc = Time::from_nanos(self.origin_utc.wrapping_add(nanos));
        (utc, Span::from_nanos(self.error.wrapping_add(growth)))
    }
}
