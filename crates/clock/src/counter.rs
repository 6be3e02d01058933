//! The counter that stamps packets: the cheapest trusted clock.

use crate::Domain;
#[cfg(target_arch = "aarch64")]
use crate::source::cntvct::Cntvct;
#[cfg(target_arch = "x86_64")]
use crate::source::tsc::Tsc;
use crate::source::{hpet::Hpet, os::Os, raw::RawSource};

/// A source of raw stamps.
///
/// # Choice
///
/// [`Counter::select`] chooses once per process, as in Fedotova and Siemens, "HighPerTimer", section 5.
/// [`crate::survey()`] gives the reason for or against each source. The CPU's counter is the best source if three
/// checks pass:
///
/// - the CPU declares it *invariant*: it runs at one rate in all power states (a CPUID flag for the time stamp
///   counter of x86-64; guaranteed by the architecture for the generic timer of aarch64);
/// - the kernel keeps its own time by it, directly or with a scale from a hypervisor;
/// - a comparison between cores finds no difference: two threads that alternate between cores never read a lower value
///   than before. Cores that do not answer within some milliseconds are excluded.
///
/// Otherwise the high precision event timer is compared with the kernel's `CLOCK_MONOTONIC_RAW`. The one with the lower
/// mean cost of a read is chosen. If the means are within 25 % of each other, the one with the lower deviation is
/// chosen.
///
/// A user can name the source instead ([`Counter::named`]), before the process starts its first
/// [`crate::ClockService`]. The process keeps that counter and rejects another, so that stamps of two counters are
/// never mixed.
///
/// # Ordering
///
/// There are two read modes. [`Counter::read`] is relaxed: a plain `rdtsc` on the TSC. It neither waits for earlier
/// loads nor delays later instructions. The value can be off by the CPU's reordering: 10 to 30 ns, and 100 ns after a
/// load that misses all caches. [`Counter::read_ordered`] prevents that with fences, which cost more than the read
/// itself. A packet is stamped with a relaxed read after a branch on its arrival, so that the stamp can be early by
/// that much, but not late. Calibration uses ordered reads.
///
/// # Cost
///
/// The acquisition loop keeps the counter in a local variable. The branch on the source is then the same in every
/// round and costs nothing measurable; `make bench` prints it and the cost of both read modes. The receivers need no
/// type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The CPU's time stamp counter, in its own ticks.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// The virtual counter of the CPU's generic timer (`CNTVCT_EL0`), in its own ticks.
    #[cfg(target_arch = "aarch64")]
    Cntvct,
    /// The 64-bit main counter of the high precision event timer, in its own ticks (from 10 MHz).
    Hpet(Hpet),
    /// `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    Os,
}

/// Calls a method of the source.
macro_rules! of_source {
    ($counter:expr, $source:ident => $value:expr) => {
        match $counter {
            #[cfg(target_arch = "x86_64")]
            Counter::Tsc => {
                let $source = Tsc;
                $value
            }
            #[cfg(target_arch = "aarch64")]
            Counter::Cntvct => {
                let $source = Cntvct;
                $value
            }
            Counter::Hpet($source) => $value,
            Counter::Os => {
                let $source = Os;
                $value
            }
        }
    };
}

impl Counter {
    /// Current value in ticks, unordered (see [`Counter`]).
    #[inline(always)]
    #[must_use]
    pub fn read(self) -> u64 {
        of_source!(self, source => source.read())
    }

    /// Current value, read after all earlier and before all later instructions: `lfence; rdtsc; lfence` on the TSC
    /// (Intel SDM vol. 2B, RDTSC).
    #[inline]
    #[must_use]
    pub fn read_ordered(self) -> u64 {
        of_source!(self, source => source.read_ordered())
    }

    /// Name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Tsc => Tsc::NAME,
            #[cfg(target_arch = "aarch64")]
            Self::Cntvct => Cntvct::NAME,
            Self::Hpet(_) => Hpet::NAME,
            Self::Os => Os::NAME,
        }
    }

    /// Domain of the stamps of every counter.
    #[must_use]
    pub const fn domain(self) -> Domain {
        Domain::Counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_is_monotone_on_one_thread() {
        for counter in [Counter::select(), Counter::Os] {
            let mut previous = counter.read_ordered();
            for _ in 0..10_000 {
                let next = counter.read_ordered();
                assert!(next >= previous, "{}: {next} after {previous}", counter.name());
                previous = next;
            }
        }
    }

    #[test]
    fn source_is_chosen_once() {
        let counter = Counter::select();
        assert_eq!(Counter::select(), counter);
        assert_eq!(Counter::named(counter.name()), Ok(counter));
    }

    #[test]
    fn counter_has_the_size_of_its_enum() {
        assert_eq!(size_of::<Counter>(), 1);
    }

    #[test]
    fn unusable_source_is_rejected_by_name() {
        assert_eq!(Counter::named("os"), Ok(Counter::Os));
        let error = Counter::named("sundial").unwrap_err().to_string();
        assert!(error.contains("sundial") && error.contains("os"), "{error}");
        if !std::path::Path::new("/dev/hpet").exists() {
            let error = Counter::named("hpet").unwrap_err().to_string();
            assert!(error.contains("there is no /dev/hpet"), "{error}");
        }
    }
}
