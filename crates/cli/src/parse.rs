//! Parsers of argument values: counts, seconds and times with a unit.

use std::str::FromStr;

use wirestamp_clock::Span;

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

/// Parses a duration in seconds: above 0 and below a year.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds < YEAR => Ok(seconds),
        Ok(seconds) if seconds >= YEAR => Err("expected less than 31536000 seconds, a year".into()),
        _ => Err("expected a number of seconds above 0, such as 2.5".into()),
    }
}

/// Parses `20ms`, `50us`, `1500ns`, `2s`.
pub(crate) fn interval(text: &str) -> Result<Span, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err("expected a whole number and a unit, such as 20ms, 50us or 1500ns".into()),
    };
    let number = number.parse::<i64>().map_err(|_| "expected a whole number before the unit")?;
    number.checked_mul(scale).map(Span::from_nanos).ok_or_else(|| "the time is too long".into())
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
    fn an_interval_has_a_unit() {
        assert_eq!(interval("20ms"), Ok(Span::from_millis(20)));
        assert_eq!(interval("1367992ns"), Ok(Span::from_nanos(1_367_992)));
        assert!(interval("20").is_err());
        assert!(interval("ms").is_err());
        assert!(interval("99999999999s").is_err());
    }
}
