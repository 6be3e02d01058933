//! Troubles of a carrier, for the reports to the controller.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ChannelName;
use crate::member::Logged;

/// How long a trouble is reported after it was seen last: a delivery that has ended does not see its end.
const LIFETIME: Duration = Duration::from_secs(120);

/// Why batches of channels are not delivered.
#[derive(Debug, Default)]
pub struct CarrierTroubles {
    current: Mutex<BTreeMap<ChannelName, (String, Instant)>>,
    logged: Logged,
}

impl CarrierTroubles {
    /// The errors that were logged: those of all deliveries, because they often have the same cause.
    pub(super) fn logged(&self) -> &Logged {
        &self.logged
    }

    /// Notes a trouble of a channel.
    #[cfg(feature = "kafka")]
    pub(super) fn set(&self, name: ChannelName, why: String) {
        self.current.lock().insert(name, (why, Instant::now()));
    }

    /// The channel has no trouble.
    #[cfg(feature = "kafka")]
    pub(super) fn clear(&self, name: ChannelName) {
        self.current.lock().remove(&name);
    }

    /// The current troubles: why the batches of which task are not delivered.
    pub fn current(&self) -> Vec<(u64, String)> {
        let mut troubles = self.current.lock();
        troubles.retain(|_, (_, at)| at.elapsed() < LIFETIME);
        troubles.iter().map(|(name, (why, _))| (name.task, why.clone())).collect()
    }
}
