//! Waits between calls.

use std::fmt::Display;
use std::time::{Duration, Instant};

use tokio::time;
use tracing::warn;

/// How long a node waits before it calls again, at first and at the most.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that grow, and one word about each reason for them.
pub(crate) struct Pause {
    next: Duration,
    begun: Instant,
    told: Option<String>,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self { next: FIRST, begun: Instant::now(), told: None }
    }

    /// Waits after something has ended that should not have.
    pub(crate) async fn after<E: Display>(&mut self, ended: Result<(), E>) {
        if self.begun.elapsed() > LONGEST {
            // It went well for a while.
            *self = Self::new();
        }
        let why = ended.err().map(|error| error.to_string());
        if let Some(why) = why.filter(|why| self.told.as_ref() != Some(why)) {
            warn!("{why}; tries again");
            self.told = Some(why);
        }
        time::sleep(self.next).await;
        self.next = (2 * self.next).min(LONGEST);
        self.begun = Instant::now();
    }
}
