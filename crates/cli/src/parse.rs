//! Parsers of argument values: counts, seconds and times with a unit.

use std::ops::RangeInclusive;
use std::str::FromStr;

use wirestamp_clock::Span;
use wirestamp_metrics::JitterBuffer;

/// Parses a whole number above 0.
pub(crate) fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    match text.parse() {
        Ok(number) if number >= T::from(1) => Ok(number),
        _ if text.parse::<u128>().is_ok_and(|number| number > 0) => {
            Err("the number is too large".into())
        }
        _ => Err("expected a whole number, at least 1".into()),
    }
}

/// The seconds of 365 days.
const YEAR: f64 = 31_536_000.0;

/// Units of times, in seconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

/// Parses a time: `2.5` seconds, or a number with a unit, such as `500ms`, `90s`, `1.5m` or `1h`. Above 0 and below a year.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match time(text) {
        Some(seconds) if seconds > 0.0 && seconds < YEAR => Ok(seconds),
        Some(seconds) if seconds >= YEAR => {
            Err("expected less than 31536000 seconds, a year".into())
        }
        _ => Err("expected a time above 0: seconds such as 2.5, or a number with a unit such as 500ms, 90s or 1m".into()),
    }
}

/// Parses a time as [`seconds`] does, which may be 0, in whole nanoseconds.
pub(crate) fn interval(text: &str) -> Result<Span, String> {
    match time(text).map(|seconds| (seconds * 1e9).round()) {
        #[expect(clippy::cast_possible_truncation, reason = "the year was checked")]
        Some(nanos) if (0.0..YEAR * 1e9).contains(&nanos) => Ok(Span::from_nanos(nanos as i64)),
        Some(nanos) if nanos > 0.0 => Err("the time is too long".into()),
        _ => Err(
            "expected seconds such as 0.02, or a number with a unit such as 20ms, 50us or 1500ns"
                .into(),
        ),
    }
}

/// A parser of whole milliseconds in this range: a number such as `20`, or a time with a unit such as `20ms` or `1.5s`.
pub(crate) fn milliseconds(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let millis = text.parse().ok().or_else(|| with_unit(text)).filter(|it| range.contains(it));
        millis.ok_or_else(|| {
            format!(
                "expected whole milliseconds from {} to {}, such as 20, 20ms or 1.5s",
                range.start(),
                range.end()
            )
        })
    }
}

/// The whole milliseconds of a time with a unit.
fn with_unit(text: &str) -> Option<u32> {
    // Seconds without a unit would be taken for milliseconds.
    let nanos = interval(text).ok().filter(|_| text.parse::<f64>().is_err())?.as_nanos();
    u32::try_from(nanos / 1_000_000).ok().filter(|_| nanos % 1_000_000 == 0)
}

/// Parses a de-jitter buffer: `adaptive`, or its length as [`milliseconds`] does.
pub(crate) fn jitter_buffer(text: &str) -> Result<JitterBuffer, String> {
    // Other texts are rejected with the limits of buffers.
    with_unit(text).map_or_else(|| text.parse(), |millis| millis.to_string().parse())
}

/// A time in seconds: a number, and a unit if it is not seconds.
fn time(text: &str) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| !c.is_alphabetic());
    let with_unit = || {
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * scale)
    };
    // Such as 1e3.
    text.parse().ok().or_else(with_unit)
}

/// The highest code point: it has 6 bits (RFC 2474 section 3).
const MAX_DSCP: u8 = 63;

