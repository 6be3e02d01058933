//! Schedules of tasks.

use jiff::fmt::serde::duration::friendly::compact as duration;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// When a task runs; by default from its creation until it is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Duration; with `every`, of each repetition.
    #[serde(rename = "for", default, deserialize_with = "read_duration")]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    pub lasting: Option<SignedDuration>,
    /// Repetition interval.
    #[serde(default, deserialize_with = "read_duration")]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    pub every: Option<SignedDuration>,
    /// End.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Why a schedule is not valid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WrongSchedule {
    /// A duration is too short.
    #[error("`for` and `every` must be at least a second")]
    Short,
    /// A repetition has no duration.
    #[error("`every` requires `for`: the duration of each repetition")]
    Endless,
    /// Repetitions would overlap.
    #[error("`for` must not be longer than `every`; omit both to run all the time")]
    Overlapping,
    /// The end is not after the begin.
    #[error("`until` must be after `start`")]
    Backwards,
}

/// State of a schedule at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The task runs.
    Open {
        /// Begin of this run.
        since: Timestamp,
        /// End of this run, if any.
        until: Option<Timestamp>,
    },
    /// The task waits for its next run.
    Waiting {
        /// Begin of the next run.
        until: Timestamp,
    },
    /// The task never runs again.
    Over,
}

const MIN_LENGTH: SignedDuration = SignedDuration::from_secs(1);

impl Schedule {
    /// Checks that the schedule is valid.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<(), WrongSchedule> {
        if self.lasting.into_iter().chain(self.every).any(|it| it < MIN_LENGTH) {
            return Err(WrongSchedule::Short);
        }
        match (self.every, self.lasting) {
            (Some(_), None) => return Err(WrongSchedule::Endless),
            (Some(every), Some(lasting)) if every < lasting => {
                return Err(WrongSchedule::Overlapping);
            }
            _ => {}
        }
        match (self.start, self.until) {
            (Some(start), Some(until)) if until <= start => Err(WrongSchedule::Backwards),
            _ => Ok(()),
        }
    }

    /// State at `now` of a task created at `made`.
    #[must_use]
    pub fn at(&self, now: Timestamp, made: Timestamp) -> Window {
        let start = self.start.unwrap_or(made);
        if self.until.is_some_and(|until| until <= now.max(start)) {
            return Window::Over;
        }
        if now < start {
            return Window::Waiting { until: start };
        }
        let since = self.every.map_or(start, |every| newest(start, every, now));
        let ends = self.lasting.map(|lasting| later(since, lasting));
        let until = ends.into_iter().chain(self.until).min();
        if until.is_none_or(|until| now < until) {
            return Window::Open { since, until };
        }
        match self.every.map(|every| later(since, every)) {
            Some(next) if self.until.is_none_or(|until| next < until) => {
                Window::Waiting { until: next }
            }
            _ => Window::Over,
        }
    }
}

/// Reads a duration such as `90s`, `1h 30m` or `7d`. A day has 24 hours.
fn read_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SignedDuration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let span = text.parse::<Span>();
    let duration = span.and_then(|it| it.to_duration(SpanRelativeTo::days_are_24_hours()));
    let wrong =
        |_| D::Error::custom(format!("{text:?} is not a duration such as 90s, 10m, 24h or 7d"));
    duration.map(Some).map_err(wrong)
}

/// The last multiple of `every` after `start` that is not after `now`.
fn newest(start: Timestamp, every: SignedDuration, now: Timestamp) -> Timestamp {
    let nanos = start.as_nanosecond();
    let (passed, every) = (now.as_nanosecond() - nanos, every.as_nanos().max(1));
    Timestamp::from_nanosecond(nanos + passed - passed.rem_euclid(every)).unwrap_or(start)
}

