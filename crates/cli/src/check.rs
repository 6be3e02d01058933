//! Comparisons with the truth, as a table.

use std::fmt::Write as _;

use wirestamp_report::Check;

use crate::table::table;

/// What was compared; a report says how the truth is known.
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
