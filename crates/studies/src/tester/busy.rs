//! Cores that are kept busy.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::bed::stay_on;

/// A thread that keeps a core busy until it is dropped.
#[derive(Debug)]
pub struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// One on `core`; it does nothing if this process may not use that.
    #[must_use]
    pub fn on(core: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let spin = move || {
            if stay_on(core).is_ok() {
                while !stopped.load(Ordering::Relaxed) {
                    spin_loop();
                }
            }
        };
        Self { stop, thread: Some(thread::spawn(spin)) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
