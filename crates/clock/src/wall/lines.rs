//! Lines in memory that one thread writes and all others read, without a lock.
//!
//! # Guarantee for readers
//!
//! UTC is a function of the counter's value alone, for any thread at any time: each line is valid from its start to
//! the start of the next one. Lines join, and ascend. So of two readings the one with the larger counter value is
//! never the smaller, also across threads.
//!
//! The problem is a reader that took the counter's value while a line was the newest, and another that takes a
//! smaller value after the next line was published. So lines are published before they start:
//!
//! 1. The writer writes the new line, with a start slightly in the future, to a slot that no reader uses.
//! 2. It makes that start the *end* of the newest line, and then reads the counter. If the start has already passed,
//!    it begins again with a later one.
//! 3. It makes the new line the newest by incrementing the generation.
//!
//! A reader reads the generation, the counter, the time from the valid line, and only then the line's end. It
//! discards a reading at or beyond the end. A reader that took the counter's value after the start sees the end,
//! because the writer set it before the start. Such a reader waits for step 3, which follows within nanoseconds
//! unless the writer is stopped there. It yields up to [`MAX_YIELDS`] times, and then continues on the old line. Only
//! then can time go back, by the bend of the next line.
//!
//! # Memory order
//!
//! A sequence lock over atomics. There are [`SLOTS`] lines. Readers of a generation use two of them, and the writer
//! overwrites the one that was the newest [`SLOTS`] - 1 generations ago. If a slow reader's line is being overwritten,
//! the fences make the later generation visible to it too, and it reads again (H.-J. Boehm, "Can seqlocks get along
//! with programming language memory models?", MSPC 2012).

use std::hint;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;

use super::line::Line;
use crate::ratio::Ratio;
use crate::{Span, Time, Utc};

/// A power of two, so that a mask gives a generation's slot.
const SLOTS: usize = 4;

/// Max yields of a reader while the writer is between ending a line and publishing the next. Then the reader removes
/// the end: a process forked at this point has no writer.
const MAX_YIELDS: u32 = 1_000;

/// A [`Line`] in words that may be read while they are written.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    start: AtomicU64,
    /// First tick at which the line is no longer valid; the max value until the next line is known.
    end: AtomicU64,
    utc: AtomicI64,
    slope: AtomicRatio,
    error: AtomicI64,
    error_slope: AtomicRatio,
}

#[derive(Debug, Default)]
struct AtomicRatio {
    whole: AtomicU64,
    fraction: AtomicU64,
}

impl AtomicRatio {
    fn store(&self, ratio: Ratio) {
        let (whole, fraction) = ratio.into_parts();
        self.whole.store(whole, Ordering::Relaxed);
        self.fraction.store(fraction, Ordering::Relaxed);
    }

    #[inline(always)]
    fn load(&self) -> Ratio {
        let part = |part: &AtomicU64| part.load(Ordering::Relaxed);
        Ratio::from_parts(part(&self.whole), part(&self.fraction))
    }
}

impl Slot {
    fn store(&self, line: &Line) {
        self.start.store(line.start, Ordering::Relaxed);
        self.end.store(u64::MAX, Ordering::Relaxed);
        self.utc.store(line.utc.as_nanos(), Ordering::Relaxed);
        self.slope.store(line.slope);
        self.error.store(line.error.as_nanos(), Ordering::Relaxed);
        self.error_slope.store(line.error_slope);
    }

    #[inline(always)]
    fn load(&self) -> Line {
        Line {
            start: self.start.load(Ordering::Relaxed),
            utc: Time::from_nanos(self.utc.load(Ordering::Relaxed)),
            slope: self.slope.load(),
            error: Span::from_nanos(self.error.load(Ordering::Relaxed)),
            error_slope: self.error_slope.load(),
        }
    }

    /// UTC at a tick.
    #[inline(always)]
    pub(super) fn utc(&self, raw: u64) -> Time<Utc> {
        let start = self.start.load(Ordering::Relaxed);
        let utc = self.utc.load(Ordering::Relaxed);
        if raw < start {
            return before_start(self, raw);
        }
        let nanos = self.slope.load().scale(raw - start);
        Time::from_nanos(utc.saturating_add_unsigned(nanos))
    }

