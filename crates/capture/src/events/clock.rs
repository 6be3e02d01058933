//! Trace clocks: what stamps the events.

use std::str::FromStr;

use strum::{Display, IntoStaticStr, VariantArray};
use wirestamp_clock::{Counter, Domain};

use super::Error;

/// The clock of a trace ring (Documentation/trace/ftrace.rst, `trace_clock`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum TraceClock {
    /// The CPU's time stamp counter, in ticks: the raw value.
    X86Tsc,
    /// `CLOCK_MONOTONIC`, in nanoseconds. The kernel reads it without a lock: an event that interrupts an update of the
    /// clock is stamped by the rate before the update.
    Mono,
    /// `CLOCK_BOOTTIME`, in nanoseconds: continues while the machine is suspended.
    Boot,
    /// The scheduler's clock of each CPU, in nanoseconds. CPUs may differ.
    Local,
}

impl TraceClock {
    /// The clock whose stamps are raw values of `counter`; `mono` if there is none.
    #[must_use]
    pub fn of_counter(counter: Counter) -> Self {
        if counter.name() == "tsc" { Self::X86Tsc } else { Self::Mono }
    }

    /// The name on the command line and in the kernel.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The domain of the stamps for a clock service of `counter`; none if the service cannot convert them to UTC.
    #[must_use]
    pub fn domain(self, counter: Counter) -> Option<Domain> {
        match self {
            Self::X86Tsc => (counter.name() == "tsc").then_some(Domain::Counter),
            Self::Mono => Some(Domain::Monotonic),
            Self::Boot | Self::Local => None,
        }
    }
}

impl FromStr for TraceClock {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Self::VARIANTS.iter().copied().find(|clock| clock.name() == name);
        known.ok_or_else(|| {
            let known: Vec<_> = Self::VARIANTS.iter().map(|clock| clock.name()).collect();
            Error::NoSuchClock { clock: name.to_owned(), known: known.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        let names: Vec<_> = TraceClock::VARIANTS.iter().map(|clock| clock.name()).collect();
        assert_eq!(names, ["x86-tsc", "mono", "boot", "local"]);
        assert!(names.iter().all(|name| name.parse::<TraceClock>().unwrap().name() == *name));
        let error = "global".parse::<TraceClock>().unwrap_err().to_string();
        assert!(error.contains("global") && error.contains("x86-tsc, mono"), "{error}");
    }

    #[test]
    fn only_clocks_of_the_service_are_converted() {
        assert_eq!(TraceClock::X86Tsc.domain(Counter::Os), None);
        assert_eq!(TraceClock::Mono.domain(Counter::Os), Some(Domain::Monotonic));
        assert_eq!(TraceClock::Boot.domain(Counter::Os), None);
        assert_eq!(TraceClock::of_counter(Counter::Os), TraceClock::Mono);
    }
}
