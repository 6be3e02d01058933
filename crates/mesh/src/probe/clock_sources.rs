//! Periodic query of the clock sources, in a task separate from the captures, because daemons may answer late.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio::time;
use wirestamp_clock::{ClockSources, SyncStatus};

const QUERY_INTERVAL: Duration = Duration::from_secs(1);

/// Clock sources as last queried, shared between tasks.
#[derive(Clone)]
pub(super) struct SharedClockSources(Arc<Mutex<ClockSources>>);

impl SharedClockSources {
    /// Queries the clock sources once.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(ClockSources::query())))
    }

    /// Last statuses of the daemons, and the kernel's current status.
    pub(super) fn statuses(&self) -> Vec<SyncStatus> {
        self.0.lock().statuses()
    }

    /// Queries the clock sources once per second; never returns.
    pub(super) async fn query_periodically(self) {
        loop {
            time::sleep(QUERY_INTERVAL).await;
            // After a panic, which is logged, the old statuses stay and their errors grow.
            if let Ok(sources) = spawn_blocking(ClockSources::query).await {
                *self.0.lock() = sources;
            }
        }
    }
}
