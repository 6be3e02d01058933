//! The sides of a call.

use serde::Serialize;

/// A side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CallSide {
    /// Sender of the first INVITE.
    Caller,
    /// Receiver of the first INVITE.
    Callee,
}

impl CallSide {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Caller => Self::Callee,
            Self::Callee => Self::Caller,
        }
    }
}
