//! The counter that packets are stamped with: the cheapest clock that can be trusted.

#[cfg(target_arch = "aarch64")]
use crate::source::cntvct::Cntvct;
#[cfg(target_arch = "x86_64")]
use crate::source::tsc::Tsc;
use crate::source::{self, RawSource, hpet::Hpet, os::Os};
use crate::{Domain, SourceError};

/// A source of raw stamps.
///
/// # Choice
///
/// [`Counter::select`] chooses once in a process, as in Fedotova and Siemens, "HighPerTimer",
/// section 5; [`crate::survey()`] tells of every source why it was or was not chosen. The best
/// source is the counter of the CPU, if three witnesses vouch for it:
///
/// - the CPU says that it is *invariant*: it runs at one rate in all power states (for the time
///   stamp counter of x86-64 a flag in CPUID; for the generic timer of aarch64 the architecture);
/// - the kernel keeps its own time by it, directly or by way of a scale from a hypervisor;
/// - the cores do not contradict it: two threads that pass a turn to and fro between cores never
///   see it go back. Cores that do not answer within some milliseconds are left out.
///
/// Where it is not trusted, the high precision event timer is compared with the kernel's
/// `CLOCK_MONOTONIC_RAW`: the one that is read more cheaply is chosen, or, if the means are within
/// 25 % of each other, the one whose cost deviates less.
///
/// A user who knows better names the source ([`Counter::named`]), before the first
/// [`crate::ClockService`] of the process is started. The process keeps that counter: another is
/// refused later, so that stamps of two counters are never taken for those of one.
///
/// # Ordering
///
/// There are two read modes. [`Counter::read`] is relaxed: of the TSC a plain `rdtsc`. It does not
/// wait for the loads that stand before it in the program, nor hold back what stands after it: the
/// value can be off by as far as the CPU reorders: some 10 to 30 ns, and 100 ns where it does not
/// wait for a load that misses all caches.
/// [`Counter::read_ordered`] removes that with fences, which cost more than the read itself. The
/// stamp of a packet is read relaxed, after a branch on the packet's arrival, so it can be early by
/// that much, but not late. Calibration reads ordered.
///
/// # Cost
///
/// The acquisition loop keeps the counter in a local variable: the choice of the source is then the
/// same on every round, the branch costs nothing that can be measured (`make bench` prints it, and
/// the cost of both read modes), and no type parameter has to pass through the receivers.
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
    /// The best counter this machine can be trusted with; [`crate::survey()`] says why. The first
    /// call in a process tries the sources out, which takes some milliseconds.
    #[must_use]
    pub fn select() -> Self {
        source::selection().selected
    }

    /// The counter of a name, if it can be used here: `tsc`, `cntvct`, `hpet` or `os`.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if there is no such source, or this machine's cannot be used or trusted.
    pub fn named(name: &str) -> Result<Self, SourceError> {
        source::named(name)
    }

    /// The counter's present value, in its own ticks, unordered (see [`Counter`]).
    #[inline(always)]
    #[must_use]
    pub fn read(self) -> u64 {
        of_source!(self, source => source.read())
    }

    /// The counter's value read after everything earlier in the program and before anything later:
    /// of the TSC `lfence; rdtsc; lfence` (Intel SDM vol. 2B, RDTSC).
    #[inline]
    #[must_use]
    pub fn read_ordered(self) -> u64 {
        of_source!(self, source => source.read_ordered())
    }

    /// The name used on the command line and in reports.
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

    /// The domain of this counter's stamps, whichever counter it is.
    #[must_use]
    pub const fn domain(self) -> Domain {
        Domain::Counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_choice_is_made_once() {
        let counter = Counter::select();
        assert_eq!(Counter::select(), counter);
        assert_eq!(Counter::named(counter.name()), Ok(counter));
    }

    #[test]
    fn a_counter_is_no_larger_than_its_choice() {
        assert_eq!(size_of::<Counter>(), 1);
    }

    #[test]
    fn a_source_that_cannot_be_used_is_refused_by_name() {
        assert_eq!(Counter::named("os"), Ok(Counter::Os));
        let error = Counter::named("sundial").unwrap_err().to_string();
        assert!(error.contains("sundial") && error.contains("os"), "{error}");
        if !std::path::Path::new("/dev/hpet").exists() {
            let error = Counter::named("hpet").unwrap_err().to_string();
            assert!(error.contains("there is no /dev/hpet"), "{error}");
        }
    }
}
