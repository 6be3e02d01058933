//! Virtual counter of the generic timer of aarch64.
//!
//! Tested only under an emulator (`make test-aarch64`), which derives the counter from the host's time of day in
//! steps of a microsecond; not on a real CPU.
#![expect(unsafe_code, reason = "the counter register is read here")]

use core::arch::asm;

use super::raw::RawSource;

/// The kernel's clock source with the value of this counter. If an erratum prevents programs from reading it, the
/// kernel emulates the read, which is slow, but right.
pub(crate) const CLOCKSOURCES: [&str; 1] = ["arch_sys_counter"];

/// `CNTVCT_EL0`: the count of the system counter, less an offset that a hypervisor sets.
///
/// A system has one such counter, and it runs at one rate in all power states (Arm Architecture Reference Manual for
/// A-profile, "The Generic Timer").
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cntvct;

impl RawSource for Cntvct {
    const NAME: &'static str = "cntvct";

    #[inline(always)]
    fn read(self) -> u64 {
        let value: u64;
        // SAFETY: Linux lets programs read the register (or emulates it), and reading it changes
        // neither memory, nor the stack, nor the flags.
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }

    /// Between two `isb`: otherwise the CPU may read the register early, or execute later instructions first (the
    /// same manual, "Synchronization requirements for AArch64 System registers").
    #[inline(always)]
    fn read_ordered(self) -> u64 {
        let value: u64;
        // SAFETY: as for `read`. `nomem` is left out, so that the compiler moves no access to
        // memory across it either.
        unsafe {
            asm!(
                "isb",
                "mrs {}, cntvct_el0",
                "isb",
                out(reg) value,
                options(nostack, preserves_flags)
            );
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::anchor::SystemClocks;
    use crate::difference::ORDINARY_SLEW;
    use crate::source::choice::CLOCKSOURCE;
    use crate::survey::smallest_usual_step;
    use crate::{Calibrator, Counter, survey};

    /// `CNTFRQ_EL0`: ticks per second according to the firmware. Programs may read it if they may read the counter
    /// (the same manual, "CNTFRQ_EL0, Counter-timer Frequency Register").
    fn nominal_frequency_hz() -> f64 {
        let hertz: u64;
        // SAFETY: as for the counter.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        // The upper half of the register is reserved.
        f64::from(u32::try_from(hertz).unwrap())
    }

    #[test]
    fn unordered_read_lies_between_ordered_ones() {
        let mut previous = Cntvct.read_ordered();
        for _ in 0..10_000 {
            let (between, next) = (Cntvct.read(), Cntvct.read_ordered());
            assert!(previous <= between && between <= next, "{previous}, {between}, {next}");
            previous = next;
        }
    }

    #[test]
    fn counter_runs_at_the_firmwares_frequency() {
        let clocks = SystemClocks::counter(Counter::Cntvct);
        let step = smallest_usual_step(clocks);
        let mut calibrator = Calibrator::new(clocks.domain(), clocks, step).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {}
        let timeline = calibrator.sample();
        assert_eq!(timeline.steps(), 0, "the first rate was off by more than its bound");
        let difference = timeline.difference();
        let (measured, nominal) = (difference.frequency_hz(), nominal_frequency_hz());
        // An emulator derives the counter from a clock that is slewed; `CLOCK_MONOTONIC_RAW` is not.
        let tolerated_ppm = difference.rate_error_ppm() + ORDINARY_SLEW * 1e6;
        let off_ppm = (measured / nominal - 1.0) * 1e6;
        println!("cntvct: {measured:.0} Hz measured, {nominal:.0} Hz said, {off_ppm:.1} ppm apart");
        assert!(off_ppm.abs() <= tolerated_ppm, "{off_ppm} ppm; {tolerated_ppm} at most");
    }

    #[test]
    fn counter_is_chosen_only_if_the_kernel_uses_it() {
        let kernel = std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default();
        let found = survey();
        let source = found.sources.iter().find(|source| source.name == Cntvct::NAME).unwrap();
        println!("selected {}; {source:?}", found.selected);
        let vouched_for = CLOCKSOURCES.contains(&kernel.trim());
        assert_eq!(source.available, vouched_for, "{}", source.reason);
        assert_eq!(found.selected == Cntvct::NAME, vouched_for);
    }
}
