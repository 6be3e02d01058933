//! Troubles of a carrier, for the reports to the controller.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ChannelName;
use crate::v1::Trouble;

/// How long a trouble is reported after it was seen last: a delivery that has ended does not see its end.
const LIFETIME: Duration = Duration::from_secs(120);

/// Why batches of channels are not delivered.
#[derive(Debug, Default)]
pub struct CarrierTroubles(Mutex<BTreeMap<ChannelName, (String, Instant)>>);

impl CarrierTroubles {
    /// Notes a trouble of a channel.
    #[cfg(feature = "kafka")]
    pub(super) fn set(&self, name: ChannelName, why: String) {
        self.0.lock().insert(name, (why, Instant::now()));
    }

    /// The channel has no trouble.
    #[cfg(feature = "kafka")]
    pub(super) fn clear(&self, name: ChannelName) {
        self.0.lock().remove(&name);
    }

    /// The current troubles.
    pub(super) fn current(&self) -> Vec<Trouble> {
        let mut troubles = self.0.lock();
        troubles.retain(|_, (_, at)| at.elapsed() < LIFETIME);
        let trouble = |(name, (why, _)): (&ChannelName, &(String, Instant))| Trouble {
            task: name.task,
            why: why.clone(),
        };
        troubles.iter().map(trouble).collect()
    }
}
