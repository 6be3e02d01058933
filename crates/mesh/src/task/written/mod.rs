//! A task as it is written: any key may be there or not.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use jiff::SignedDuration;
use jiff::fmt::serde::duration::friendly::compact as duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use wirestamp_metrics::emodel::{Codec, UnknownCodec};

use super::measure::{ActiveDelay, Distribution, Measure, PassiveDelay, ReportedDelay};
use super::{ForeignPoint, Point, Schedule, Task};
use crate::{Name, NotAName};

/// The keys of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Written {
    name: Option<String>,
    measure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    interval: Option<SignedDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dscp: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authenticated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "duration::optional")]
    clock_error: Option<SignedDuration>,
    #[serde(skip_serializing_if = "is_default")]
    schedule: Schedule,
}

/// Hours are archived when they are over: no interval may reach from one into the next.
fn is_part_of_an_hour(interval: SignedDuration) -> bool {
    let hour = SignedDuration::from_hours(1).as_nanos();
    interval >= SignedDuration::from_secs(1) && hour % interval.as_nanos() == 0
}

fn is_default(schedule: &Schedule) -> bool {
    *schedule == Schedule::default()
}

/// Why a task makes no sense.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WrongTask {
    /// It is not written as a task is.
    #[error("{0}")]
    Unreadable(String),
    /// It has no name.
    #[error("a task needs `name`")]
    Nameless,
    /// It has no good name.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// It does not say what it measures.
    #[error("task {0}: it needs `measure`")]
    Measureless(Name),
    /// It measures something unknown.
    #[error(
        "task {task}: {measure:?} is nothing to measure: there are volume, traffic, passive-delay, \
             active-delay and flows"
    )]
    Measure {
        /// Its name.
        task: Name,
        /// What it says.
        measure: String,
    },
    /// It lacks a key.
    #[error("task {task}: {measure} needs `{key}`")]
    Missing {
        /// Its name.
        task: Name,
        /// What it measures.
        measure: String,
        /// The key.
        key: &'static str,
    },
    /// It has a key that says nothing there.
    #[error("task {task}: `{key}` means nothing for {measure}")]
    Meaningless {
        /// Its name.
        task: Name,
        /// What it measures.
        measure: String,
        /// The key.
        key: &'static str,
    },
    /// A key cannot have the value that it has, whatever the others have.
    #[error("task {task}: `{key}` {why}")]
    Value {
        /// Its name.
        task: Name,
        /// The key.
        key: &'static str,
        /// What it has to be.
        why: String,
    },
    /// A key has a value that it can have, and cannot have here.
    #[error("task {task}: `{key}` {why}")]
    Senseless {
        /// Its name.
        task: Name,
        /// The key.
        key: &'static str,
        /// What it has to be.
        why: String,
    },
}

/// Packets a second of an active test, if nothing else is said, and what can be said.
pub(super) const RATE: f64 = 10.0;
pub(super) const RATES: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Bytes above IP of a test packet: UDP's header and STAMP's (RFC 8762 section 4.2.1) at the least, and what
/// an IPv4 packet can carry.
pub(super) const BYTES: u16 = 8 + 44;
/// The least where it carries a code: the fields are laid out for that (RFC 8762 section 4.2.2).
pub(super) const AUTHENTICATED_BYTES: u16 = 8 + 112;
pub(super) const MOST_BYTES: u16 = u16::MAX - 20;

pub(super) const MOST_DSCP: u8 = 63;

impl Task {
    /// Reads a task that a program has sent: an object, and another as its schedule, if it has one. No key is
    /// null: one that says nothing is left out.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(mut task: Value) -> Result<Self, WrongTask> {
        // Of a list serde takes what comes first for the first key.
        let schedule = task.get("schedule");
        if ![Some(&task), schedule].into_iter().flatten().all(Value::is_object) {
            return Err(WrongTask::Unreadable(
                "a task is an object, and its schedule too".to_owned(),
            ));
        }
        if let Some(key) = null(&task) {
            return Err(WrongTask::Unreadable(format!("`{key}` is null: it can be left out")));
        }
        task.as_object_mut().into_iter().flatten().for_each(|(_, value)| make_whole(value));
        let written = Written::deserialize(task);
        written.map_err(|why| WrongTask::Unreadable(why.to_string()))?.try_into()
    }
}

/// JSON has one kind of numbers, so that 52.0 is as whole as 52 (JSON Schema Core, section 6.3); for serde it is not.
fn make_whole(value: &mut Value) {
    let real = value.as_f64().filter(|it| it.fract() == 0.0);
    if let Some(real) = real.filter(|it| (0.0..=f64::from(u32::MAX)).contains(it)) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole and in range"
        )]
        let whole = real as u32;
        *value = whole.into();
    }
}