    /// Removes `end` of the line, unless it has another end by now.
    #[cold]
    fn remove_end(&self, end: u64) {
        // Another end means that the writer still runs.
        let _ = self.end.compare_exchange(end, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// UTC at a tick, with its error bound.
    pub(super) fn utc_and_error(&self, raw: u64) -> (Time<Utc>, Span) {
        let line = self.load();
        (line.utc(raw), line.error(raw))
    }
}

/// Only a counter that ran backwards is read before the start of both lines.
#[cold]
fn before_start(slot: &Slot, raw: u64) -> Time<Utc> {
    slot.load().utc(raw)
}

/// The newest lines.
#[derive(Debug)]
pub(super) struct Lines {
    generation: AtomicUsize,
    slots: [Slot; SLOTS],
}

impl Lines {
    pub(super) fn new(line: &Line) -> Self {
        let slots: [Slot; SLOTS] = Default::default();
        for slot in &slots {
            slot.store(line);
        }
        Self { generation: AtomicUsize::new(0), slots }
    }

    /// Reads the counter and applies `convert` to its value on the valid line.
    #[inline(always)]
    pub(super) fn read<T>(
        &self,
        counter: impl Fn() -> u64,
        convert: impl Fn(&Slot, u64) -> T,
    ) -> T {
        let mut yields_left = MAX_YIELDS;
        loop {
            let generation = self.generation.load(Ordering::Acquire);
            let raw = counter();
            let newest = self.slot(generation);
            let is_newest = raw >= newest.start.load(Ordering::Relaxed);
            let slot = if is_newest { newest } else { self.slot(generation.wrapping_sub(1)) };
            let value = convert(slot, raw);
            let end = newest.end.load(Ordering::Relaxed);
            let ended = is_newest && raw >= end;
            fence(Ordering::Acquire);
            let unchanged = self.generation.load(Ordering::Relaxed) == generation;
            if unchanged && !ended {
                return value;
            }
            if unchanged && !yield_once(&mut yields_left) {
                newest.remove_end(end);
                return value;
            }
        }
    }

    /// Makes `line` the newest from its start on. Returns false if `counter` reached `latest` too early; then the
    /// caller tries again with a later start.
    ///
    /// `latest` must be earlier than the start by more than a CPU reorders loads and stores against reads of its
    /// counter. Only one thread may call this and [`Self::replace`].
    pub(super) fn publish(
        &self,
        line: &Line,
        latest: u64,
        mut counter: impl FnMut() -> u64,
    ) -> bool {
        let next = self.prepare(line);
        self.slot(next.wrapping_sub(1)).end.store(line.start, Ordering::Relaxed);
        // The end must be visible to all threads before the counter is read.
        fence(Ordering::SeqCst);
        let in_time = counter() < latest;
        if in_time {
            self.generation.store(next, Ordering::Release);
        }
        in_time
    }

    /// Removes the end of the newest line, after [`Self::publish`] failed.
    pub(super) fn cancel(&self) {
        self.slot(self.generation.load(Ordering::Relaxed)).end.store(u64::MAX, Ordering::Relaxed);
    }

    /// Makes `line` the newest at once, though it does not continue the last one.
    pub(super) fn replace(&self, line: &Line) {
        let next = self.prepare(line);
        self.generation.store(next, Ordering::Release);
    }

    /// Writes the line to a slot that no reader of the current generation uses; returns its generation.
    fn prepare(&self, line: &Line) -> usize {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        // A reader that sees a word of the line also sees the generation before it.
        fence(Ordering::Release);
        self.slot(next).store(line);
        next
    }

    #[inline(always)]
    fn slot(&self, generation: usize) -> &Slot {
        &self.slots[generation % SLOTS]
    }
}

/// Yields to other threads; false when no yields are left.
#[cold]
fn yield_once(yields_left: &mut u32) -> bool {
    hint::spin_loop();
    thread::yield_now();
    *yields_left = yields_left.saturating_sub(1);
    *yields_left > 0
}
