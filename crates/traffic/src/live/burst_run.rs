//! Sends the bursts of a run at their deadlines.

use std::sync::atomic::AtomicBool;

use wirestamp_clock::Span;

use super::{Limit, Pace};
use crate::PacingClock;
use crate::pace::{Pacer, WaitResult};

/// Time from the call to the first deadline, so that the first burst is not late.
const START_DELAY: Span = Span::from_millis(1);

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BurstRun {
    /// Time from the first deadline to the end.
    pub(super) elapsed: Span,
    /// Bursts that were late because a sleep ended after their deadline.
    pub(super) overslept: u64,
    /// Longest time from the deadline of a burst to its begin. None at full speed, where bursts have no deadlines.
    pub(super) latest: Option<Span>,
    /// Whether `stop` ended the run.
    pub(super) stopped: bool,
}

/// Calls `send` for each burst, never before its deadline. Ends at the limit, when `stop` is set, or
/// when `send` fails.
pub(super) fn run_bursts<E>(
    clock: &impl PacingClock,
    pace: Pace,
    limit: Limit,
    stop: &AtomicBool,
    mut send: impl FnMut(u32) -> Result<(), E>,
) -> Result<BurstRun, E> {
    let latest = pace.has_deadlines().then_some(Span::ZERO);
    let mut run = BurstRun { latest, ..BurstRun::default() };
    let mut pacer = Pacer::new();
    let duration = limit.duration.unwrap_or(Span::MAX);
    let start = clock.now().saturating_add(clock.ticks(START_DELAY));
    for burst in pace.bursts(limit.frames.unwrap_or(u64::MAX)) {
        if burst.offset >= duration || clock.span(start, clock.now()) >= duration {
            break;
        }
        let deadline = start.saturating_add(clock.ticks(burst.offset));
        match pacer.wait(clock, deadline, stop) {
            WaitResult::Due => {}
            WaitResult::Overslept => run.overslept += 1,
            WaitResult::Stopped => {
                run.stopped = true;
                break;
            }
        }
        run.latest = run.latest.map(|latest| latest.max(clock.span(deadline, clock.now())));
        send(burst.frames)?;
    }
    run.elapsed = clock.span(start, clock.now()).max(Span::ZERO);
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::convert::Infallible;
    use std::sync::atomic::Ordering;

    use wirestamp_clock::{Time, Utc};

    use super::*;

    /// A clock in nanoseconds: a reading takes 20 ns, a sleep exactly its duration.
    struct Simulated(Cell<u64>);

    impl Simulated {
        fn pass(&self, nanos: u64) {
            self.0.set(self.0.get() + nanos);
        }
    }

    impl PacingClock for Simulated {
        fn now(&self) -> u64 {
            self.pass(20);
            self.0.get()
        }
        fn ticks(&self, span: Span) -> u64 {
            span.as_nanos().try_into().unwrap()
        }
        fn span(&self, from: u64, to: u64) -> Span {
            Span::from_nanos(to.cast_signed() - from.cast_signed())
        }
        fn utc(&self, reading: u64) -> Time<Utc> {
            Time::from_nanos(reading.cast_signed())
        }
        fn sleep(&self, span: Span) {
            self.pass(self.ticks(span));
        }
    }

    /// Runs a sender that takes `cost` nanoseconds per frame. Returns start (nanoseconds after the
    /// first deadline) and frames of each burst.
    fn bursts(pace: Pace, limit: Limit, cost: u64) -> (BurstRun, Vec<(u64, u32)>) {
        let clock = Simulated(Cell::new(5_000_000));
        let begun = RefCell::new(Vec::new());
        let send = |frames| {
            begun.borrow_mut().push((clock.0.get() - 6_000_020, frames));
            clock.pass(cost * u64::from(frames));
            Ok::<_, Infallible>(())
        };
        let run = run_bursts(&clock, pace, limit, &AtomicBool::new(false), send).unwrap();
        (run, begun.into_inner())
    }

    fn duration(millis: i64) -> Limit {
        Limit { frames: None, duration: Some(Span::from_millis(millis)) }
    }

    #[test]
    fn bursts_start_at_deadlines_until_duration_ends() {
        let pace = Pace::rate(1_000_000).unwrap().with_burst(500).unwrap();
        let (run, bursts) = bursts(pace, duration(10), 200);
        assert_eq!(bursts.len(), 20);
        for (k, (begun, frames)) in (0..).zip(bursts) {
            let due = k * 500_000;
            assert!((due..due + 100).contains(&begun) && frames == 500, "{k}: {begun}");
        }
        assert_eq!((run.overslept, run.stopped), (0, false));
        let latest = run.latest.unwrap();
        assert!((Span::ZERO..Span::from_nanos(100)).contains(&latest), "{latest:?}");
    }

    #[test]
    fn slow_sender_runs_without_pause_and_ends_on_time() {
        let pace = Pace::rate(1_000_000).unwrap().with_burst(500).unwrap();
        let (run, bursts) = bursts(pace, duration(10), 4_000);
        assert_eq!(bursts.len(), 5); // of 2 ms each
        assert!(bursts.windows(2).all(|pair| pair[1].0 - pair[0].0 < 2_000_200), "{bursts:?}");
        assert!(run.elapsed < Span::from_nanos(10_001_000), "{run:?}");
        // The last burst begins after four of 2 ms. It was due after four intervals of 500 us.
        let latest = run.latest.unwrap();
        let late = Span::from_millis(6)..Span::from_nanos(6_001_000);
        assert!(late.contains(&latest), "{latest:?}");
    }

    #[test]
    fn full_speed_sends_exact_frame_count() {
        let limit = Limit { frames: Some(10_000), duration: None };
        let (run, bursts) = bursts(Pace::full_speed(), limit, 100);
        assert_eq!(bursts.iter().map(|(_, frames)| frames).sum::<u32>(), 10_000);
        assert!(bursts.last().unwrap().0 < 820_000, "{bursts:?}");
        assert_eq!(run.latest, None);
    }

    #[test]
    fn stop_or_failure_ends_the_run() {
        let (clock, stop) = (Simulated(Cell::new(0)), AtomicBool::new(false));
        let mut calls = 0;
        let send = |_| {
            calls += 1;
            stop.store(calls == 3, Ordering::Relaxed);
            Ok::<_, Infallible>(())
        };
        let pace = Pace::rate(1_000).unwrap();
        let run = run_bursts(&clock, pace, Limit::default(), &stop, send).unwrap();
        assert_eq!((run.stopped, calls), (true, 3));
        let running = AtomicBool::new(false);
        assert_eq!(run_bursts(&clock, pace, Limit::default(), &running, |_| Err(7)), Err(7));
    }
}
