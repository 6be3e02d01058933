//! Parsers of numbers on the command line.

use std::str::FromStr;

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
}