/// `time + by`, limited to the last representable time.
fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn durations_may_have_days_and_errors_name_the_form() {
        let read = |text: &str| serde_json::from_str::<Schedule>(text);
        let daily = read(r#"{"every":"1d","for":"90s"}"#).unwrap();
        assert_eq!((daily.every, daily.lasting), (Some(seconds(86_400)), Some(seconds(90))));
        assert_eq!(read(&serde_json::to_string(&daily).unwrap()).unwrap(), daily);
        for wrong in ["1 month", "soon", "7"] {
            let error = read(&format!(r#"{{"every":"{wrong}"}}"#)).unwrap_err().to_string();
            assert!(error.contains("is not a duration such as 90s"), "{error}");
        }
    }

    #[test]
    fn default_schedule_runs_all_the_time() {
        let open = Window::Open { since: at(100), until: None };
        assert_eq!(Schedule::default().at(at(100), at(100)), open);
        assert_eq!(Schedule::default().at(at(9_000_000), at(100)), open);
    }

    #[test]
    fn runs_once_repeatedly_and_until_a_time() {
        let once = Schedule { lasting: Some(seconds(60)), ..Schedule::default() };
        assert_eq!(
            once.at(at(159), at(100)),
            Window::Open { since: at(100), until: Some(at(160)) }
        );
        assert_eq!(once.at(at(160), at(100)), Window::Over);
        let again = Schedule {
            start: Some(at(1000)),
            every: Some(seconds(600)),
            until: Some(at(2230)),
            ..once
        };
        assert_eq!(again.at(at(0), at(0)), Window::Waiting { until: at(1000) });
        let second = Window::Open { since: at(1600), until: Some(at(1660)) };
        assert_eq!(again.at(at(1600), at(0)), second);
        assert_eq!(again.at(at(1660), at(0)), Window::Waiting { until: at(2200) });
        let last = Window::Open { since: at(2200), until: Some(at(2230)) };
        assert_eq!(again.at(at(2229), at(0)), last);
        assert_eq!(again.at(at(2230), at(0)), Window::Over);
    }

    #[test]
    fn text_form_round_trips() {
        let text = r#"{"start":"2026-11-22T00:00:00Z","for":"10m","every":"1h 30m"}"#;
        let schedule: Schedule = serde_json::from_str(text).unwrap();
        assert_eq!(schedule.lasting, Some(seconds(600)));
        assert_eq!(schedule.every, Some(seconds(5400)));
        let again = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&again).unwrap(), schedule);
        assert_eq!(serde_json::to_string(&Schedule::default()).unwrap(), "{}");
        assert!(serde_json::from_str::<Schedule>(r#"{"evry":"1h"}"#).is_err());
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        let some =
            |start: Option<i64>, lasting: Option<i64>, every: Option<i64>, until: Option<i64>| {
                let schedule = Schedule {
                    start: start.map(at),
                    lasting: lasting.map(seconds),
                    every: every.map(seconds),
                    until: until.map(at),
                };
                schedule.check()
            };
        assert_eq!(some(Some(1), Some(60), Some(60), Some(2)), Ok(()));
        assert_eq!(some(None, Some(0), None, None), Err(WrongSchedule::Short));
        assert_eq!(some(None, None, Some(60), None), Err(WrongSchedule::Endless));
        assert_eq!(some(None, Some(61), Some(60), None), Err(WrongSchedule::Overlapping));
        assert_eq!(some(Some(2), None, None, Some(2)), Err(WrongSchedule::Backwards));
    }

    proptest! {
        #[test]
        fn state_holds_until_its_stated_time(
            start: Option<i32>, lasting in prop::option::of(1..10_000_000i64),
            rest in prop::option::of(0..10_000_000i64), until: Option<i32>, now: i32, made: i32,
        ) {
            let every = rest.zip(lasting).map(|(rest, lasting)| seconds(rest + lasting));
            let time = |it: Option<i32>| it.map(|it| at(it.into()));
            let lasting = lasting.map(seconds);
            let schedule = Schedule { start: time(start), lasting, every, until: time(until) };
            let (now, made) = (at(now.into()), at(made.into()));
            let (before, moment) = (|it: Timestamp| it - seconds(1), |it| schedule.at(it, made));
            match moment(now) {
                Window::Open { since, until } => {
                    prop_assert!(since <= now && until.is_none_or(|it| now < it));
                    prop_assert_eq!(moment(since), moment(now));
                    if let Some(until) = until {
                        prop_assert_eq!(moment(before(until)), moment(now));
                        prop_assert_ne!(moment(until), moment(now));
                    }
                }
                Window::Waiting { until } => {
                    prop_assert!(now < until);
                    prop_assert_eq!(moment(before(until)), moment(now));
                    let is_open = matches!(moment(until), Window::Open { since, .. } if since == until);
                    prop_assert!(is_open);
                }
                Window::Over => prop_assert_eq!(moment(now + seconds(1)), Window::Over),
            }
        }
    }
}