/// Parses a differentiated services code point: a number, or a name of the registry "Differentiated Services Field
/// Codepoints" of IANA.
pub(crate) fn dscp(text: &str) -> Result<u8, String> {
    if let Ok(number) = text.parse::<u8>() {
        return (number <= MAX_DSCP)
            .then_some(number)
            .ok_or_else(|| format!("{number} is not in 0..={MAX_DSCP}"));
    }
    let name = text.to_ascii_uppercase();
    let digit = |text: &str, most: u8| {
        text.parse::<u8>().ok().filter(|digit| text.len() == 1 && *digit <= most)
    };
    let class = || digit(name.strip_prefix("CS")?, 7).map(|class| 8 * class);
    let assured = || {
        // Class 1 to 4 and drop precedence 1 to 3 (RFC 2597 section 6).
        let (class, precedence) = name.strip_prefix("AF")?.split_at_checked(1)?;
        let (class, precedence) = (digit(class, 4)?, digit(precedence, 3)?);
        (class > 0 && precedence > 0).then_some(8 * class + 2 * precedence)
    };
    let named = || match &*name {
        "DF" | "BE" => Some(0),
        "LE" => Some(1),
        "VA" | "VOICE-ADMIT" => Some(44),
        "EF" => Some(46),
        _ => None,
    };
    let found = named().or_else(class).or_else(assured);
    found.ok_or_else(|| {
        format!("expected a number from 0 to {MAX_DSCP}, or EF, VOICE-ADMIT, LE, DF, CS0 to CS7, AF11 to AF43")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_overflow_are_rejected() {
        assert_eq!(at_least_one("1"), Ok(1_u32));
        for below in ["0", "-1", "1.5", "", "x"] {
            assert!(at_least_one::<u64>(below).is_err_and(|error| error.contains("at least 1")));
        }
        assert!(at_least_one::<u32>("4294967296").is_err_and(|error| error.contains("too large")));
    }

    #[test]
    fn rejected_seconds_name_the_exceeded_limit() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        for (text, limit) in [("-1", "above 0"), ("0", "above 0"), ("nan", "above 0")] {
            assert!(seconds(text).unwrap_err().contains(limit));
        }
        for text in ["1e30", "inf", "31536000"] {
            assert!(seconds(text).unwrap_err().contains("a year"), "{text}");
        }
    }

    #[test]
    fn code_points_have_numbers_and_names() {
        let all = ["0", "63", "ef", "EF", "CS6", "AF41", "af13", "DF", "LE", "VOICE-ADMIT"];
        let numbers = [0, 63, 46, 46, 48, 34, 14, 0, 1, 44];
        assert_eq!(all.map(dscp), numbers.map(Ok));
        for wrong in ["64", "-1", "", "CS8", "AF44", "AF51", "AF1", "AF113", "EFF", "CS"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_a_unit_or_are_seconds() {
        for (text, nanos) in [
            ("20ms", 20_000_000),
            ("1367992ns", 1_367_992),
            ("50us", 50_000),
            ("0.02", 20_000_000),
            ("1.5m", 90_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(interval(text), Ok(Span::from_nanos(nanos)), "{text}");
        }
        assert!(["1m", "60s", "60"].iter().all(|text| seconds(text) == Ok(60.0)));
        for wrong in ["ms", "20 ms", "20x", "-1s", "", "s20", "20msms"] {
            assert!(interval(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
        assert!(interval("99999999999s").unwrap_err().contains("too long"));
    }

    #[test]
    fn milliseconds_need_no_unit() {
        let up_to_a_minute = milliseconds(1..=60_000);
        for (text, millis) in
            [("20", 20), ("20ms", 20), ("1s", 1000), ("1.5s", 1500), ("1m", 60_000), ("0.02s", 20)]
        {
            assert_eq!(up_to_a_minute(text), Ok(millis), "{text}");
        }
        for wrong in
            ["0", "0ms", "60001", "61s", "0.02", "1e3", "500us", "20 ms", "-1", "-1ms", "", "ms"]
        {
            let error = up_to_a_minute(wrong).unwrap_err();
            assert!(error.contains("from 1 to 60000"), "{wrong}: {error}");
        }
    }

    #[test]
    fn jitter_buffers_have_a_unit_or_are_milliseconds() {
        let fixed = |millis| Ok(JitterBuffer::Fixed(Span::from_millis(millis)));
        assert_eq!(jitter_buffer("60"), fixed(60));
        assert_eq!(jitter_buffer("60ms"), fixed(60));
        assert_eq!(jitter_buffer("0.2s"), fixed(200));
        assert_eq!(jitter_buffer("adaptive"), Ok(JitterBuffer::Adaptive));
        for wrong in ["6s", "0.06", "60.5ms", "-60ms", "", "Adaptive"] {
            assert!(jitter_buffer(wrong).unwrap_err().contains("0 to 5000"), "{wrong}");
        }
    }
}
