//! Numbers on the command line.

use std::str::FromStr;

/// A whole number that is not 0.
pub(crate) fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    match text.parse() {
        Ok(number) if number >= T::from(1) => Ok(number),
        _ if text.parse::<u128>().is_ok_and(|number| number > 0) => Err("this is too large".into()),
        _ => Err("expected a whole number, at least 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_one_and_beyond_the_type_are_refused_in_words() {
        assert_eq!(at_least_one("1"), Ok(1_u32));
        for below in ["0", "-1", "1.5", "", "x"] {
            assert!(at_least_one::<u64>(below).is_err_and(|said| said.contains("at least 1")));
        }
        assert!(at_least_one::<u32>("4294967296").is_err_and(|said| said.contains("too large")));
    }
}
