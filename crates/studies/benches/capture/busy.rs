//! Cores that are busy with what others do.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::statistics::real;

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
