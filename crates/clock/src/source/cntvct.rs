//! The virtual counter of the generic timer of aarch64.
//!
//! This has been run under an emulator only (`make test-aarch64`), which makes the counter up from
//! the host's time of day and moves it a microsecond at a time; not on a CPU that has it.
#![expect(unsafe_code, reason = "the counter register is read here")]

use core::arch::asm;

use super::RawSource;

/// The kernel's clock source whose value is this counter. Where an erratum keeps the kernel from
/// letting programs read it themselves, it emulates the read, which is slow, but right.
pub(crate) const CLOCKSOURCES: [&str; 1] = ["arch_sys_counter"];

/// `CNTVCT_EL0`: the count of the system counter, less an offset that a hypervisor sets.
///
/// There is one such counter in a system, and it runs at one rate in all power states
/// (Arm Architecture Reference Manual for A-profile, "The Generic Timer").
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

    /// Between two `isb`: a read of the register may otherwise be made early, and what follows it
    /// before it (the same manual, "Synchronization requirements for AArch64 System registers").
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
    use crate::source::CLOCKSOURCE;
    use crate::survey::smallest_usual_step;
    use crate::{Calibrator, Counter, survey};

    /// `CNTFRQ_EL0`: the ticks per second, as the firmware says; programs may read it where they
    /// may read the counter (the same manual, "CNTFRQ_EL0, Counter-timer Frequency Register").
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
    fn an_unordered_read_lies_between_two_ordered_ones() {
        let mut previous = Cntvct.read_ordered();
        for _ in 0..10_000 {
            let (between, next) = (Cntvct.read(), Cntvct.read_ordered());
            assert!(previous <= between && between <= next, "{previous}, {between}, {next}");
            previous = next;
        }
    }

    #[test]
    fn it_runs_at_the_frequency_that_the_firmware_says() {
        let clocks = SystemClocks::counter(Counter::Cntvct);
        let step = smallest_usual_step(clocks);
        let mut calibrator = Calibrator::new(clocks.domain(), clocks, step).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {}
        let timeline = calibrator.sample();
        assert_eq!(timeline.steps(), 0, "the first rate was off by more than its bound");
        let difference = timeline.difference();
        let (measured, nominal) = (difference.frequency_hz(), nominal_frequency_hz());
        // An emulator makes the counter from a clock that is slewed; `CLOCK_MONOTONIC_RAW` is not.
        let tolerated_ppm = difference.rate_error_ppm() + ORDINARY_SLEW * 1e6;
        let off_ppm = (measured / nominal - 1.0) * 1e6;
        println!("cntvct: {measured:.0} Hz measured, {nominal:.0} Hz said, {off_ppm:.1} ppm apart");
        assert!(off_ppm.abs() <= tolerated_ppm, "{off_ppm} ppm; {tolerated_ppm} at most");
    }

    #[test]
    fn it_is_chosen_where_the_kernel_keeps_time_by_it_and_refused_elsewhere() {
        let kernel = std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default();
        let found = survey();
        let source = found.sources.iter().find(|source| source.name == Cntvct::NAME).unwrap();
        println!("selected {}; {source:?}", found.selected);
        let vouched_for = CLOCKSOURCES.contains(&kernel.trim());
        assert_eq!(source.available, vouched_for, "{}", source.reason);
        assert_eq!(found.selected == Cntvct::NAME, vouched_for);
    }
}
