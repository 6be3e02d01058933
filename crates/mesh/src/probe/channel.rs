//! Names of the spool's channels.

use std::fmt;
use std::str::FromStr;

/// A point of a task, written as `TASK/POINT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelName {
    /// Task number.
    pub task: u64,
    /// Point of the task: 0 for the first or only one, 1 for the second.
    pub point: u32,
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.task, self.point)
    }
}

impl FromStr for ChannelName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (task, point) = text.split_once('/').ok_or(())?;
        let (task, point) = (task.parse().map_err(drop)?, point.parse().map_err(drop)?);
        Ok(Self { task, point })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn channel_name_round_trips(task: u64, point: u32, text: String) {
            let name = ChannelName { task, point };
            prop_assert_eq!(name.to_string().parse(), Ok(name));
            // Parsing must not panic.
            let _ = text.parse::<ChannelName>();
        }
    }
}
