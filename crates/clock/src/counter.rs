//! The counter that packets are stamped with: the cheapest clock that can be trusted.
#![expect(unsafe_code, reason = "the counter instructions are called here")]

#[cfg(target_arch = "x86_64")]
use std::fs;

use crate::{Domain, sys};

/// Where Linux names the clock source that it keeps time by.
#[cfg(any(target_arch = "x86_64", test))]
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Clock sources whose value is the TSC, scaled or not.
#[cfg(any(target_arch = "x86_64", test))]
const TSC_BASED: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// A source of raw stamps.
///
/// # Choice
///
/// On x86-64 the best source is the time stamp counter (TSC), if two witnesses vouch for it:
///
/// - the CPU says that it is *invariant*: it runs at one rate in all power states (CPUID leaf
///   `0x8000_0007`, EDX bit 8; Intel SDM vol. 3B, "Invariant TSC"; AMD APM vol. 3, appendix E);
/// - the kernel keeps its own time by it. The kernel compares the counters of all CPUs at boot
///   and watches the TSC against another clock while it runs, and drops it when it misbehaves, so
///   its current clock source is the best public verdict. `tsc` is the TSC itself; `kvm-clock`,
///   `hyperv_clocksource_tsc_page` and `xen` are the TSC times a scale that the hypervisor
///   publishes to the guest, so they too stand on the TSC being usable on every CPU.
///
/// Where either is missing, the counter is the kernel's `CLOCK_MONOTONIC_RAW`, and the reason is
/// told ([`crate::survey()`]).
///
/// # Ordering
///
/// [`Counter::read`] is a plain `rdtsc`. It does not wait for the loads that stand before it in the
/// program, nor hold back what stands after it: the value can be off by as far as the CPU reorders,
/// some tens of cycles (about 10 to 30 ns). Fences would remove that at about the same cost on
/// every packet. The stamp of a packet is read after a branch on the packet's arrival, so it can be
/// early by that much, but not late. Calibration reads with fences.
///
/// # Cost
///
/// The acquisition loop keeps the counter in a local variable: the choice between the two is then
/// the same on every round, the branch costs nothing that can be measured (`make bench` prints it),
/// and no type parameter has to pass through the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The CPU's time stamp counter, in its own ticks.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    Os,
}

impl Counter {
    /// The best counter this machine can be trusted with; [`crate::survey()`] says why.
    #[must_use]
    pub fn select() -> Self {
        tsc_verdict().map_or(Self::Os, |(tsc, _)| tsc)
    }

    /// The counter's present value, in its own ticks, unordered (see [`Counter`]).
    #[inline(always)]
    #[must_use]
    pub fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: every x86-64 CPU has `rdtsc`, and it touches no memory.
            Self::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            Self::Os => os_counter(),
        }
    }

    /// The counter's value read after everything earlier in the program and before anything later:
    /// `lfence; rdtsc; lfence` (Intel SDM vol. 2B, RDTSC).
    #[inline]
    pub(crate) fn read_ordered(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: every x86-64 CPU has `lfence` (SSE2) and `rdtsc`; neither touches memory.
            Self::Tsc => unsafe {
                use core::arch::x86_64::{_mm_lfence, _rdtsc};
                _mm_lfence();
                let value = _rdtsc();
                _mm_lfence();
                value
            },
            // The kernel's own reading is ordered.
            Self::Os => os_counter(),
        }
    }

    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Tsc => "tsc",
            Self::Os => "os",
        }
    }

    /// The domain of this counter's stamps, whichever counter it is.
    #[must_use]
    pub const fn domain(self) -> Domain {
        Domain::Counter
    }
}

#[inline]
fn os_counter() -> u64 {
    u64::try_from(sys::now(sys::KernelClock::MonotonicRaw)).unwrap_or(0)
}

/// The TSC and why it may be used, or why not.
#[cfg(target_arch = "x86_64")]
pub(crate) fn tsc_verdict() -> Result<(Counter, String), String> {
    let clocksource = fs::read_to_string(CLOCKSOURCE);
    let clocksource = clocksource.as_deref().ok().map(str::trim);
    judge_tsc(tsc_is_invariant(), clocksource).map(|reason| (Counter::Tsc, reason))
}

/// The TSC and why it may be used, or why not.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn tsc_verdict() -> Result<(Counter, String), String> {
    Err("only x86-64 has a TSC".to_owned())
}

#[cfg(any(target_arch = "x86_64", test))]
fn judge_tsc(invariant: bool, clocksource: Option<&str>) -> Result<String, String> {
    if !invariant {
        return Err("the CPU does not say that its TSC is invariant".to_owned());
    }
    match clocksource {
        Some(name) if TSC_BASED.contains(&name) => {
            Ok(format!("the TSC is invariant and the kernel keeps time by it ({name})"))
        }
        Some(name) => Err(format!("the kernel keeps time by {name} and does not trust the TSC")),
        None => Err(format!("{CLOCKSOURCE} cannot be read, so nothing vouches for the TSC")),
    }
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const HIGHEST_EXTENDED: u32 = 0x8000_0000;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(HIGHEST_EXTENDED).eax >= POWER_MANAGEMENT
        && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tsc_needs_both_witnesses() {
        assert!(judge_tsc(true, Some("tsc")).is_ok());
        assert!(judge_tsc(true, Some("kvm-clock")).is_ok());
        assert!(judge_tsc(true, Some("hpet")).unwrap_err().contains("hpet"));
        assert!(judge_tsc(true, None).is_err());
        assert!(judge_tsc(false, Some("tsc")).is_err());
    }

    #[test]
    fn a_counter_does_not_run_backwards_on_one_thread() {
        for counter in [Counter::select(), Counter::Os] {
            let mut previous = counter.read_ordered();
            for _ in 0..10_000 {
                let next = counter.read_ordered();
                assert!(next >= previous, "{}: {next} after {previous}", counter.name());
                previous = next;
            }
        }
    }
}