/// A key that is null.
fn null(value: &Value) -> Option<&str> {
    let mut keys = value.as_object()?.iter();
    keys.find_map(|(key, value)| if value.is_null() { Some(&**key) } else { null(value) })
}

/// Beyond that nobody would speak of a bound.
const MOST_CLOCK_ERROR: SignedDuration = SignedDuration::from_hours(1);

impl TryFrom<Written> for Task {
    type Error = WrongTask;

    fn try_from(mut written: Written) -> Result<Self, WrongTask> {
        let task: Name = written.name.take().ok_or(WrongTask::Nameless)?.parse()?;
        let measure = written.measure.take().ok_or(WrongTask::Measureless(task.clone()))?;
        let keys = Keys { task, measure };
        let measure = match &*keys.measure {
            "volume" => Measure::Volume { at: keys.point("at", &mut written.at)? },
            "traffic" => Measure::Traffic {
                at: keys.point("at", &mut written.at)?,
                every: written.interval.take().unwrap_or(SignedDuration::from_secs(1)),
            },
            "passive-delay" if written.is_foreign() => {
                Measure::ReportedDelay(keys.reported(&mut written)?)
            }
            "passive-delay" => Measure::PassiveDelay(keys.passive(&mut written)?),
            "active-delay" => Measure::ActiveDelay(keys.active(&mut written)?),
            "flows" => Measure::Flows { at: keys.point("at", &mut written.at)? },
            _ => return Err(WrongTask::Measure { task: keys.task, measure: keys.measure }),
        };
        if let Measure::Traffic { every, .. } = measure
            && !is_part_of_an_hour(every)
        {
            let why = "has to be a second at the least, and a whole part of an hour";
            return Err(keys.senseless("interval", why));
        }
        let schedule = written.schedule;
        schedule
            .check()
            .map_err(|why| keys.senseless("schedule", format!("cannot be kept: {why}")))?;
        if written.filter.as_ref().is_some_and(|it| it.contains('\0')) {
            return Err(keys.wrong("filter", "has a zero byte in it"));
        }
        let is_unfiltered = matches!(measure, Measure::ActiveDelay(_) | Measure::ReportedDelay(_));
        if written.filter.is_some() && is_unfiltered {
            return Err(keys.meaningless("filter"));
        }
        // Exporters report what they report.
        if !is_default(&schedule) && matches!(measure, Measure::ReportedDelay(_)) {
            return Err(keys.meaningless("schedule"));
        }
        let filter = written.filter.take();
        keys.nothing_left(&written)?;
        Ok(Self { name: keys.task, measure, filter, schedule })
    }
}

/// What is looked at, for errors.
struct Keys {
    task: Name,
    measure: String,
}

impl Written {
    /// Whether other programs are to report what passes one of its points.
    fn is_foreign(&self) -> bool {
        [&self.from, &self.to].into_iter().flatten().any(|it| ForeignPoint::is_meant(it))
    }
}

impl Keys {
    fn reported(&self, written: &mut Written) -> Result<ReportedDelay, WrongTask> {
        let from: ForeignPoint = self.parsed("from", &mut written.from)?;
        let to = self.parsed("to", &mut written.to)?;
        if from == to {
            return Err(self.senseless("to", "has to be another point than `from`"));
        }
        let clock_error = written.clock_error.take();
        if clock_error.is_some_and(|it| it.is_negative() || it > MOST_CLOCK_ERROR) {
            return Err(self.senseless("clock_error", "has to be 0 s to an hour"));
        }
        Ok(ReportedDelay { from, to, clock_error })
    }

    fn passive(&self, written: &mut Written) -> Result<PassiveDelay, WrongTask> {
        let share = written.share.take().unwrap_or(1.0);
        if !(share > 0.0 && share <= 1.0) {
            return Err(self.wrong("share", "has to be above 0 and 1 at the most"));
        }
        let from = self.point("from", &mut written.from)?;
        let to = self.point("to", &mut written.to)?;
        if from == to {
            return Err(self.senseless("to", "has to be another point than `from`"));
        }
        Ok(PassiveDelay { from, to, share, codec: self.codec(written)? })
    }

