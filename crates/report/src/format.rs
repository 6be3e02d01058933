//! Text form of numbers in reports.

pub use wirestamp_metrics::numeric::{count_to_f64 as real, nanos_to_f64 as approximate};

/// Narrow no-break space between groups of digits, and between a number and its unit.
pub const THIN_SPACE: char = '\u{202f}';

/// Shown where there is no value.
pub const NOTHING: &str = "\u{2013}";

/// The units of a duration, largest first, with their length in nanoseconds.
const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];

/// The unit in which a duration of `ns` nanoseconds is written, and its length in nanoseconds.
pub fn unit(ns: f64) -> (&'static str, f64) {
    let fits = |&&(_, length): &&(&str, f64)| ns.abs() >= length;
    UNITS.iter().find(fits).copied().unwrap_or(("ns", 1.0))
}

/// A duration in nanoseconds to three significant digits, in the unit that suits its size.
pub fn duration(ns: f64) -> String {
    if !ns.is_finite() {
        return NOTHING.to_owned();
    }
    // 999.7 ns is 1.00 µs: the unit is chosen after rounding to the digits that are shown.
    let (name, length) = unit(ns * (1.0 + 0.0005));
    format!("{}{THIN_SPACE}{name}", significant(ns / length))
}

/// As [`duration`], of a whole number of nanoseconds: below a microsecond it is exact.
pub fn nanos(ns: i64) -> String {
    if ns.unsigned_abs() < 1000 {
        format!("{}{THIN_SPACE}ns", signed(&ns.to_string()))
    } else {
        duration(approximate(ns))
    }
}

/// A duration in microseconds with a resolution of a nanosecond, without its unit: for rows of tables.
pub fn micros(ns: f64) -> String {
    if ns.is_finite() { signed(&format!("{:.3}", ns / 1e3)) } else { NOTHING.to_owned() }
}

/// A count with its digits in groups of three.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A number with as many decimals as it has.
pub fn number(value: f64) -> String {
    if value.is_finite() { signed(&value.to_string()) } else { NOTHING.to_owned() }
}

/// `part` of `whole` in percent, with three significant digits. Only a share of zero is written as 0 %, and only the
/// whole as 100 %. [`NOTHING`] if `whole` is zero.
pub fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * real(part) / real(whole);
    let number = match part {
        _ if whole == 0 => return NOTHING.to_owned(),
        0 => "0".to_owned(),
        _ if part == whole => "100".to_owned(),
        _ if share < 0.001 => "<0.001".to_owned(),
        _ if share > 99.9 && part < whole => ">99.9".to_owned(),
        _ => significant(share),
    };
    format!("{number}{THIN_SPACE}%")
}

/// `one` or `many`, with the count before it.
pub fn plural(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Text of a value, or [`NOTHING`] where there is none.
pub fn optional<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), text)
}

/// A length as a count.
pub fn length<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// Three significant digits, or all digits before the point where there are more.
fn significant(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 => 0,
        _ if size < 0.09995 => 4,
        _ if size < 0.9995 => 3,
        _ if size < 9.995 => 2,
        _ if size < 99.95 => 1,
        _ => 0,
    };
    signed(&format!("{value:.decimals$}"))
}

/// A number in decimal with a true minus sign and its integer digits grouped.
pub(crate) fn signed(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("\u{2212}", digits),
        None => ("", number),
    };
    let (whole, fraction) = digits.find('.').map_or((digits, ""), |point| digits.split_at(point));
    format!("{sign}{}{fraction}", grouped(whole))
}

/// ASCII digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(THIN_SPACE);
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(THIN_SPACE, " ").replace('\u{2212}', "-")
    }

    #[test]
    fn durations_take_the_unit_of_their_size() {
        let cases = [
            (0.0, "0 ns"),
            (0.25, "0.250 ns"),
            (45.3, "45.3 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (999_600.0, "1.00 ms"),
            (1_234_567.0, "1.23 ms"),
            (20e6, "20.0 ms"),
            (999.6e6, "1.00 s"),
            (3.6e12, "3 600 s"),
            (-1_500.0, "-1.50 µs"),
            (f64::NAN, "\u{2013}"),
            (f64::NEG_INFINITY, "\u{2013}"),
        ];
        for (ns, text) in cases {
            assert_eq!(plain(&duration(ns)), text, "{ns}");
        }
    }

    #[test]
    fn whole_nanoseconds_are_exact_below_a_microsecond() {
        for (ns, text) in [(0, "0 ns"), (7, "7 ns"), (-999, "-999 ns"), (1000, "1.00 µs")] {
            assert_eq!(plain(&nanos(ns)), text, "{ns}");
        }
        assert_eq!(plain(&nanos(i64::MIN)), "-9 223 372 037 s");
    }

    #[test]
    fn microseconds_show_the_nanosecond() {
        for (ns, text) in [(0.0, "0.000"), (-1_270_123.0, "-1 270.123"), (f64::NAN, "\u{2013}")] {
            assert_eq!(plain(&micros(ns)), text, "{ns}");
        }
    }

    #[test]
    fn counts_are_grouped_by_three_digits() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(plain(&count(value)), text);
        }
        assert_eq!(plain(&count(u64::MAX)), "18 446 744 073 709 551 615");
    }

    #[test]
    fn numbers_keep_their_decimals() {
        for (value, text) in [(61_934.0, "61 934"), (-0.25, "-0.25"), (f64::NAN, "\u{2013}")] {
            assert_eq!(plain(&number(value)), text);
        }
    }

    #[test]
    fn a_share_is_neither_nothing_nor_everything_unless_it_is() {
        let cases = [
            (0, 0, "\u{2013}"),
            (3, 0, "\u{2013}"),
            (0, 10, "0 %"),
            (10, 10, "100 %"),
            (1, 3, "33.3 %"),
            (1, 1_000, "0.100 %"),
            (1, 10_000_000, "<0.001 %"),
            (9_999_999, 10_000_000, ">99.9 %"),
            (3, 2, "150 %"),
        ];
        for (part, whole, text) in cases {
            assert_eq!(plain(&percent(part, whole)), text, "{part}/{whole}");
        }
    }
}
