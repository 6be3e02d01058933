//! One setting with its current and its intended value.

use serde::Serialize;

use super::place::{Place, as_text};

/// A setting of the machine that affects a capture's stamps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Location.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: Place,
    /// Current value; none if the setting does not exist.
    pub now: Option<String>,
    /// Intended value for this capture; none if it does not matter.
    pub wanted: Option<String>,
    /// Effect on the stamps, with its source.
    pub why: &'static str,
    /// Why it is not changed, unless it has the intended value.
    pub obstacle: Option<String>,
}

impl Setting {
    /// A setting at `place` with the value `now`; if it does not exist, `absent` is the reason.
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

    /// Sets the intended value.
    pub(super) fn wanting(self, value: impl Into<String>) -> Self {
        Self { wanted: Some(value.into()), ..self }
    }

    /// Leaves the setting unchanged, because of `reason`.
    pub(super) fn left(self, reason: &str) -> Self {
        Self { wanted: None, obstacle: Some(self.obstacle.unwrap_or(reason.to_owned())), ..self }
    }

    /// Whether it differs from its intended value, and can be changed.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.obstacle.is_none() && self.wanted.is_some() && self.wanted != self.now
    }
}