    fn active(&self, written: &mut Written) -> Result<ActiveDelay, WrongTask> {
        let is_authenticated = written.authenticated.take().unwrap_or_default();
        let least_bytes = if is_authenticated { AUTHENTICATED_BYTES } else { BYTES };
        let active = ActiveDelay {
            from: self.parsed("from", &mut written.from)?,
            to: self.parsed("to", &mut written.to)?,
            address: written.address.take(),
            own_port: written.port.take(),
            rate: written.rate.take().unwrap_or(RATE),
            bytes: written.bytes.take().unwrap_or(least_bytes),
            distribution: written.distribution.take().unwrap_or_default(),
            dscp: written.dscp.take().unwrap_or_default(),
            is_authenticated,
            codec: self.codec(written)?,
        };
        if active.from == active.to {
            return Err(self.senseless("to", "has to be another end than `from`"));
        }
        if active.own_port == Some(0) {
            return Err(self.wrong("port", "has to be 1 to 65535"));
        }
        if !RATES.contains(&active.rate) {
            let (least, most) = (RATES.start(), RATES.end());
            return Err(self.wrong("rate", format!("has to be {least} to {most}")));
        }
        if !(BYTES..=MOST_BYTES).contains(&active.bytes) {
            return Err(self.wrong("bytes", format!("has to be {BYTES} to {MOST_BYTES}")));
        }
        if active.bytes < least_bytes {
            let why =
                "at the least where `authenticated` is true: with their code packets are longer";
            return Err(self.senseless("bytes", format!("has to be {least_bytes} {why}")));
        }
        if active.dscp > MOST_DSCP {
            return Err(self.wrong("dscp", format!("has to be 0 to {MOST_DSCP}")));
        }
        Ok(active)
    }

    fn point(&self, key: &'static str, value: &mut Option<String>) -> Result<Point, WrongTask> {
        self.parsed(key, value)
    }

    fn codec(&self, written: &mut Written) -> Result<Option<Codec>, WrongTask> {
        let codec = written.codec.take().map(|it| it.parse());
        codec
            .transpose()
            .map_err(|why: UnknownCodec| self.wrong("codec", format!("is unknown: {why}")))
    }

    fn parsed<T: std::str::FromStr<Err: ToString>>(
        &self,
        key: &'static str,
        value: &mut Option<String>,
    ) -> Result<T, WrongTask> {
        let missing =
            || WrongTask::Missing { task: self.task.clone(), measure: self.measure.clone(), key };
        let value = value.take().ok_or_else(missing)?;
        value.parse().map_err(|why: T::Err| self.wrong(key, why.to_string()))
    }

    fn wrong(&self, key: &'static str, why: impl Into<String>) -> WrongTask {
        WrongTask::Value { task: self.task.clone(), key, why: why.into() }
    }

    fn senseless(&self, key: &'static str, why: impl Into<String>) -> WrongTask {
        WrongTask::Senseless { task: self.task.clone(), key, why: why.into() }
    }

    /// That no key is left, because each that means something was taken.
    fn nothing_left(&self, written: &Written) -> Result<(), WrongTask> {
        let Written { at, from, to, share, interval, address, rate, bytes, .. } = written;
        let left = [
            ("at", at.is_some()),
            ("from", from.is_some()),
            ("to", to.is_some()),
            ("share", share.is_some()),
            ("interval", interval.is_some()),
            ("address", address.is_some()),
            ("port", written.port.is_some()),
            ("rate", rate.is_some()),
            ("bytes", bytes.is_some()),
            ("distribution", written.distribution.is_some()),
            ("dscp", written.dscp.is_some()),
            ("authenticated", written.authenticated.is_some()),
            ("codec", written.codec.is_some()),
            ("clock_error", written.clock_error.is_some()),
        ];
        let left = left.into_iter().find(|(_, is_left)| *is_left);
        left.map_or(Ok(()), |(key, _)| Err(self.meaningless(key)))
    }

    fn meaningless(&self, key: &'static str) -> WrongTask {
        let (task, measure) = (self.task.clone(), self.measure.clone());
        WrongTask::Meaningless { task, measure, key }
    }
}

impl From<Task> for Written {
    fn from(task: Task) -> Self {
        let Task { name, measure, filter, schedule } = task;
        let (name, known) = (Some(name.to_string()), Some(measure.name().to_owned()));
        let written = Self { name, measure: known, filter, schedule, ..Self::default() };
        match measure {
            Measure::Volume { at } | Measure::Flows { at } => {
                Self { at: Some(at.to_string()), ..written }
            }
            Measure::Traffic { at, every } => {
                Self { at: Some(at.to_string()), interval: Some(every), ..written }
            }
            Measure::PassiveDelay(PassiveDelay { from, to, share, codec }) => Self {
                from: Some(from.to_string()),
                to: Some(to.to_string()),
                share: Some(share),
                codec: codec.map(|it| it.to_string()),
                ..written
            },
            Measure::ReportedDelay(ReportedDelay { from, to, clock_error }) => Self {
                from: Some(from.to_string()),
                to: Some(to.to_string()),
                clock_error,
                ..written
            },
            Measure::ActiveDelay(active) => Self {
                from: Some(active.from.to_string()),
                to: Some(active.to.to_string()),
                address: active.address,
                port: active.own_port,
                rate: Some(active.rate),
                bytes: Some(active.bytes),
                distribution: Some(active.distribution),
                dscp: Some(active.dscp),
                authenticated: Some(active.is_authenticated),
                codec: active.codec.map(|it| it.to_string()),
                ..written
            },
        }
    }
}

#[cfg(test)]
mod tests;
