//! The virtual counter of the generic timer of aarch64.
//!
//! This has not been run: only its instructions were put through an assembler.
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
