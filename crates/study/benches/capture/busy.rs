//! Cores that are busy: on purpose, or with what others do.

use std::fs;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::bed::stay_on;
use crate::statistics::real;

/// A thread that keeps a core busy until it is dropped.
pub(crate) struct Spinner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    pub(crate) fn on(core: usize) -> Self {
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

/// How many cores were busy, on average over the next `window`, by the kernel's count.
pub(crate) fn busy_cores(window: Duration) -> f64 {
    let (begun, before) = (Instant::now(), busy_ticks());
    thread::sleep(window);
    let ticks = real(busy_ticks().saturating_sub(before));
    ticks / real(rustix::param::clock_ticks_per_second()) / begun.elapsed().as_secs_f64()
}

/// Ticks that all cores together were not idle: the first line of `/proc/stat` without its fourth
/// and fifth column, idle and iowait, nor the eighth, stolen by the hypervisor, nor what is behind
/// it, which is counted in the first two already (proc_stat(5)).
fn busy_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let busy = columns.take(7).enumerate().filter(|(column, _)| ![3, 4].contains(column));
    busy.filter_map(|(_, ticks)| ticks.parse::<u64>().ok()).sum()
}
