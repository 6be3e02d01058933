//! Helpers of the benchmarks: description of the machine, the system's clocks, and quantiles.

use std::fs;
use std::process::Command;

use wirestamp_clock::Counter;
use wirestamp_sys::clock::ClockId;

/// Date, kernel, CPU and clocks of the machine, in one line.
pub(crate) fn machine(counter: Counter) -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let date = Command::new("date").arg("--iso-8601=seconds").output();
    let date = date.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}; Linux {}; {}; clock source {}; counter {}; {cores} cores",
        date.unwrap_or_else(|_| "date unknown".to_owned()),
        text("/proc/sys/kernel/osrelease"),
        model.trim_start_matches([' ', '\t', ':']),
        text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        counter.name(),
    )
}

/// A clock of the system, in nanoseconds.
#[inline(always)]
pub(crate) fn clock_ns(clock: ClockId) -> i64 {
    wirestamp_sys::clock::now(clock)
}

/// The value below which `part` of the sorted values lie.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index among some thousands"
)]
pub(crate) fn quantile<T: Copy>(sorted: &[T], part: f64) -> T {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
