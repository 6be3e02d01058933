//! CPU load of other processes, in cores.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::statistics::real;

/// Mean number of busy cores during the next `window`, by the kernel's count.
pub(crate) fn busy_cores(window: Duration) -> f64 {
    let (begun, before) = (Instant::now(), busy_ticks());
    thread::sleep(window);
    let ticks = real(busy_ticks().saturating_sub(before));
    ticks / real(rustix::param::clock_ticks_per_second()) / begun.elapsed().as_secs_f64()
}

/// Busy ticks of all cores together: the first line of `/proc/stat` without columns 4 (idle), 5 (iowait) and
/// 8 (steal), and without the later columns, which the first two already include (proc_stat(5)).
fn busy_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let busy = columns.take(7).enumerate().filter(|(column, _)| ![3, 4].contains(column));
    busy.filter_map(|(_, ticks)| ticks.parse::<u64>().ok()).sum()
}
