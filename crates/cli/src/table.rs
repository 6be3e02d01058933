//! Text tables: the first column left-aligned, the others right-aligned.

use std::fmt::Write as _;

use wirestamp_metrics::Quality;
use wirestamp_report::Check;

use crate::output::{mean, percent, time};

/// Formats rows under a header; each column is as wide as its widest cell.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, (cell, &width)) in cells.zip(&widths).enumerate() {
            if column == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&mut header.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// The table of the columns that fit into `width` characters, and the names of the others. Columns without any value leave
/// first, then those of `dispensable` in that order. The first column, and those not in `dispensable`, stay.
pub(crate) fn fitting<'a>(
    header: &[&'a str],
    rows: &[Vec<String>],
    width: usize,
    dispensable: &[&str],
) -> (String, Vec<&'a str>) {
    let has_no_value = |name: &str| {
        let column = header.iter().position(|it| *it == name);
        column
            .is_some_and(|column| rows.iter().all(|row| row.get(column).is_none_or(|it| it == "-")))
    };
    let (mut leaving, valued): (Vec<_>, Vec<_>) =
        dispensable.iter().copied().partition(|name| has_no_value(name));
    leaving.extend(valued);
    let mut leaving = leaving.into_iter();
    let (mut header, mut rows, mut left_out) = (header.to_vec(), rows.to_vec(), Vec::new());
    loop {
        let text = table(&header, &rows);
        if text.lines().all(|line| line.chars().count() <= width) {
            return (text, left_out);
        }
        let Some(name) = leaving.next() else { return (text, left_out) };
        let Some(column) = header.iter().position(|it| *it == name) else { continue };
        left_out.push(header.remove(column));
        rows.iter_mut().filter(|row| column < row.len()).for_each(|row| drop(row.remove(column)));
    }
}

/// A table of comparisons; the HTML report explains the source of each known value.
pub(crate) fn checks(checks: &[Check]) -> String {
    let rows: Vec<_> = checks.iter().map(check_row).collect();
    table(&["is this true?", "measured", "known", ""], &rows)
}

fn check_row(check: &Check) -> Vec<String> {
    let mut verdict = if check.holds { "yes" } else { "NO" }.to_owned();
    if let Some(most) = check.within_percent {
        let _ = write!(verdict, ", {} {most} %", if check.holds { "within" } else { "not within" });
    }
    vec![check.what.clone(), check.measured.clone(), check.truth.clone(), verdict]
}

/// The columns of [`quality_row`].
pub(crate) const QUALITY_HEADER: [&str; 9] =
    ["", "sent", "lost", "reordered", "duplicates", "mean delay", "p99", "IPDV p99", "clock error"];

/// One row: counts, one-way delay, delay variation (IPDV), and the bound of the clock error.
pub(crate) fn quality_row(
    name: String,
    quality: &Quality,
    clock_error_ns: Option<i64>,
) -> Vec<String> {
    let counts = quality.counts();
    let none = || "-".to_owned();
    let delay = quality.delay().summary();
    let variation = quality.variation().summary();
    vec![
        name,
        counts.sent.to_string(),
        format!("{} ({})", counts.lost, percent(counts.lost, counts.sent)),
        counts.reordered.to_string(),
        counts.duplicated.to_string(),
        delay.map_or_else(none, |delay| mean(delay.mean)),
        delay.map_or_else(none, |delay| time(delay.p99)),
        variation.map_or_else(none, |variation| time(variation.p99)),
        clock_error_ns.map_or_else(|| "unknown".into(), |error| format!("±{}", time(error))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_until_the_table_fits() {
        let cells = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [cells(["one > two", "-", "12", "4.41"]), cells(["three", "-", "7", "-"])];
        let header = ["flow", "late", "packets", "MOS"];
        let fitted = |width| fitting(&header, &rows, width, &["packets", "late"]);
        assert_eq!(fitted(80), (table(&header, &rows), vec![]));
        let (text, left_out) = fitted(25);
        assert_eq!(
            (&*text, left_out),
            (
                "flow       packets   MOS\none > two       12  4.41\nthree            7     -\n",
                vec!["late"]
            )
        );
        assert_eq!(fitted(20).1, ["late", "packets"]);
        // Nothing more can leave.
        assert_eq!(fitted(3), fitted(20));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["call".into(), "5 µs".into()], vec!["a video".into(), "1.37 ms".into()]];
        assert_eq!(
            table(&["", "delay"], &rows),
            "           delay\ncall        5 µs\na video  1.37 ms\n"
        );
    }
}
