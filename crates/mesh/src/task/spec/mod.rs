//! Text form of a task, an object with the keys of its kind ([`KINDS`]), and its validation.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use wirestamp_capture::Filter;

use super::measure::{
    ActiveDelay, MAX_BYTES, MAX_DSCP, MIN_AUTHENTICATED_BYTES, MIN_BYTES, Measure, RATES,
    ReportedDelay, SHARDS,
};
use super::schema::{KINDS, Kind};
use super::{ForeignPoint, Schedule, Task};
use crate::{Name, NotAName};

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

/// Valid schedules, in words.
const SCHEDULE_FORM: &str = "expected `start` and `until` with times such as 2026-11-26T08:00:00Z, `for` and `every` with \
                             durations such as 90s, 10m, 24h or 7d, and no other keys";

/// Max length of a filter.
const MAX_FILTER_BYTES: usize = 4096;

/// Max plausible clock error.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_hours(1);

impl Task {
    /// Reads a task from a JSON object. Unused keys must be omitted, not null.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn read(mut task: Value) -> Result<Self, WrongTask> {
        if let Some(key) = null(&task) {
            return Err(WrongTask::Unreadable(format!("`{key}` is null; omit it")));
        }
        task.as_object_mut().into_iter().flatten().for_each(|(_, value)| make_whole(value));
        let task: Self = task.try_into()?;
        task.check_filter()?;
        Ok(task)
    }

    /// Checks the filter of a new task: probes would report it later.
    pub(super) fn check_filter(&self) -> Result<(), WrongTask> {
        let Some(filter) = &self.filter else { return Ok(()) };
        let wrong = |why| WrongTask::Contradiction { task: self.name.clone(), key: "filter", why };
        if filter.len() > MAX_FILTER_BYTES {
            return Err(wrong(format!("must have at most {MAX_FILTER_BYTES} bytes")));
        }
        Filter::compile(filter).map(drop).map_err(|why| wrong(format!("is not valid: {why}")))
    }
}

