//! Exact conversion: the data with which the kernel converts the counter, read from the vDSO's page.
//!
//! The kernel publishes a line for each of its clocks in a page that every process may read (vdso(7)), so that
//! clock_gettime(2) needs no system call. With the same line, a counter value becomes the same nanosecond that the
//! kernel would return, and a stamp of the kernel becomes a counter value.
//!
//! The page is not an ABI. Its layout comes from a table of known layouts, or from the kernel's type information. A
//! layout is used only if it converts [`PROOF_READS`] readings of each clock correctly.

mod btf;
pub(crate) mod history;
mod kernel_clock;
mod layout;
mod line;
mod proof;

use std::hint;
use std::io;
use std::iter;
use std::sync::atomic::{Ordering, fence};

use thiserror::Error;
use wirestamp_sys::mmap::Registers;

use crate::Counter;
pub use kernel_clock::KernelClock;
use layout::Layout;
pub use line::KernelLine;
use proof::Readings;
pub use proof::{PROOF_READS, WrongConversion};

/// Type information of the running kernel.
const TYPE_INFORMATION: &str = "/sys/kernel/btf/vmlinux";

/// Modes of `enum vdso_clock_mode` in which programs read the TSC (x86-64) or CNTVCT (aarch64) itself.
const NO_COUNTER: u32 = 0;
const COUNTER: u32 = 1;
const TIME_NAMESPACE: u32 = i32::MAX.cast_unsigned();

/// Max reads of a line during updates. An update takes less than a microsecond.
const MAX_READS: u32 = 100_000;

/// Reason why there is no exact conversion of the counter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoExactConversion {
    /// The clock service was started without it.
    #[error("it was not requested")]
    NotRequested,
    /// The counter in use is not the one of the kernel's page.
    #[error("raw stamps are read from {0}, which is not the kernel's clocksource")]
    OtherCounter(&'static str),
    /// There is no page.
    #[error("the kernel maps no vDSO data: {0}")]
    NoPage(String),
    /// The kernel keeps time by a counter that programs cannot read.
    #[error("the kernel's clocksource is a counter that programs cannot read")]
    NoCounter,
    /// The kernel keeps time by the clock of a hypervisor.
    #[error("the kernel's clocksource is a clock of the hypervisor (vDSO clock mode {0})")]
    Hypervisor(u32),
    /// The process is in a time namespace.
    #[error("this process is in a time namespace")]
    TimeNamespace,
    /// No layout converts correctly.
    #[error("the layout of the vDSO data is not known: {0}")]
    Layout(WrongConversion),
}

/// The kernel's own conversion of the counter, by a layout that passed the proof.
#[derive(Debug)]
pub struct ExactConversion {
    page: Registers,
    layout: Layout,
    counter: Counter,
}

impl ExactConversion {
    /// The conversion of `counter` on this machine. Takes about a millisecond.
    ///
    /// # Errors
    /// If the kernel publishes no conversion of this counter, or no known layout of its page is correct.
    pub fn of_machine(counter: Counter) -> Result<Self, NoExactConversion> {
        if matches!(counter, Counter::Hpet(_) | Counter::Os) {
            return Err(NoExactConversion::OtherCounter(counter.name()));
        }
        let no_page = |error: io::Error| NoExactConversion::NoPage(error.to_string());
        let page = Registers::of_vdso().map_err(no_page)?;
        let mut conversion = Self { page, layout: Layout::KNOWN[0], counter };
        // If no layout is correct, the error of the most likely one is returned.
        let Err(why) = conversion.check() else { return Ok(conversion) };
        // Read only if no known layout is correct: it has several megabytes.
        let btf = iter::once_with(|| std::fs::read(TYPE_INFORMATION).ok()).flatten();
        let described = btf.flat_map(|btf| Layout::described(&btf));
        for layout in Layout::KNOWN.into_iter().skip(1).chain(described) {
            conversion.layout = layout;
            if conversion.check().is_ok() {
                return Ok(conversion);
            }
        }
        Err(why)
    }

    /// Checks the mode of the page, and its lines against the kernel's clocks: [`PROOF_READS`] readings of each.
    fn check(&self) -> Result<(), NoExactConversion> {
        self.prove().map_err(|wrong| self.reason(wrong))
    }

    /// Why a reading failed: the mode of the page, or the layout.
    fn reason(&self, wrong: WrongConversion) -> NoExactConversion {
        match self.layout.clock_mode(&self.words()) {
            Some(NO_COUNTER) => NoExactConversion::NoCounter,
            Some(TIME_NAMESPACE) => NoExactConversion::TimeNamespace,
            Some(mode @ 2..=3) => NoExactConversion::Hypervisor(mode),
            _ => NoExactConversion::Layout(wrong),
        }
    }

    /// Compares [`PROOF_READS`] readings of each clock of the kernel with its line: each reading lies between the
    /// converted counter values before and after it. Takes about half a millisecond.
    ///
    /// # Errors
    /// The first reading outside this range.
    pub fn prove(&self) -> Result<(), WrongConversion> {
        if self.layout.clock_mode(&self.words()) != Some(COUNTER) {
            return Err(WrongConversion::Unreadable);
        }
        proof::prove(&mut &*self)
    }

    /// Compares a reading of each clock, as [`Self::prove`] does. One that fails is repeated: the counters of two
    /// cores may differ by some ticks.
    pub(crate) fn holds(&self) -> Result<(), NoExactConversion> {
        let mut result = Ok(());
        for _ in 0..3 {
            result = proof::check_all(&mut &*self);
            if result.is_ok() {
                break;
            }
        }
        result.map_err(|wrong| self.reason(wrong))
    }

