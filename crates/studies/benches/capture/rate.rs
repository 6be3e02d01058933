//! Rate of frames.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use wirestamp_traffic::live::Pace;

/// Frames a second, of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rate {
    Paced(u64),
    /// As fast as possible.
    Max,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paced(rate) => f.pad(&rate.to_string()),
            Self::Max => f.pad("max"),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let rate = text.parse().map_err(|_| "expected frames a second, such as 200000, or max")?;
        Pace::rate(rate).map_err(|error| error.to_string())?;
        Ok(Self::Paced(rate))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
