//! Who keeps the machine's clock: asked again and again, because the programs that do may not answer at once, and
//! captures do not wait for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time;
use wirestamp_clock::{Keepers, Statement};

/// How often they are asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// What was said last.
#[derive(Clone)]
pub(super) struct Said(Arc<Mutex<Keepers>>);

impl Said {
    /// Asks for the first time.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Keepers::ask())))
    }

    /// What they said, and what the kernel says now.
    pub(super) fn statements(&self) -> Vec<Statement> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).statements()
    }

    /// Asks for ever.
    pub(super) async fn keep_asking(self) {
        loop {
            time::sleep(INTERVAL).await;
            // One that panicked has told so, and what was said before grows old.
            if let Ok(keepers) = spawn_blocking(Keepers::ask).await {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = keepers;
            }
        }
    }
}
