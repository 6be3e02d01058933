//! When nothing more can come of what a task measures.

use jiff::{SignedDuration, Timestamp};
use wirestamp_clock::{Time, Utc};

use crate::task::{TaskRecord, Window};

/// Nobody waits longer for what probes hold of a task that was ended. If it comes all the same, it is not lost.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);

/// Who stops to look may have told until a moment before.
const SLACK: SignedDuration = SignedDuration::from_millis(900);

/// Since when something can come of a task of which everything before a time is settled: since then, but for the pauses
/// of its schedule, and nothing any more if it was ended.
pub(super) fn goes_on(entered: &TaskRecord, settled_until: Time<Utc>, now: Timestamp) -> Time<Utc> {
    let never = Time::from_nanos(i64::MAX);
    let settled = Timestamp::from_nanosecond(settled_until.as_nanos().into());
    let settled = settled.and_then(|it| it.checked_add(SLACK)).unwrap_or(Timestamp::MAX);
    let is_over = |ended: Timestamp| settled >= ended || now.duration_since(ended) >= PATIENCE;
    if entered.ended.is_some_and(is_over) {
        return never;
    }
    // A probe's clock that is behind is no pause before the task was made.
    match entered.task.schedule.at(settled.max(entered.made), entered.made) {
        Window::Open { .. } => settled_until,
        Window::Waiting { until } if entered.ended.is_some_and(|ended| until >= ended) => never,
        Window::Waiting { until } => {
            i64::try_from(until.as_nanosecond()).map_or(never, Time::from_nanos)
        }
        Window::Over => never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A task that is made at 1000.
    fn task(schedule: &str, ended: Option<i64>) -> TaskRecord {
        let text = format!(r#"{{"name":"v","measure":"flows","at":"a/eth0"{schedule}}}"#);
        let task = serde_json::from_str(&text).unwrap();
        TaskRecord { task, made: at(1000), ended: ended.map(at) }
    }

    /// Since which second something can come, if it can.
    fn goes_on_at(entered: &TaskRecord, settled: i64, now: i64) -> Option<i64> {
        let since = goes_on(entered, Time::from_nanos(settled * 1_000_000_000), at(now));
        (since < Time::from_nanos(i64::MAX)).then(|| since.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn a_task_goes_on_until_it_is_ended_and_all_has_come_or_nothing_did_for_long() {
        assert_eq!(goes_on_at(&task("", None), 2000, 999_999), Some(2000));
        assert_eq!(goes_on_at(&task("", None), 900, 999_999), Some(900));
        let ended = task("", Some(3000));
        assert_eq!(goes_on_at(&ended, 2999, 3100), Some(2999));
        assert_eq!(goes_on_at(&ended, 3000, 3100), None);
        assert_eq!(goes_on_at(&ended, 2990, 3000 + 86_399), Some(2990));
        assert_eq!(goes_on_at(&ended, 2990, 3000 + 86_400), None);
    }

    #[test]
    fn nothing_comes_of_the_pauses_of_a_schedule() {
        let schedule = r#","schedule":{"every":"1h","for":"10m","until":"1970-01-01T02:00:00Z"}"#;
        let again = task(schedule, None);
        assert_eq!(goes_on_at(&again, 1500, 9999), Some(1500));
        assert_eq!(goes_on_at(&again, 1600, 9999), Some(4600));
        assert_eq!(goes_on_at(&again, 5200, 9999), None);
        // It was ended in a pause.
        let ended = task(schedule, Some(4000));
        assert_eq!(goes_on_at(&ended, 1500, 4001), Some(1500));
        assert_eq!(goes_on_at(&ended, 1600, 4001), None);
    }
}
