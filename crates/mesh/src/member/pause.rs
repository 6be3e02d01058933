//! Exponential backoff between calls.

use std::fmt::Display;
use std::time::{Duration, Instant};

use tokio::time;
use tracing::warn;

/// First and max delay.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Growing delays, with one log message for each new error.
pub(crate) struct Pause {
    next: Duration,
    begun: Instant,
    logged: Option<String>,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self { next: MIN_PAUSE, begun: Instant::now(), logged: None }
    }

    /// Waits after a call that should not have ended.
    pub(crate) async fn after<E: Display>(&mut self, ended: Result<(), E>) {
        if self.begun.elapsed() > MAX_PAUSE {
            // The last call lasted for a while.
            *self = Self::new();
        }
        let why = ended.err().map(|error| error.to_string());
        if let Some(why) = why.filter(|why| self.logged.as_ref() != Some(why)) {
            warn!("{why}; retrying");
            self.logged = Some(why);
        }
        time::sleep(self.next).await;
        self.next = (2 * self.next).min(MAX_PAUSE);
        self.begun = Instant::now();
    }
}
