//! The time in front of a printed packet (`-t`).

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_report::date;

use crate::output;

const SECOND: u64 = 1_000_000_000;

/// How the time is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimeStyle {
    /// Date and time of day in UTC.
    #[default]
    Date,
    /// Not at all.
    Absent,
    /// Seconds since 1970.
    Epoch,
    /// Time since the previous printed packet.
    SincePrevious,
    /// Time since the first printed packet.
    SinceFirst,
}

/// The times of printed packets, in the order of printing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    style: TimeStyle,
    /// Time and max error of the packet from which the time is counted.
    reference: Option<(Time<Utc>, Option<Span>)>,
}

impl TimeStyle {
    /// The style of tcpdump for this number of `t`.
    pub(super) fn of(count: u8) -> Option<Self> {
        match count {
            0 | 4 => Some(Self::Date),
            1 => Some(Self::Absent),
            2 => Some(Self::Epoch),
            3 => Some(Self::SincePrevious),
            5 => Some(Self::SinceFirst),
            _ => None,
        }
    }
}

impl Times {
    pub(super) fn new(style: TimeStyle) -> Self {
        Self { style, reference: None }
    }

    /// The text for the next packet: its time and the max error, or nothing.
    pub(super) fn next(&mut self, time: Time<Utc>, error: Option<Span>) -> Option<String> {
        let (text, error) = match self.style {
            TimeStyle::Absent => return None,
            TimeStyle::Date => (date_and_time(time), error),
            TimeStyle::Epoch => (seconds(time), error),
            TimeStyle::SincePrevious | TimeStyle::SinceFirst => self.since(time, error),
        };
        let error = error.map_or("unknown".to_owned(), |error| output::time(error.as_nanos()));
        Some(format!("{text} ±{error}"))
    }

    /// The time since the reference, and the sum of both errors. The first packet is its own reference.
    fn since(&mut self, time: Time<Utc>, error: Option<Span>) -> (String, Option<Span>) {
        let Some((before, error_before)) = self.reference else {
            self.reference = Some((time, error));
            return (difference(Span::ZERO), Some(Span::ZERO));
        };
        if self.style == TimeStyle::SincePrevious {
            self.reference = Some((time, error));
        }
        let error = error.zip(error_before).map(|(error, before)| error + before);
        (difference(time - before), error)
    }
}

/// A time with nanoseconds, in UTC.
pub(super) fn date_and_time(time: Time<Utc>) -> String {
    format!("{}.{:09}Z", date(time), time.as_nanos().rem_euclid(1_000_000_000))
}

fn seconds(time: Time<Utc>) -> String {
    let (sign, nanos) = sign_and_size(time.as_nanos());
    format!("{sign}{}.{:09}", nanos / SECOND, nanos % SECOND)
}

/// Hours, minutes and seconds with nanoseconds.
fn difference(span: Span) -> String {
    let (sign, nanos) = sign_and_size(span.as_nanos());
    let (whole, rest) = (nanos / SECOND, nanos % SECOND);
    format!("{sign}{:02}:{:02}:{:02}.{rest:09}", whole / 3600, whole / 60 % 60, whole % 60)
}

fn sign_and_size(nanos: i64) -> (&'static str, u64) {
    (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: i64 = 1_795_269_909_000_000_007;

    /// The texts of three packets: the first, one 61 seconds later, and one a nanosecond before it.
    fn texts(count: u8, error: Option<i64>) -> Vec<Option<String>> {
        let mut times = Times::new(TimeStyle::of(count).unwrap());
        let later = FIRST + 61_000_000_000;
        let error = error.map(Span::from_nanos);
        [FIRST, later, later - 1].map(|time| times.next(Time::from_nanos(time), error)).into()
    }

    fn expected(texts: [&str; 3]) -> Vec<Option<String>> {
        texts.map(|text| Some(text.to_owned())).into()
    }

    #[test]
    fn times_are_dates_seconds_or_absent() {
        let dates = expected([
            "2026-11-21 14:05:09.000000007Z ±20 ns",
            "2026-11-21 14:06:10.000000007Z ±20 ns",
            "2026-11-21 14:06:10.000000006Z ±20 ns",
        ]);
        assert_eq!(texts(0, Some(20)), dates);
        assert_eq!(texts(4, Some(20)), dates);
        assert_eq!(texts(1, Some(20)), [None, None, None]);
        let seconds = expected([
            "1795269909.000000007 ±unknown",
            "1795269970.000000007 ±unknown",
            "1795269970.000000006 ±unknown",
        ]);
        assert_eq!(texts(2, None), seconds);
        assert_eq!(super::seconds(Time::from_nanos(-500_000_000)), "-0.500000000");
        assert_eq!(TimeStyle::of(6), None);
    }

    #[test]
    fn differences_have_the_sum_of_both_errors() {
        let previous = expected([
            "00:00:00.000000000 ±0 ns",
            "00:01:01.000000000 ±40 ns",
            "-00:00:00.000000001 ±40 ns",
        ]);
        assert_eq!(texts(3, Some(20)), previous);
        let first = expected([
            "00:00:00.000000000 ±0 ns",
            "00:01:01.000000000 ±unknown",
            "00:01:00.999999999 ±unknown",
        ]);
        assert_eq!(texts(5, None), first);
    }
}
