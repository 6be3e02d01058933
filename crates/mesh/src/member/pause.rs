//! Exponential backoff between calls.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time;
use tracing::warn;

/// First and max delay.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// An error that was not seen for this long is logged again.
const LOGGED: Duration = Duration::from_secs(120);

/// Growing delays, with one log message for each new error.
pub(crate) struct Pause {
    next: Duration,
    begun: Instant,
    logged: Logged,
}

/// Errors that were logged, and when each was last seen. Calls that fail for the same reason share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logged(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Pause {
    pub(crate) fn new() -> Self {
        Self::sharing(&Logged::default())
    }

    /// Delays of a call whose errors other calls have, too.
    pub(crate) fn sharing(logged: &Logged) -> Self {
        Self { next: MIN_PAUSE, begun: Instant::now(), logged: logged.clone() }
    }

    /// Begins with the shortest delay again.
    pub(crate) fn reset(&mut self) {
        (self.next, self.begun) = (MIN_PAUSE, Instant::now());
    }

    /// Waits after a call that should not have ended.
    pub(crate) async fn after<E: Display>(&mut self, ended: Result<(), E>) {
        if self.begun.elapsed() > MAX_PAUSE {
            // The last call lasted for a while.
            self.next = MIN_PAUSE;
        }
        if let Err(error) = ended {
            let why = error.to_string();
            if self.logged.is_new(&why, Instant::now()) {
                warn!("{why}; retrying");
            }
        }
        time::sleep(self.next).await;
        self.next = (2 * self.next).min(MAX_PAUSE);
        self.begun = Instant::now();
    }
}

impl Logged {
    /// Whether an error was not seen for a while. It is, from now on.
    pub(crate) fn is_new(&self, why: &str, now: Instant) -> bool {
        let mut logged = self.0.lock();
        logged.retain(|_, at| now.duration_since(*at) < LOGGED);
        logged.insert(why.to_owned(), now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_several_calls_is_new_once() {
        let (logged, now) = (Logged::default(), Instant::now());
        let (one, other) = (Pause::sharing(&logged), Pause::sharing(&logged));
        assert!(one.logged.is_new("x", now) && !other.logged.is_new("x", now + LOGGED / 2));
        assert!(other.logged.is_new("y", now) && !one.logged.is_new("x", now + LOGGED));
        assert!(one.logged.is_new("x", now + 2 * LOGGED));
    }
}
