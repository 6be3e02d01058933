//! What a probe has found of the flows at a point, as it goes to the collector.

use prost::Message;
use wirestamp_clock::{Time, Utc};

use crate::v1;

/// Flows at one observation point, as they have fared so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// Each an object of JSON with the keys of a flow of `wirestamp flows --json`. One without packets (0) says that
    /// what was told of it before is in others.
    pub reports: Vec<String>,
    /// Each flow whose latest packet passed before this time is in these reports or in earlier ones, but for what came
    /// last of flows that were let go for want of room.
    pub complete_until: Time<Utc>,
}

impl Flows {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (reports, complete_until) = (self.reports.clone(), self.complete_until.as_nanos());
        v1::Flows { reports, complete_until }.encode_to_vec()
    }

    /// What a message says. What is in the reports is not looked at.
    ///
    /// # Errors
    /// When it is no message of protocol buffers.
    pub fn decode(message: &[u8]) -> Result<Self, prost::DecodeError> {
        let v1::Flows { reports, complete_until } = v1::Flows::decode(message)?;
        Ok(Self { reports, complete_until: Time::from_nanos(complete_until) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_found_is_read_as_it_was_written(reports: Vec<String>, until: i64) {
            let flows = Flows { reports, complete_until: Time::from_nanos(until) };
            prop_assert_eq!(Flows::decode(&flows.encode()), Ok(flows));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(flows) = Flows::decode(&bytes) {
                prop_assert_eq!(Flows::decode(&flows.encode()), Ok(flows));
            }
        }
    }
}
