//! Text form of a task: all keys, each optional, and their validation.

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

/// Keys of all kinds of tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TaskSpec {
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

/// Whether intervals divide an hour: archives are by hour, so no interval may cross its end.
fn divides_an_hour(interval: SignedDuration) -> bool {
    let hour = SignedDuration::from_hours(1).as_nanos();
    interval >= SignedDuration::from_secs(1) && hour % interval.as_nanos() == 0
}

fn is_default(schedule: &Schedule) -> bool {
    *schedule == Schedule::default()
}

/// Why a task is not valid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WrongTask {
    /// It cannot be parsed.
    #[error("{0}")]
    Unreadable(String),
    /// The name is missing.
    #[error("cannot read a task: `name` is missing")]
    NoName,
    /// The name is not valid.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// The kind is missing.
    #[error("task {0}: `measure` is missing")]
    NoMeasure(Name),
    /// The kind is unknown.
    #[error(
        "task {task}: `measure` {measure:?} is unknown: expected volume, traffic, passive-delay, \
             active-delay or flows"
    )]
    Measure {
        /// Name of the task.
        task: Name,
        /// Kind.
        measure: String,
    },
    /// A key is missing.
    #[error("task {task}: `{key}` is missing for {measure}")]
    Missing {
        /// Name of the task.
        task: Name,
        /// Kind.
        measure: String,
        /// Key.
        key: &'static str,
    },
    /// A key does not apply to the kind.
    #[error("task {task}: `{key}` is not used for {measure}; remove it")]
    UnusedKey {
        /// Name of the task.
        task: Name,
        /// Kind.
        measure: String,
        /// Key.
        key: &'static str,
    },
    /// A value is not valid.
    #[error("task {task}: `{key}` {why}")]
    Value {
        /// Name of the task.
        task: Name,
        /// Key.
        key: &'static str,
        /// Required value.
        why: String,
    },
    /// A value contradicts the values of other keys.
    #[error("task {task}: `{key}` {why}")]
    Contradiction {
        /// Name of the task.
        task: Name,
        /// Key.
        key: &'static str,
        /// Required value.
        why: String,
    },
}

/// Default and valid rates of an active test, in packets per second.
pub(super) const DEFAULT_RATE: f64 = 10.0;
pub(super) const RATES: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Min and max IP payload of a test packet in bytes: headers of UDP and STAMP (RFC 8762 section 4.2.1), and what an IPv4
/// packet can carry.
pub(super) const MIN_BYTES: u16 = 8 + 44;
/// Min payload in authenticated mode (RFC 8762 section 4.2.2).
pub(super) const MIN_AUTHENTICATED_BYTES: u16 = 8 + 112;
pub(super) const MAX_BYTES: u16 = u16::MAX - 20;

pub(super) const MAX_DSCP: u8 = 63;

impl Task {
    /// Reads a task from a JSON object. Unused keys must be omitted, not null.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn read(mut task: Value) -> Result<Self, WrongTask> {
        // serde would accept lists, with values in order of the keys.
        let schedule = task.get("schedule");
        if ![Some(&task), schedule].into_iter().flatten().all(Value::is_object) {
            return Err(WrongTask::Unreadable(
                "a task and its schedule must be JSON objects".to_owned(),
            ));
        }
        if let Some(key) = null(&task) {
            return Err(WrongTask::Unreadable(format!("`{key}` is null; omit it")));
        }
        task.as_object_mut().into_iter().flatten().for_each(|(_, value)| make_whole(value));
        let spec = TaskSpec::deserialize(task);
        spec.map_err(|why| WrongTask::Unreadable(why.to_string()))?.try_into()
    }
}

/// Converts numbers such as 52.0 to integers: equal in JSON Schema (Core, section 6.3), but not in serde.
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

/// A key with a null value.
fn null(value: &Value) -> Option<&str> {
    let mut keys = value.as_object()?.iter();
    keys.find_map(|(key, value)| if value.is_null() { Some(&**key) } else { null(value) })
}

/// Max plausible clock error.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_hours(1);

impl TryFrom<TaskSpec> for Task {
    type Error = WrongTask;

