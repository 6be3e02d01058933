//! One row of the table: a setting, what it is, and what it should be.

use serde::Serialize;

use super::place::{Place, as_text};

/// Something of the machine that a capture's stamps depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// Where it lives.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// What it is; none where it does not exist.
    pub now: Option<String>,
    /// What it should be for this capture; none where it does not matter.
    pub wanted: Option<String>,
    /// What it does to the stamps, and where that is written.
    pub why: &'static str,
    /// Why it is left as it is, where that is not because it is right already.
    pub obstacle: Option<String>,
}

impl Setting {
    /// A setting at `place`, which is `now`; where it does not exist, `absent` says why.
    pub(super) fn new(
        name: impl Into<String>,
        (place, now): (Place, Option<&str>),
        absent: &str,
        why: &'static str,
    ) -> Self {
        let obstacle = now.is_none().then(|| absent.to_owned());
        let now = now.map(str::to_owned);
        Self { name: name.into(), place, now, wanted: None, why, obstacle }
    }

    /// It should be `value`.
    pub(super) fn wanting(self, value: impl Into<String>) -> Self {
        Self { wanted: Some(value.into()), ..self }
    }

    /// It stays as it is, because of `reason`.
    pub(super) fn left(self, reason: &str) -> Self {
        Self { wanted: None, obstacle: Some(self.obstacle.unwrap_or(reason.to_owned())), ..self }
    }

    /// Whether it is not what it should be, and can be changed.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.obstacle.is_none() && self.wanted.is_some() && self.wanted != self.now
    }
}
