//! Measured and known values, side by side in a table.

use std::fmt::Write as _;

use wirestamp_report::Check;

use crate::table::table;

/// A table of comparisons; the HTML report explains the source of each known value.
pub(crate) fn checks(checks: &[Check]) -> String {
    let rows: Vec<_> = checks.iter().map(row).collect();
    table(&["is this true?", "measured", "known", ""], &rows)
}

fn row(check: &Check) -> Vec<String> {
    let mut verdict = if check.holds { "yes" } else { "NO" }.to_owned();
    if let Some(most) = check.within_percent {
        let _ = write!(verdict, ", {} {most} %", if check.holds { "within" } else { "not within" });
    }
    vec![check.what.clone(), check.measured.clone(), check.truth.clone(), verdict]
}