/// Converts numbers such as 52.0 to integers: equal in JSON Schema (Core, section 6.3), but not in serde.
pub(crate) fn make_whole(value: &mut Value) {
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

impl TryFrom<Value> for Task {
    type Error = WrongTask;

    fn try_from(task: Value) -> Result<Self, WrongTask> {
        let Value::Object(mut keys) = task else { return Err(not_an_object()) };
        // serde would accept a list, with values in order of the keys.
        if keys.get("schedule").is_some_and(|schedule| !schedule.is_object()) {
            return Err(not_an_object());
        }
        let name: String = take(&mut keys, "name")?.ok_or(WrongTask::NoName)?;
        let name: Name = name.parse()?;
        let measure: Option<String> = take(&mut keys, "measure")?;
        let measure = measure.ok_or(WrongTask::NoMeasure(name.clone()))?;
        let reader = Reader::new(name, measure, &keys)?;
        let filter: Option<String> = take(&mut keys, "filter")?;
        let schedule = take(&mut keys, "schedule")?.unwrap_or_default();
        let measure = reader.measure(keys)?;
        reader.check(&measure, filter.as_deref(), &schedule)?;
        Ok(Self { name: reader.task, measure, filter, schedule, shard: 0 })
    }
}

fn not_an_object() -> WrongTask {
    WrongTask::Unreadable("a task and its schedule must be JSON objects".to_owned())
}

/// The value of a key, if there is one.
fn take<T: for<'de> Deserialize<'de>>(
    keys: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, WrongTask> {
    let value = keys.remove(key).map(serde_json::from_value).transpose();
    value.map_err(|why: serde_json::Error| {
        // The messages of the library are for its users.
        let why = if key == "schedule" { SCHEDULE_FORM.to_owned() } else { why.to_string() };
        WrongTask::Unreadable(format!("`{key}`: {why}"))
    })
}

/// Reads the keys of a task whose name and kind are known.
struct Reader {
    task: Name,
    kind: &'static Kind,
}

impl Reader {
    /// Fails if a key is missing or does not apply to the kind.
    fn new(task: Name, measure: String, keys: &Map<String, Value>) -> Result<Self, WrongTask> {
        let is_foreign = ["from", "to"].into_iter().filter_map(|key| keys.get(key)?.as_str());
        let is_foreign = is_foreign.into_iter().any(ForeignPoint::is_meant);
        let kinds = || KINDS.iter().filter(|kind| kind.measure == measure);
        let kind = kinds().find(|kind| kind.is_foreign == is_foreign).or_else(|| kinds().next());
        let Some(kind) = kind else { return Err(WrongTask::Measure { task, measure }) };
        if let Some(key) = kind.required.iter().find(|key| !keys.contains_key(**key)) {
            return Err(WrongTask::Missing { task, measure, key });
        }
        let is_unused = |key: &&String| !kind.keys().any(|known| known == **key);
        if let Some(unused) = keys.keys().find(is_unused) {
            let known = KINDS.iter().flat_map(Kind::keys).find(|known| known == unused);
            return Err(match known {
                Some(key) => WrongTask::UnusedKey { task, measure, key },
                None => WrongTask::Unreadable(format!("unknown field `{unused}`")),
            });
        }
        Ok(Self { task, kind })
    }

    /// The measurement of the keys of its kind.
    fn measure(&self, mut keys: Map<String, Value>) -> Result<Measure, WrongTask> {
        let kind = if self.kind.is_foreign { "reported-delay" } else { self.kind.measure };
        let is_authenticated = keys.get("authenticated") == Some(&Value::Bool(true));
        if kind == "active-delay" {
            let least = if is_authenticated { MIN_AUTHENTICATED_BYTES } else { MIN_BYTES };
            keys.entry("bytes").or_insert(least.into());
        }
        let measure = Value::Object(Map::from_iter([(kind.to_owned(), keys.into())]));
        serde_path_to_error::deserialize(measure).map_err(|error| {
            let path = error.path().to_string();
            let key = self.kind.keys().find(|key| path.ends_with(&format!(".{key}")));
            let why = error.into_inner().to_string();
            match key {
                Some("address") => self.wrong("address", "must be an IP address"),
                Some("codec") => self.wrong("codec", format!("is unknown: {why}")),
                Some(key) => self.wrong(key, why),
                None => WrongTask::Unreadable(why),
            }
        })
    }

    /// Fails if a value is out of its range, or contradicts others.
    fn check(
        &self,
        measure: &Measure,
        filter: Option<&str>,
        schedule: &Schedule,
    ) -> Result<(), WrongTask> {
        let same_ends = || self.contradiction("to", "must differ from `from`");
        match measure {
            Measure::Volume { .. } | Measure::Flows { .. } => (),
            Measure::Traffic { every, .. } if divides_an_hour(*every) => (),
            Measure::Traffic { .. } => {
                let why = "must be at least a second and divide an hour";
                return Err(self.contradiction("interval", why));
            }
            Measure::PassiveDelay(passive) if !(passive.share > 0.0 && passive.share <= 1.0) => {
                return Err(self.wrong("share", "must be above 0 and at most 1"));
            }
            Measure::PassiveDelay(passive) if passive.from == passive.to => {
                return Err(same_ends());
            }
            Measure::PassiveDelay(passive) if !SHARDS.contains(&passive.shards) => {
                let (least, most) = (SHARDS.start(), SHARDS.end());
                return Err(self.wrong("shards", format!("must be {least} to {most}")));
            }
            Measure::PassiveDelay(_) => (),
            Measure::ReportedDelay(ReportedDelay { from, to, .. }) if from == to => {
                return Err(same_ends());
            }
            Measure::ReportedDelay(ReportedDelay { clock_error, .. }) => {
                if clock_error.is_some_and(|it| it.is_negative() || it > MAX_CLOCK_ERROR) {
                    return Err(self.contradiction("clock_error", "must be 0 s to an hour"));
                }
            }
            Measure::ActiveDelay(active) if active.from == active.to => return Err(same_ends()),
            Measure::ActiveDelay(active) => self.check_active(active)?,
        }
        schedule
            .check()
            .map_err(|why| self.contradiction("schedule", format!("is not valid: {why}")))?;
        if filter.is_some_and(|it| it.contains('\0')) {
            return Err(self.wrong("filter", "must not contain a zero byte"));
        }
        Ok(())
    }

    fn check_active(&self, active: &ActiveDelay) -> Result<(), WrongTask> {
        let min_bytes = if active.is_authenticated { MIN_AUTHENTICATED_BYTES } else { MIN_BYTES };
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
        Ok(())
    }

    fn wrong(&self, key: &'static str, why: impl Into<String>) -> WrongTask {
        WrongTask::Value { task: self.task.clone(), key, why: why.into() }
    }

    fn contradiction(&self, key: &'static str, why: impl Into<String>) -> WrongTask {
        WrongTask::Contradiction { task: self.task.clone(), key, why: why.into() }
    }
}

/// Whether intervals divide an hour: archives are by hour, so no interval may cross its end.
fn divides_an_hour(interval: SignedDuration) -> bool {
    let hour = SignedDuration::from_hours(1).as_nanos();
    interval >= SignedDuration::from_secs(1) && hour % interval.as_nanos() == 0
}

/// Text form of a task: the common keys and the keys of its kind in one object. The kind is the value of `measure`.
#[derive(Serialize)]
pub(super) struct TaskText {
    name: Name,
    measure: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    schedule: Schedule,
    #[serde(flatten)]
    keys: Value,
}

fn is_default(schedule: &Schedule) -> bool {
    *schedule == Schedule::default()
}

impl From<Task> for TaskText {
    fn from(Task { name, measure, filter, schedule, shard: _ }: Task) -> Self {
        let kind = measure.name();
        let mut keys = serde_json::to_value(measure).unwrap_or_default();
        Self { name, measure: kind.to_owned(), filter, schedule, keys: keys[kind].take() }
    }
}

#[cfg(test)]
mod tests;
