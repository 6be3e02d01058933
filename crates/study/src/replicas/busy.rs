//! Cores that are kept busy on purpose.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_setaffinity};

/// A thread that keeps a core busy until it is dropped.
pub(super) struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// Competes on `core` with whatever else runs there, at ordinary priority.
    pub(super) fn on(core: usize) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let spin = move || {
            if stay_on(Some(core)).is_ok() {
                while !stopped.load(Ordering::Relaxed) {
                    spin_loop();
                }
            }
        };
        let thread = thread::Builder::new().name("ws-busy".into()).spawn(spin)?;
        Ok(Self { stop, thread: Some(thread) })
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

/// Keeps the calling thread on a core, if one is given.
pub(super) fn stay_on(core: Option<usize>) -> io::Result<()> {
    let Some(core) = core else { return Ok(()) };
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}