    fn try_from(mut spec: TaskSpec) -> Result<Self, WrongTask> {
        let task: Name = spec.name.take().ok_or(WrongTask::NoName)?.parse()?;
        let measure = spec.measure.take().ok_or(WrongTask::NoMeasure(task.clone()))?;
        let keys = Keys { task, measure };
        let measure = match &*keys.measure {
            "volume" => Measure::Volume { at: keys.point("at", &mut spec.at)? },
            "traffic" => Measure::Traffic {
                at: keys.point("at", &mut spec.at)?,
                every: spec.interval.take().unwrap_or(SignedDuration::from_secs(1)),
            },
            "passive-delay" if spec.is_foreign() => {
                Measure::ReportedDelay(keys.reported(&mut spec)?)
            }
            "passive-delay" => Measure::PassiveDelay(keys.passive(&mut spec)?),
            "active-delay" => Measure::ActiveDelay(keys.active(&mut spec)?),
            "flows" => Measure::Flows { at: keys.point("at", &mut spec.at)? },
            _ => return Err(WrongTask::Measure { task: keys.task, measure: keys.measure }),
        };
        if let Measure::Traffic { every, .. } = measure
            && !divides_an_hour(every)
        {
            let why = "must be at least a second and divide an hour";
            return Err(keys.contradiction("interval", why));
        }
        let schedule = spec.schedule;
        schedule
            .check()
            .map_err(|why| keys.contradiction("schedule", format!("is not valid: {why}")))?;
        if spec.filter.as_ref().is_some_and(|it| it.contains('\0')) {
            return Err(keys.wrong("filter", "must not contain a zero byte"));
        }
        let is_unfiltered = matches!(measure, Measure::ActiveDelay(_) | Measure::ReportedDelay(_));
        if spec.filter.is_some() && is_unfiltered {
            return Err(keys.unused_key("filter"));
        }
        // Exporters are not controlled by tasks.
        if !is_default(&schedule) && matches!(measure, Measure::ReportedDelay(_)) {
            return Err(keys.unused_key("schedule"));
        }
        let filter = spec.filter.take();
        keys.check_all_used(&spec)?;
        Ok(Self { name: keys.task, measure, filter, schedule })
    }
}

/// Task and kind, for errors.
struct Keys {
    task: Name,
    measure: String,
}

impl TaskSpec {
    /// Whether one of its points is foreign.
    fn is_foreign(&self) -> bool {
        [&self.from, &self.to].into_iter().flatten().any(|it| ForeignPoint::is_meant(it))
    }
}

impl Keys {
    fn reported(&self, spec: &mut TaskSpec) -> Result<ReportedDelay, WrongTask> {
        let from: ForeignPoint = self.parsed("from", &mut spec.from)?;
        let to = self.parsed("to", &mut spec.to)?;
        if from == to {
            return Err(self.contradiction("to", "must differ from `from`"));
        }
        let clock_error = spec.clock_error.take();
        if clock_error.is_some_and(|it| it.is_negative() || it > MAX_CLOCK_ERROR) {
            return Err(self.contradiction("clock_error", "must be 0 s to an hour"));
        }
        Ok(ReportedDelay { from, to, clock_error })
    }

    fn passive(&self, spec: &mut TaskSpec) -> Result<PassiveDelay, WrongTask> {
        let share = spec.share.take().unwrap_or(1.0);
        if !(share > 0.0 && share <= 1.0) {
            return Err(self.wrong("share", "must be above 0 and at most 1"));
        }
        let from = self.point("from", &mut spec.from)?;
        let to = self.point("to", &mut spec.to)?;
        if from == to {
            return Err(self.contradiction("to", "must differ from `from`"));
        }
        Ok(PassiveDelay { from, to, share, codec: self.codec(spec)? })
    }

