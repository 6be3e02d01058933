//! Windows in a compact form.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::numeric::round_to_span;

use super::{Measured, Spread, Step};
use crate::database::unsigned;

/// Compact form of [`super::Measured`] for overview pages. Unknown and zero values are left out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Brief {
    /// Begin of the window, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Packets seen at both points.
    pub matched: u64,
    /// Packets lost.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub lost: u64,
    /// Mean one-way delay, rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_ns: Option<i64>,
    /// If the delay is not known: its mean above the min of the window, rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_minimum_mean_ns: Option<i64>,
    /// Max error of the delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<i64>,
    /// Whether a negative delay contradicts the stated clock errors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contradicts_the_clocks: bool,
}

impl From<&Measured> for Brief {
    fn from(window: &Measured) -> Self {
        let mean = |it: &Spread| round_to_span(it.mean).as_nanos();
        let above_minimum = window.above_minimum_ns.filter(|_| window.delay_ns.is_none());
        Self {
            begin_ns: window.begin_ns,
            matched: window.counts.matched,
            lost: window.counts.lost,
            delay_mean_ns: window.delay_ns.as_ref().map(mean),
            above_minimum_mean_ns: above_minimum.as_ref().map(mean),
            error_ns: window.error_ns,
            contradicts_the_clocks: window.contradicts_the_clocks,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_nothing(count: &u64) -> bool {
    *count == 0
}

/// The newest windows of a task from a time on, at most `most`, ordered by time.
pub(super) fn newest(
    database: &Connection,
    task: u64,
    from: Time<Utc>,
    most: u32,
) -> rusqlite::Result<Vec<Brief>> {
    let query = "SELECT begin, matched, lost,
                     CAST(ROUND(delay_mean - IIF(not_synchronised IS NULL, 0, delay_min)) AS INTEGER),
                     error, not_synchronised IS NULL, contradicts
                 FROM window WHERE task = ? AND step = ? AND begin >= ?
                 ORDER BY begin DESC LIMIT ?";
    let mut statement = database.prepare_cached(query)?;
    let step = Step::AsMeasured.seconds();
    let values = params![task.cast_signed(), step, from.as_nanos(), most];
    let rows = statement.query_map(values, brief)?;
    let mut newest = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    newest.reverse();
    Ok(newest)
}

fn brief(row: &Row<'_>) -> rusqlite::Result<Brief> {
    let (mean, is_synchronised): (Option<i64>, bool) = (row.get(3)?, row.get(5)?);
    Ok(Brief {
        begin_ns: row.get(0)?,
        matched: unsigned(row, 1)?,
        lost: unsigned(row, 2)?,
        delay_mean_ns: mean.filter(|_| is_synchronised),
        above_minimum_mean_ns: mean.filter(|_| !is_synchronised),
        error_ns: row.get(4)?,
        contradicts_the_clocks: row.get(6)?,
    })
}
