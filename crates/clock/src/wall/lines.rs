//! Two lines in memory that one thread writes and all others read, without a lock.
//!
//! # What readers may rely on
//!
//! UTC is a function of the counter's value alone, whoever computes it and however late: each line
//! holds from its start to the start of the next one. Lines join, and rise; so of two readings the
//! one of the larger counter value is never the smaller, also across threads.
//!
//! The difficulty is a reader that took the counter's value while a line was the newest, and one
//! that takes a smaller value after the next line was published. So lines are published before they
//! start:
//!
//! 1. The writer writes the new line, with a start a little in the future, where no reader looks.
//! 2. It makes that start the *end* of the newest line, and then looks at the counter. If the start
//!    has passed meanwhile, it begins again with a later one.
//! 3. It makes the new line the newest by counting the generation up.
//!
//! A reader takes the generation, the counter, a time from the line that holds then, and only after
//! that looks at the line's end. A reading at or beyond the end is not used: whoever took the
//! counter's value after the start sees the end, because the writer made sure of it before the
//! start. Such a reader waits for step 3, which follows within nanoseconds unless the writer is
//! stopped there. It waits for as long as some thousand turns of other threads take, and then goes
//! on along the old line: only then can time go back, by what the next line is bent.
//!
//! # Memory order
//!
//! A sequence lock over atomics. There are [`SLOTS`] lines, of which readers of a generation look
//! at two, and the writer writes the one that was the newest [`SLOTS`] - 1 generations ago. A reader
//! that was so slow that its line is being written anew sees with it a later generation, by the
//! fences, and reads again (H.-J. Boehm, "Can seqlocks get along with programming language memory
//! models?", MSPC 2012).

use std::hint;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;

use super::line::Line;
use crate::ratio::Ratio;
use crate::{Span, Time, Utc};

/// A power of two, so that a generation's slot is a mask away.
const SLOTS: usize = 4;

/// Times that a reader lets others run while the writer stands between ending a line and publishing
/// the next. Then it takes back the end: the writer may be gone, in a process forked just there.
const PATIENCE: u32 = 1_000;

/// A [`Line`] in words that may be read while they are written.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    start: AtomicU64,
    /// The first tick at which the line does not hold any more; the largest there is until the next
    /// line is known.
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

    /// Lets the line go on beyond `end`, unless it has another end by now.
    #[cold]
    fn take_back(&self, end: u64) {
        // If it has, the writer is there after all.
        let _ = self.end.compare_exchange(end, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// UTC at a tick, and how far off it can be.
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

    /// Reads the counter and gives what `convert` makes of its value on the line that holds then.
    #[inline(always)]
    pub(super) fn read<T>(
        &self,
        counter: impl Fn() -> u64,
        convert: impl Fn(&Slot, u64) -> T,
    ) -> T {
        let mut patience = PATIENCE;
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
            if unchanged && !waited(&mut patience) {
                newest.take_back(end);
                return value;
            }
        }
    }

    /// Makes `line` the newest from its start on, unless `counter` has come to `latest` before that
    /// is sure: false then, and it has to be tried again with a later start.
    ///
    /// `latest` has to be earlier than the start by more than a CPU reorders loads and stores against
    /// reads of its counter. Only one thread may call this and [`Self::replace`].
    pub(super) fn publish(
        &self,
        line: &Line,
        latest: u64,
        mut counter: impl FnMut() -> u64,
    ) -> bool {
        let next = self.prepare(line);
        self.slot(next.wrapping_sub(1)).end.store(line.start, Ordering::Relaxed);
        // The end has to be seen by everybody before the counter is looked at.
        fence(Ordering::SeqCst);
        let in_time = counter() < latest;
        if in_time {
            self.generation.store(next, Ordering::Release);
        }
        in_time
    }

    /// Lets the newest line go on, after [`Self::publish`] came too late.
    pub(super) fn give_up(&self) {
        self.slot(self.generation.load(Ordering::Relaxed)).end.store(u64::MAX, Ordering::Relaxed);
    }

    /// Makes `line` the newest at once, though it does not continue the last one.
    pub(super) fn replace(&self, line: &Line) {
        let next = self.prepare(line);
        self.generation.store(next, Ordering::Release);
    }

    /// Writes the line where no reader of the present generation looks; returns its generation.
    fn prepare(&self, line: &Line) -> usize {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        // Whoever sees a word of the line sees the generation before it too.
        fence(Ordering::Release);
        self.slot(next).store(line);
        next
    }

    #[inline(always)]
    fn slot(&self, generation: usize) -> &Slot {
        &self.slots[generation % SLOTS]
    }
}

/// Lets others run; false when there is no patience left.
#[cold]
fn waited(patience: &mut u32) -> bool {
    hint::spin_loop();
    thread::yield_now();
    *patience = patience.saturating_sub(1);
    *patience > 0
}
