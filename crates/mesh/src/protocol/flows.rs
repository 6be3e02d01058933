//! Flow reports of a point, sent from probe to collector.

use prost::Message;
use wirestamp_clock::{Time, Utc};

use crate::v1;

/// Statistics of the flows at an observation point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// JSON objects with the keys of `wirestamp flows --json`. A report with 0 packets means that the packets are now
    /// part of other reports.
    pub reports: Vec<String>,
    /// All flows whose last packet is before this time are in this or earlier messages, except the newest packets of
    /// evicted flows.
    pub complete_until: Time<Utc>,
}

impl Flows {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (reports, complete_until) = (self.reports.clone(), self.complete_until.as_nanos());
        v1::Flows { reports, complete_until }.encode_to_vec()
    }

    /// Decodes a message. The reports are not parsed.
    ///
    /// # Errors
    /// When it is not a valid message.
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
        fn flows_round_trip(reports: Vec<String>, until: i64) {
            let flows = Flows { reports, complete_until: Time::from_nanos(until) };
            prop_assert_eq!(Flows::decode(&flows.encode()), Ok(flows));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            if let Ok(flows) = Flows::decode(&bytes) {
                prop_assert_eq!(Flows::decode(&flows.encode()), Ok(flows));
            }
        }
    }
}