    /// The kernel's current line for a clock; none if the kernel does not finish an update.
    #[must_use]
    pub fn line(&self, clock: KernelClock) -> Option<KernelLine> {
        Some(self.sequence_and_line(clock)?.1)
    }

    /// Updates of the page so far. Two numbers a known time apart give the rate of updates; modulo 2^31.
    #[must_use]
    pub fn updates(&self) -> u32 {
        self.layout.sequence(&self.words()).unwrap_or(0) / 2
    }

    /// The page's sequence number: odd during an update, and different after it. None if the page is unreadable.
    pub(crate) fn sequence(&self) -> Option<u32> {
        let sequence = self.layout.sequence(&self.words());
        fence(Ordering::Acquire);
        sequence
    }

    /// Current value of the counter, after all earlier and before all later instructions.
    pub(crate) fn counter_now(&self) -> u64 {
        self.counter.read_ordered()
    }

    /// Whether the kernel's type information describes the layout; otherwise it is in a table of known ones.
    #[must_use]
    pub fn is_described(&self) -> bool {
        self.layout.is_described
    }

    /// The line from the counter to a clock of the kernel, and a counter value at which it is in force; none if the
    /// kernel now keeps time by another counter.
    pub(crate) fn counter_to(&self, clock: KernelClock) -> Option<(KernelLine, u64)> {
        let read = || (self.line_of(clock), self.counter.read_ordered());
        let (_, (line, now)) = self.consistent(read)?;
        Some((line?, now))
    }

    /// The line from `CLOCK_MONOTONIC` to UTC, and a time of the former at which it is in force.
    pub(crate) fn monotonic_to_utc(&self) -> Option<(KernelLine, u64)> {
        let clocks = [KernelClock::Monotonic, KernelClock::Realtime];
        let read = || (clocks.map(|clock| self.line_of(clock)), self.counter.read_ordered());
        let (_, ([monotonic, utc], now)) = self.consistent(read)?;
        monotonic?.to(&utc?, now)
    }

    /// The conversion with a layout that reads every line 16 bytes too far, as after an unknown change of the page.
    #[cfg(test)]
    pub(crate) fn with_wrong_layout(self) -> Self {
        let layout = Layout { basetime: self.layout.basetime + 16, ..self.layout };
        Self { layout, ..self }
    }

    fn sequence_and_line(&self, clock: KernelClock) -> Option<(u32, KernelLine)> {
        let (sequence, line) = self.consistent(|| self.line_of(clock))?;
        Some((sequence, line?))
    }

    fn line_of(&self, clock: KernelClock) -> Option<KernelLine> {
        let words = self.words();
        let is_readable = self.layout.clock_mode(&words) == Some(COUNTER);
        self.layout.line(&words, clock).filter(|_| is_readable)
    }

    /// What `read` returns between two updates of the page, with the sequence number.
    fn consistent<T>(&self, read: impl Fn() -> T) -> Option<(u32, T)> {
        let words = self.words();
        for _ in 0..MAX_READS {
            let sequence = self.layout.sequence(&words)?;
            fence(Ordering::Acquire);
            let value = read();
            fence(Ordering::Acquire);
            if sequence.is_multiple_of(2) && self.layout.sequence(&words)? == sequence {
                return Some((sequence, value));
            }
            hint::spin_loop();
        }
        None
    }

    fn words(&self) -> impl Fn(usize) -> Option<u64> {
        |offset| self.page.word(offset)
    }
}

impl Readings for &ExactConversion {
    fn line(&mut self, clock: KernelClock) -> Option<(u32, KernelLine)> {
        self.sequence_and_line(clock)
    }

    fn sequence(&mut self) -> Option<u32> {
        self.layout.sequence(&self.words())
    }

    fn counter(&mut self) -> u64 {
        self.counter.read_ordered()
    }

    fn time(&mut self, clock: KernelClock) -> i64 {
        clock.now()
    }
}

/// Parses type information, for fuzzing.
#[cfg(fuzzing)]
pub fn parse_type_information(btf: &[u8]) {
    let _ = Layout::described(btf);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_is_exact_or_has_a_reason() {
        let counter = Counter::select();
        let exact = match ExactConversion::of_machine(counter) {
            Ok(exact) => exact,
            Err(why) => return println!("skipped here: {why}"),
        };
        exact.prove().unwrap();
        for clock in KernelClock::ALL {
            let line = exact.line(clock).unwrap();
            let now = clock.now();
            let raw = line.counter(now).unwrap();
            assert!((line.nanos(raw) - now).abs() <= 1, "{clock:?}: {now}");
        }
    }

    #[test]
    fn counters_of_other_clocks_have_no_exact_conversion() {
        let why = ExactConversion::of_machine(Counter::Os).unwrap_err();
        assert_eq!(why, NoExactConversion::OtherCounter("os"));
    }

    #[test]
    fn wrong_layout_fails_the_proof() {
        let counter = Counter::select();
        let Ok(mut exact) = ExactConversion::of_machine(counter) else { return };
        let right = exact.layout;
        let wrong = [
            Layout { basetime: right.basetime + 16, ..right },
            Layout { cycle_last: right.cycle_last + 8, ..right },
            Layout { mult: right.mult + 4, ..right },
            Layout { stride: right.stride + 8, ..right },
            Layout { start: right.start + 8, ..right },
        ];
        for layout in wrong {
            exact.layout = layout;
            assert!(exact.prove().is_err(), "{layout:?}");
        }
    }
}
