//! End of a task's results.

use jiff::{SignedDuration, Timestamp};
use wirestamp_clock::{Time, Utc};

use crate::task::{TaskRecord, Window};

/// Max time to wait for undelivered batches of an ended task. Later batches are still accepted.
const DELIVERY_TIMEOUT: SignedDuration = SignedDuration::from_hours(24);

/// Probes may stop to observe shortly before the scheduled end.
const SLACK: SignedDuration = SignedDuration::from_millis(900);

/// Earliest time of further results of a task with this settled time: the settled time itself, or after a pause of the
/// schedule; never for a task that has ended.
pub(super) fn next_results(
    entered: &TaskRecord,
    settled_until: Time<Utc>,
    now: Timestamp,
) -> Time<Utc> {
    let never = Time::from_nanos(i64::MAX);
    if entered.ended.is_some_and(|ended| is_delivered(ended, settled_until, now)) {
        return never;
    }
    let settled = with_slack(settled_until);
    // A settled time before the task's creation comes from a slow probe clock. It is not a pause of the schedule.
    match entered.task.schedule.at(settled.max(entered.made), entered.made) {
        Window::Open { .. } => settled_until,
        Window::Waiting { until } if entered.ended.is_some_and(|ended| until >= ended) => never,
        Window::Waiting { until } => {
            i64::try_from(until.as_nanosecond()).map_or(never, Time::from_nanos)
        }
        Window::Over => never,
    }
}

/// Whether a task that ended has no further results, or they are no longer waited for, given its settled time.
pub(crate) fn is_delivered(ended: Timestamp, settled_until: Time<Utc>, now: Timestamp) -> bool {
    with_slack(settled_until) >= ended || now.duration_since(ended) >= DELIVERY_TIMEOUT
}

/// The latest scheduled end of an observation that is delivered up to this time.
fn with_slack(settled_until: Time<Utc>) -> Timestamp {
    let settled = Timestamp::from_nanosecond(settled_until.as_nanos().into());
    settled.and_then(|it| it.checked_add(SLACK)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A task created at 1000.
    fn task(schedule: &str, ended: Option<i64>) -> TaskRecord {
        let text = format!(r#"{{"name":"v","measure":"flows","at":"a/eth0"{schedule}}}"#);
        let task = serde_json::from_str(&text).unwrap();
        TaskRecord { task, made: at(1000), ended: ended.map(at) }
    }

    /// Second of the earliest further results, if any.
    fn next_results_at(entered: &TaskRecord, settled: i64, now: i64) -> Option<i64> {
        let since = next_results(entered, Time::from_nanos(settled * 1_000_000_000), at(now));
        (since < Time::from_nanos(i64::MAX)).then(|| since.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn task_continues_until_ended_and_delivered() {
        assert_eq!(next_results_at(&task("", None), 2000, 999_999), Some(2000));
        assert_eq!(next_results_at(&task("", None), 900, 999_999), Some(900));
        let ended = task("", Some(3000));
        assert_eq!(next_results_at(&ended, 2999, 3100), Some(2999));
        assert_eq!(next_results_at(&ended, 3000, 3100), None);
        assert_eq!(next_results_at(&ended, 2990, 3000 + 86_399), Some(2990));
        assert_eq!(next_results_at(&ended, 2990, 3000 + 86_400), None);
    }

    #[test]
    fn pauses_of_schedule_have_no_results() {
        let schedule = r#","schedule":{"every":"1h","for":"10m","until":"1970-01-01T02:00:00Z"}"#;
        let again = task(schedule, None);
        assert_eq!(next_results_at(&again, 1500, 9999), Some(1500));
        assert_eq!(next_results_at(&again, 1600, 9999), Some(4600));
        assert_eq!(next_results_at(&again, 5200, 9999), None);
        // The task was ended in a pause.
        let ended = task(schedule, Some(4000));
        assert_eq!(next_results_at(&ended, 1500, 4001), Some(1500));
        assert_eq!(next_results_at(&ended, 1600, 4001), None);
    }
}