    fn active(&self, spec: &mut TaskSpec) -> Result<ActiveDelay, WrongTask> {
        let is_authenticated = spec.authenticated.take().unwrap_or_default();
        let min_bytes = if is_authenticated { MIN_AUTHENTICATED_BYTES } else { MIN_BYTES };
        let active = ActiveDelay {
            from: self.parsed("from", &mut spec.from)?,
            to: self.parsed("to", &mut spec.to)?,
            address: spec.address.take(),
            own_port: spec.port.take(),
            rate: spec.rate.take().unwrap_or(DEFAULT_RATE),
            bytes: spec.bytes.take().unwrap_or(min_bytes),
            distribution: spec.distribution.take().unwrap_or_default(),
            dscp: spec.dscp.take().unwrap_or_default(),
            is_authenticated,
            codec: self.codec(spec)?,
        };
        if active.from == active.to {
            return Err(self.contradiction("to", "must differ from `from`"));
        }
        if active.own_port == Some(0) {
            return Err(self.wrong("port", "must be 1 to 65535"));
        }
        if !RATES.contains(&active.rate) {
            let (least, most) = (RATES.start(), RATES.end());
            return Err(self.wrong("rate", format!("must be {least} to {most}")));
        }
        if !(MIN_BYTES..=MAX_BYTES).contains(&active.bytes) {
            return Err(self.wrong("bytes", format!("must be {MIN_BYTES} to {MAX_BYTES}")));
        }
        if active.bytes < min_bytes {
            let why = "if `authenticated` is true: the packets contain an authentication code";
            return Err(self.contradiction("bytes", format!("must be at least {min_bytes} {why}")));
        }
        if active.dscp > MAX_DSCP {
            return Err(self.wrong("dscp", format!("must be 0 to {MAX_DSCP}")));
        }
        Ok(active)
    }

    fn point(&self, key: &'static str, value: &mut Option<String>) -> Result<Point, WrongTask> {
        self.parsed(key, value)
    }

    fn codec(&self, spec: &mut TaskSpec) -> Result<Option<Codec>, WrongTask> {
        let codec = spec.codec.take().map(|it| it.parse());
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

    fn contradiction(&self, key: &'static str, why: impl Into<String>) -> WrongTask {
        WrongTask::Contradiction { task: self.task.clone(), key, why: why.into() }
    }

    /// Fails if a key is left that does not apply to the kind.
    fn check_all_used(&self, spec: &TaskSpec) -> Result<(), WrongTask> {
        let TaskSpec { at, from, to, share, interval, address, rate, bytes, .. } = spec;
        let left = [
            ("at", at.is_some()),
            ("from", from.is_some()),
            ("to", to.is_some()),
            ("share", share.is_some()),
            ("interval", interval.is_some()),
            ("address", address.is_some()),
            ("port", spec.port.is_some()),
            ("rate", rate.is_some()),
            ("bytes", bytes.is_some()),
            ("distribution", spec.distribution.is_some()),
            ("dscp", spec.dscp.is_some()),
            ("authenticated", spec.authenticated.is_some()),
            ("codec", spec.codec.is_some()),
            ("clock_error", spec.clock_error.is_some()),
        ];
        let left = left.into_iter().find(|(_, is_left)| *is_left);
        left.map_or(Ok(()), |(key, _)| Err(self.unused_key(key)))
    }

    fn unused_key(&self, key: &'static str) -> WrongTask {
        let (task, measure) = (self.task.clone(), self.measure.clone());
        WrongTask::UnusedKey { task, measure, key }
    }
}

impl From<Task> for TaskSpec {
    fn from(task: Task) -> Self {
        let Task { name, measure, filter, schedule } = task;
        let (name, known) = (Some(name.to_string()), Some(measure.name().to_owned()));
        let spec = Self { name, measure: known, filter, schedule, ..Self::default() };
        match measure {
            Measure::Volume { at } | Measure::Flows { at } => {
                Self { at: Some(at.to_string()), ..spec }
            }
            Measure::Traffic { at, every } => {
                Self { at: Some(at.to_string()), interval: Some(every), ..spec }
            }
            Measure::PassiveDelay(PassiveDelay { from, to, share, codec }) => Self {
                from: Some(from.to_string()),
                to: Some(to.to_string()),
                share: Some(share),
                codec: codec.map(|it| it.to_string()),
                ..spec
            },
            Measure::ReportedDelay(ReportedDelay { from, to, clock_error }) => {
                Self { from: Some(from.to_string()), to: Some(to.to_string()), clock_error, ..spec }
            }
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
                ..spec
            },
        }
    }
}

#[cfg(test)]
mod tests;
