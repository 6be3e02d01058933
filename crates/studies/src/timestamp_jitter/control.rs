//! What the machine itself does to a program: the same work for each packet, without packets.
//!
//! A thread on the sender's core waits for each packet's time by reading the counter, touches some memory, and reads the
//! counter again. It touches about as much as a packet on its way through the kernel, and always the same, so that it
//! would have no jitter on a machine of its own.

use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use rustix::thread::{CpuSet, sched_setaffinity};
use wirestamp_clock::Counter;

use super::transit::INTERRUPTION_NS;
use crate::experiment::deviation;
use wirestamp_report::format::real;

/// Pages of memory that the work touches, and cache lines in them: about a microsecond.
const PAGES: usize = 128;
const LINES: usize = 512;
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;

/// What a core does to a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Control {
    /// Standard deviation of the differences of two consecutive durations of the work, in nanoseconds: the jitter of a
    /// probe whose own work never varies. None with fewer than three packets.
    pub(super) jitter_ns: Option<f64>,
    /// Interruptions of the waiting thread in a second: times between two readings above [`INTERRUPTION_NS`].
    pub(super) interruptions_per_second: f64,
    /// Sum of the squares of their durations in a second, in square nanoseconds. Interruptions of the work itself are not
    /// counted.
    pub(super) squares_per_second: f64,
    /// Interrupts that the kernel served on this core, in a second; none if it does not say.
    pub(super) interrupts_per_second: Option<f64>,
}

impl Control {
    /// Works `packets` times, once every `interval_ns`, on `core`.
    ///
    /// # Errors
    /// The thread cannot run on that core.
    pub(super) fn measure(
        core: Option<usize>,
        tick_ns: f64,
        interval_ns: f64,
        packets: u32,
    ) -> anyhow::Result<Self> {
        let work = || -> anyhow::Result<Self> {
            if let Some(core) = core {
                let mut only = CpuSet::new();
                only.set(core);
                sched_setaffinity(None, &only)
                    .with_context(|| format!("cannot run on core {core}"))?;
            }
            let before = core.and_then(interrupts);
            let measured = run(tick_ns, interval_ns, packets);
            let interrupts = core.and_then(interrupts).zip(before);
            let interrupts = interrupts.map(|(after, before)| real(after.saturating_sub(before)));
            let seconds = interval_ns * 1e-9 * f64::from(packets.max(1));
            Ok(Self {
                jitter_ns: deviation(&differences(&measured.work_ns)),
                interruptions_per_second: real(measured.interruptions) / seconds,
                squares_per_second: measured.squares / seconds,
                interrupts_per_second: interrupts.map(|count| count / seconds),
            })
        };
        thread::scope(|scope| scope.spawn(work).join())
            .map_err(|_| anyhow!("the control of the core panicked"))?
    }

    /// The jitter that such interruptions cause in a transit of `transit_ns`, in nanoseconds. They begin at any time, so
    /// the variance of the transit is the sum of the squares of those that begin in it; two consecutive packets have
    /// twice that variance.
    pub(super) fn jitter_of_interruptions(&self, transit_ns: f64) -> f64 {
        (2.0 * transit_ns * 1e-9 * self.squares_per_second).max(0.0).sqrt()
    }

    /// Packets that are sent in `lasts`, at least three.
    pub(super) fn packets_in(lasts: Duration, interval_ns: f64) -> u32 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let packets = (lasts.as_secs_f64() * 1e9 / interval_ns) as u32;
        packets.max(3)
    }
}

/// The work for each packet, and the interruptions of the time between.
#[derive(Default)]
struct Measured {
    work_ns: Vec<f64>,
    interruptions: u64,
    squares: f64,
}

fn run(tick_ns: f64, interval_ns: f64, packets: u32) -> Measured {
    let counter = Counter::select();
    let nanos = |from: u64, to: u64| real(to.saturating_sub(from)) * tick_ns;
    let mut memory = vec![1; PAGES * PAGE_BYTES];
    let mut measured = Measured::default();
    let start = counter.read_ordered();
    for packet in 1..=packets {
        let due = interval_ns * f64::from(packet);
        let mut last = counter.read_ordered();
        while nanos(start, last) < due {
            let now = counter.read_ordered();
            let between = nanos(last, now);
            if between > INTERRUPTION_NS {
                measured.interruptions += 1;
                measured.squares += between * between;
            }
            last = now;
        }
        let begun = counter.read_ordered();
        touch(&mut memory);
        measured.work_ns.push(nanos(begun, counter.read_ordered()));
    }
    measured
}

/// Changes a byte of each line. Neighbouring lines are in different pages.
fn touch(memory: &mut [u8]) {
    for line in 0..LINES {
        let place = line * 7 % PAGES * PAGE_BYTES + line * LINE_BYTES % PAGE_BYTES;
        if let Some(byte) = memory.get_mut(place) {
            *byte = black_box(byte.wrapping_add(1));
        }
    }
}

fn differences(values: &[f64]) -> Vec<f64> {
    values.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Interrupts of a core so far, from /proc/interrupts (Documentation/filesystems/proc.rst).
fn interrupts(core: usize) -> Option<u64> {
    interrupts_of(&fs::read_to_string("/proc/interrupts").ok()?, core)
}

fn interrupts_of(text: &str, core: usize) -> Option<u64> {
    let mut lines = text.lines();
    let name = format!("CPU{core}");
    let column = lines.next()?.split_whitespace().position(|it| it == name)?;
    // Behind the name of the interrupt. Some rows have one count for all cores.
    let count = |line: &str| line.split_whitespace().nth(column + 1)?.parse::<u64>().ok();
    Some(lines.filter_map(count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_a_core_are_added_up() {
        let text = "           CPU0       CPU2\n  1:         10         20   IO-APIC  i8042\n\
                    LOC:       1000       2000   Local timer interrupts\nERR:          3\n";
        assert_eq!(interrupts_of(text, 0), Some(1_013));
        assert_eq!(interrupts_of(text, 2), Some(2_020));
        assert_eq!(interrupts_of(text, 1), None);
    }

    #[test]
    fn interruptions_cause_jitter_by_their_squares_and_the_transit() {
        let control = Control {
            jitter_ns: None,
            interruptions_per_second: 1_000.0,
            squares_per_second: 1_000.0 * 10_000.0 * 10_000.0,
            interrupts_per_second: None,
        };
        // One of 1,000 transits of 1 µs has 10 µs more: a deviation of 316 ns, and of 447 ns between two.
        assert_eq!(control.jitter_of_interruptions(1_000.0).round(), 447.0);
    }

    #[test]
    fn control_works_once_for_each_packet() {
        let measured = run(1.0, 50_000.0, 20);
        assert_eq!(measured.work_ns.len(), 20);
        assert!(measured.work_ns.iter().all(|ns| *ns > 0.0));
        assert_eq!(differences(&[1.0, 4.0, 2.0]), [3.0, -2.0]);
        assert_eq!(Control::packets_in(Duration::from_secs(1), 1e6), 1_000);
        assert_eq!(Control::packets_in(Duration::from_secs(1), 1e12), 3);
    }
}
