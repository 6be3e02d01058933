//! The machine of the probe: its clock and resource usage.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::protocol::MachineClock;
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};
use wirestamp_active::{ClockState, KernelClock, SystemClock};
use wirestamp_clock::{Span, Time, Utc, utc_error};

use super::clock_sources::SharedClockSources;

/// How long the kernel's clock error is reused. It grows by 500 ppm (RFC 1589 section 3.3): 50 us in this time.
const ERROR_LIFETIME: Duration = Duration::from_millis(100);

/// Random number of this boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The machine and its clock.
#[derive(Clone)]
pub(super) struct Machine {
    clock: MachineClock,
    asked: Option<Instant>,
    clock_sources: SharedClockSources,
}

impl Machine {
    /// This machine.
    pub(super) fn new() -> io::Result<Self> {
        let text = fs::read_to_string(BOOT_ID)?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let machine = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
        let clock = MachineClock { machine: machine.to_be_bytes(), error: None };
        Ok(Self { clock, asked: None, clock_sources: SharedClockSources::new() })
    }

    /// Its clock sources.
    pub(super) fn clock_sources(&self) -> &SharedClockSources {
        &self.clock_sources
    }

    /// Its clock, with the current error.
    pub(super) fn clock(&mut self) -> MachineClock {
        if self.asked.is_none_or(|asked| asked.elapsed() > ERROR_LIFETIME) {
            self.clock.error = utc_error(&self.clock_sources.statuses()).ok();
            self.asked = Some(Instant::now());
        }
        self.clock
    }
}

/// The machine's clock as stated in test packets.
pub(super) struct TestClock {
    kernel: KernelClock,
    machine: Machine,
}

impl TestClock {
    pub(super) fn new(machine: Machine) -> Self {
        Self { kernel: KernelClock::default(), machine }
    }
}

impl SystemClock for TestClock {
    fn now(&self) -> Time<Utc> {
        self.kernel.now()
    }

    fn state(&mut self) -> ClockState {
        let ClockState { tai, .. } = self.kernel.state();
        let error = self.machine.clock().error;
        ClockState { synchronised: error.is_some(), error: error.unwrap_or(Span::MAX), tai }
    }
}

/// Processor time used by this process, in nanoseconds.
pub(super) fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Memory used by this process, in bytes (`/proc/self/statm`, proc(5)).
pub(super) fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_an_identifier_and_resource_usage() {
        let mut machine = Machine::new().unwrap();
        assert_eq!(machine.clock().machine, Machine::new().unwrap().clock().machine);
        assert_ne!(machine.clock().machine, [0; 16]);
        assert!(processor_time() > 0 && memory() > 0);
        let error = machine.clock().error;
        let state = TestClock::new(machine).state();
        assert_eq!(state.synchronised, error.is_some());
    }
}
