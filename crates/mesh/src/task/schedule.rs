//! When a task runs.

use jiff::fmt::serde::duration::friendly::compact as duration;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// When a task runs: from when it was made until it is removed, if nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Once, for so long; with `every`, so long each time.
    #[serde(rename = "for", default)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    pub lasting: Option<SignedDuration>,
    /// Again and again at this distance.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    pub every: Option<SignedDuration>,
    /// Not from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Why a schedule cannot be kept.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WrongSchedule {
    /// A time that is too short.
    #[error("`for` and `every` are a second at the least")]
    Short,
    /// What repeats has to end each time.
    #[error("`every` needs `for`: how long it lasts each time")]
    Endless,
    /// What repeats would overlap with itself.
    #[error("`for` is longer than `every`; without both it runs all the time")]
    Overlapping,
    /// It ends before it begins.
    #[error("`until` is not after `start`")]
    Backwards,
}

/// What a schedule says at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The task runs.
    Open {
        /// Since when it should.
        since: Timestamp,
        /// Until when, if it ends.
        until: Option<Timestamp>,
    },
    /// It waits.
    Waiting {
        /// For this time.
        until: Timestamp,
    },
    /// It will never run again.
    Over,
}

const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

impl Schedule {
    /// Looks whether it can be kept.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(&self) -> Result<(), WrongSchedule> {
        if self.lasting.into_iter().chain(self.every).any(|it| it < SHORTEST) {
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

    /// What it says now of a task that was made at a time.
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

/// The newest of the times at this distance from a start that is not after now.
fn newest(start: Timestamp, every: SignedDuration, now: Timestamp) -> Timestamp {
    let nanos = start.as_nanosecond();
    let (passed, every) = (now.as_nanosecond() - nanos, every.as_nanos().max(1));
    Timestamp::from_nanosecond(nanos + passed - passed.rem_euclid(every)).unwrap_or(start)
}

/// A time later by so much, or the last that there is.
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
    fn without_a_word_it_runs_all_the_time() {
        let open = Window::Open { since: at(100), until: None };
        assert_eq!(Schedule::default().at(at(100), at(100)), open);
        assert_eq!(Schedule::default().at(at(9_000_000), at(100)), open);
    }

    #[test]
    fn once_again_and_until() {
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
    fn it_is_written_as_people_write_it() {
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
    fn what_cannot_be_kept_is_refused() {
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
        fn what_it_says_holds_until_the_time_that_it_names(
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
