//! CPU time of a thread, and the time that it took.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wirestamp_report::format::real;

/// CPU time of a piece of work on one thread, and its wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuUse {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

impl CpuUse {
    /// Does the work on this thread. The CPU time of other threads that it starts is not included.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (begun, before) = (Instant::now(), cpu_time());
        let result = work();
        let cpu = cpu_time().saturating_sub(before);
        (result, Self { cpu, wall: begun.elapsed() })
    }
}

/// CPU time of this thread since it began.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// CPU load in percent of a core, from CPU time and wall time in nanoseconds; none for no time.
pub(crate) fn load_percent(cpu_ns: u64, wall_ns: u64) -> Option<f64> {
    (wall_ns > 0).then(|| 100.0 * real(cpu_ns) / real(wall_ns))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn sleep_takes_wall_time_and_no_cpu_time() {
        let ((), sleeping) = CpuUse::of(|| thread::sleep(Duration::from_millis(20)));
        assert!(sleeping.wall >= Duration::from_millis(20) && sleeping.cpu < sleeping.wall / 2);
        let (sum, busy) = CpuUse::of(|| (0..100_000_u64).map(std::hint::black_box).sum::<u64>());
        assert!(sum > 0 && busy.cpu > Duration::ZERO);
        assert_eq!(load_percent(1, 4), Some(25.0));
        assert_eq!(load_percent(1, 0), None);
    }
}
