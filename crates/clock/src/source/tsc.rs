//! Time stamp counter of x86-64.
#![expect(unsafe_code, reason = "the counter instructions are called here")]

use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

use super::raw::RawSource;

/// The kernel's clock sources that use the TSC, scaled or not.
///
/// `tsc` is the TSC itself. The others are the TSC times a scale that the hypervisor publishes to the guest, so they
/// too require a TSC that is usable on every core.
pub(crate) const CLOCKSOURCES: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// The time stamp counter, in its own ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tsc;

impl RawSource for Tsc {
    const NAME: &'static str = "tsc";

    #[inline(always)]
    fn read(self) -> u64 {
        // SAFETY: every x86-64 CPU has `rdtsc`, and it touches no memory.
        unsafe { _rdtsc() }
    }

    /// `lfence; rdtsc; lfence` (Intel SDM vol. 2B, RDTSC). Not `rdtscp`, which waits only for earlier instructions
    /// and is not available on every x86-64 CPU.
    #[inline(always)]
    fn read_ordered(self) -> u64 {
        // SAFETY: every x86-64 CPU has `lfence` (SSE2) and `rdtsc`; neither touches memory.
        unsafe {
            _mm_lfence();
            let value = _rdtsc();
            _mm_lfence();
            value
        }
    }
}

/// True if the CPU declares that its TSC runs at one rate in all power states (CPUID leaf `0x8000_0007`, EDX bit 8;
/// Intel SDM vol. 3B, "Invariant TSC"; AMD APM vol. 3, appendix E).
pub(crate) fn is_invariant() -> bool {
    const HIGHEST_EXTENDED: u32 = 0x8000_0000;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(HIGHEST_EXTENDED).eax >= POWER_MANAGEMENT
        && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}
