//! Proof of a layout: the kernel's clocks are read between two counter values, and the line must agree.

use thiserror::Error;

use super::kernel_clock::KernelClock;
use super::line::KernelLine;

/// Readings of each clock that a layout must convert correctly.
pub const PROOF_READS: u32 = 1_000;

/// Attempts for each reading: the kernel updates the page about every thousandth time, more often in a virtual machine.
const MAX_ATTEMPTS: u32 = 10_000;

/// A line that does not agree with the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WrongConversion {
    /// The page has no valid line at the place, is updated all the time, or is of another mode.
    #[error("the page has no valid data")]
    Unreadable,
    /// A reading of the clock lies outside.
    #[error("{clock:?} was {time} ns, and is converted to {from} to {until} ns")]
    Outside {
        /// The clock.
        clock: KernelClock,
        /// Its reading.
        time: i64,
        /// The converted counter value before the reading.
        from: i64,
        /// The converted counter value after it.
        until: i64,
    },
}

/// Readings for a proof.
pub(super) trait Readings {
    /// The line of a clock, and the sequence number of the page.
    fn line(&mut self, clock: KernelClock) -> Option<(u32, KernelLine)>;
    /// The current sequence number.
    fn sequence(&mut self) -> Option<u32>;
    /// The counter, ordered against the other readings.
    fn counter(&mut self) -> u64;
    /// The clock by clock_gettime(2), in nanoseconds.
    fn time(&mut self, clock: KernelClock) -> i64;
}

/// Compares [`PROOF_READS`] readings of each clock.
pub(super) fn prove(readings: &mut impl Readings) -> Result<(), WrongConversion> {
    (0..PROOF_READS).try_for_each(|_| check_all(readings))
}

/// Compares one reading of each clock.
pub(super) fn check_all(readings: &mut impl Readings) -> Result<(), WrongConversion> {
    KernelClock::ALL.into_iter().try_for_each(|clock| check(readings, clock))
}

/// Checks one reading during which the page was not updated.
fn check(readings: &mut impl Readings, clock: KernelClock) -> Result<(), WrongConversion> {
    for _ in 0..MAX_ATTEMPTS {
        let (sequence, line) = readings.line(clock).ok_or(WrongConversion::Unreadable)?;
        let before = readings.counter();
        let time = readings.time(clock);
        let after = readings.counter();
        if readings.sequence() != Some(sequence) {
            continue;
        }
        let (from, until) = (line.nanos(before), line.nanos(after));
        if (from..=until).contains(&time) {
            return Ok(());
        }
        return Err(WrongConversion::Outside { clock, time, from, until });
    }
    Err(WrongConversion::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with a counter of 1 GHz, which updates its page at every `update_every`-th reading.
    struct Kernel {
        now: u64,
        update_every: u64,
        /// Nanoseconds that the page is ahead of the clock.
        ahead: u64,
    }

    impl Readings for Kernel {
        fn line(&mut self, _: KernelClock) -> Option<(u32, KernelLine)> {
            let line = KernelLine {
                cycle_last: 0,
                mult: 1 << 20,
                shift: 20,
                seconds: 0,
                shifted_nanos: self.ahead << 20,
            };
            Some((self.sequence()?, line))
        }
        fn sequence(&mut self) -> Option<u32> {
            u32::try_from(self.now / self.update_every * 2).ok()
        }
        fn counter(&mut self) -> u64 {
            self.now += 20;
            self.now
        }
        fn time(&mut self, _: KernelClock) -> i64 {
            self.counter().cast_signed()
        }
    }

    #[test]
    fn exact_page_passes_despite_updates() {
        prove(&mut Kernel { now: 0, update_every: 1 << 20, ahead: 0 }).unwrap();
        prove(&mut Kernel { now: 0, update_every: 200, ahead: 0 }).unwrap();
    }

    #[test]
    fn wrong_page_is_rejected_with_the_reading() {
        let wrong = prove(&mut Kernel { now: 0, update_every: 1 << 20, ahead: 50 }).unwrap_err();
        let clock = KernelClock::Realtime;
        assert_eq!(wrong, WrongConversion::Outside { clock, time: 40, from: 70, until: 110 });
    }

    #[test]
    fn page_in_constant_update_is_not_readable() {
        let wrong = prove(&mut Kernel { now: 0, update_every: 10, ahead: 0 }).unwrap_err();
        assert_eq!(wrong, WrongConversion::Unreadable);
    }
}
