//! Comparison of a counter between cores.
//!
//! One thread stays on a core, and a partner moves to each other core in turn. They alternate and read the counter
//! each time. If the counters are equal, the partner's value lies between the two reads around it. So each round
//! bounds the offset of the partner's counter, and the bounds of all rounds must be consistent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_sys::scheduling;

use super::raw::RawSource;

/// Rounds per core: the tightest of them is within some ticks of the best possible.
const ROUNDS: u64 = 50;

/// Timeout of all rounds with one core. A round takes less than a microsecond, the start of a thread about ten. On a
/// busy core it may have to wait for a time slice.
const ROUNDS_TIMEOUT: Duration = Duration::from_millis(10);

/// Timeout for the thread that runs the rounds, in addition, in case its own core delays it.
const THREAD_TIMEOUT: Duration = Duration::from_millis(50);

/// Result of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreComparison {
    /// No difference found.
    Agree {
        /// Number of compared cores, including the reference core.
        compared: usize,
        /// Number of cores that did not answer in time.
        unanswered: usize,
        /// Max undetected difference, in ticks.
        within: u64,
    },
    /// The counter of a core certainly differs, or ran backwards.
    Differ {
        /// The core.
        core: usize,
        /// Bounds of its offset.
        offset: Offset,
    },
    /// No comparison possible, with the reason.
    Untested(String),
}

/// Bounds of the partner's counter minus the reference core's counter, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Offset {
    const UNBOUNDED: Self = Self { low: i64::MIN, high: i64::MAX };

    /// These bounds combined with one more round: the partner's `reply` was read between `before` and `after`.
    fn with_round(self, before: u64, reply: u64, after: u64) -> Self {
        let low = difference(reply, after);
        let high = difference(reply, before);
        Self { low: self.low.max(low), high: self.high.min(high) }
    }

    /// True if the counters may be equal. Crossed bounds contain no offset: the two counters do not run at one rate,
    /// or not always forwards.
    const fn may_be_zero(self) -> bool {
        self.low <= 0 && self.high >= 0
    }

    /// Max offset within the bounds, in ticks.
    fn max_abs(self) -> u64 {
        self.low.unsigned_abs().max(self.high.unsigned_abs())
    }
}

/// `a - b` of two values of one counter, less than half its range apart.
const fn difference(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// Compares the counter on all cores that the calling thread may run on, within some
/// milliseconds. The caller's affinity stays unchanged.
pub(crate) fn compare<S: RawSource + Send + 'static>(source: S) -> CoreComparison {
    let cores = match scheduling::allowed_cores() {
        Ok(cores) if cores.len() < 2 => {
            return CoreComparison::Untested("this thread may run on one core only".to_owned());
        }
        Ok(cores) => cores,
        Err(error) => return CoreComparison::Untested(error.to_string()),
    };
    let (report, reported) = mpsc::channel();
    // Not joined if it is late: a core that runs a thread of real-time priority may never schedule it.
    let first = thread::Builder::new().name("core-test".to_owned()).spawn(move || {
        // The receiver may have timed out.
        let _ = report.send(compare_with_first(source, &cores));
    });
    let found = match &first {
        Ok(_) => reported.recv_timeout(THREAD_TIMEOUT).map_err(|_| "it took too long".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match found {
        Ok(found) => {
            // The thread has finished. A caller that later creates its own user namespace must be single-threaded
            // (unshare(2)).
            let _ = first.map(thread::JoinHandle::join);
            found
        }
        Err(reason) => CoreComparison::Untested(reason),
    }
}

fn compare_with_first<S: RawSource + Send + 'static>(source: S, cores: &[usize]) -> CoreComparison {
    let deadline = Instant::now() + ROUNDS_TIMEOUT;
    let Some((&first, others)) = cores.split_first() else {
        return CoreComparison::Untested("there are no cores".to_owned());
    };
    if let Err(error) = scheduling::pin_to(first) {
        return CoreComparison::Untested(error.to_string());
    }
    let (mut compared, mut unanswered, mut within) = (1, 0, 0);
    for &core in others {
        match rounds_with(source, core, deadline) {
            Some(offset) if !offset.may_be_zero() => {
                return CoreComparison::Differ { core, offset };
            }
            Some(offset) => {
                compared += 1;
                within = offset.max_abs().max(within);
            }
            None => unanswered += 1,
        }
    }
    if compared == 1 {
        return CoreComparison::Untested("no other core answered in time".to_owned());
    }
    CoreComparison::Agree { compared, unanswered, within }
}

/// The number of the current turn. The partner starts at 0 and sets 1 when it is on its core; from then on even
/// numbers are the partner's turns. [`Turn::END`] ends the exchange.
#[derive(Default)]
struct Turn {
    number: AtomicU64,
    reply: AtomicU64,
}

impl Turn {
    const END: u64 = u64::MAX;

    /// Waits for a turn, or for the end.
    fn wait_for(&self, number: u64, deadline: Option<Instant>) -> bool {
        loop {
            // Reading the time takes longer than a turn, so it is read only sometimes.
            for _ in 0..100 {
                match self.number.load(Ordering::Acquire) {
                    Self::END => return false,
                    found if found == number => return true,
                    _ => std::hint::spin_loop(),
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return false;
            }
        }
    }

    /// Ends the partner's turn; false at the end.
    fn pass(&self, mine: u64) -> bool {
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        self.number.compare_exchange(mine, mine + 1, success, failure).is_ok()
    }

    /// Answers every turn until the end.
    fn answer(&self, source: impl RawSource) {
        if !self.pass(0) {
            return;
        }
        for mine in (1..=ROUNDS).map(|round| 2 * round) {
            if !self.wait_for(mine, None) {
                return;
            }
            self.reply.store(source.read_ordered(), Ordering::Relaxed);
            if !self.pass(mine) {
                return;
            }
        }
    }

    /// Requests one reply, and narrows the bounds by it; none after the deadline.
    fn ask(
        &self,
        source: impl RawSource,
        round: u64,
        so_far: Offset,
        by: Instant,
    ) -> Option<Offset> {
        let before = source.read_ordered();
        self.number.store(2 * round, Ordering::Release);
        if !self.wait_for(2 * round + 1, Some(by)) {
            return None;
        }
        let after = source.read_ordered();
        Some(so_far.with_round(before, self.reply.load(Ordering::Relaxed), after))
    }
}

/// Offset of the counter on `core`; none after the deadline.
fn rounds_with<S: RawSource + Send + 'static>(
    source: S,
    core: usize,
    deadline: Instant,
) -> Option<Offset> {
    if Instant::now() > deadline {
        return None;
    }
    let turn = Arc::new(Turn::default());
    let shared = Arc::clone(&turn);
    let partner =
        thread::Builder::new().name("core-test".to_owned()).spawn(
            move || match scheduling::pin_to(core) {
                Ok(()) => shared.answer(source),
                Err(_) => shared.number.store(Turn::END, Ordering::Release),
            },
        );
    let partner = partner.ok()?;
    let started = turn.wait_for(1, Some(deadline));
    let mut offset = Offset::UNBOUNDED;
    for round in 1..=ROUNDS {
        let asked = started.then(|| turn.ask(source, round, offset, deadline)).flatten();
        let Some(bounds) = asked else {
            // The partner ends when its core schedules it, and is not joined. Too few rounds can prove an offset, but
            // not its absence.
            turn.number.store(Turn::END, Ordering::Release);
            return (!offset.may_be_zero()).then_some(offset);
        };
        offset = bounds;
    }
    partner.join().ok().map(|()| offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::os::Os;

    /// Rounds of 100 ticks each. In the middle of a round the partner reads a counter that is ahead by
    /// `offset(time)`.
    fn rounds(offset: impl Fn(u64) -> i64) -> Offset {
        (1_u64..=50).map(|round| round * 1_000).fold(Offset::UNBOUNDED, |bounds, time| {
            let reply = (time + 50).checked_add_signed(offset(time)).unwrap();
            bounds.with_round(time, reply, time + 100)
        })
    }

    #[test]
    fn offset_below_a_rounds_length_is_invisible() {
        assert_eq!(rounds(|_| 0), Offset { low: -50, high: 50 });
        assert!(rounds(|_| 40).may_be_zero());
        assert_eq!(rounds(|_| 40).max_abs(), 90);
    }

    #[test]
    fn offset_above_a_rounds_length_is_proven() {
        assert!(!rounds(|_| 60).may_be_zero());
        assert!(!rounds(|_| -60).may_be_zero());
    }

    #[test]
    fn other_rates_and_jumps_cross_the_bounds() {
        assert!(!rounds(|time| time.cast_signed() / 100).may_be_zero());
        assert!(!rounds(|time| if time == 7_000 { -101 } else { 0 }).may_be_zero());
    }

    #[test]
    fn counter_near_its_end_is_compared() {
        let offset = Offset::UNBOUNDED.with_round(u64::MAX - 20, 10, 40);
        assert_eq!(offset, Offset { low: -30, high: 31 });
    }

    /// The kernel's clock, ahead by a thousand seconds more for each thread that reads it.
    #[derive(Clone, Copy)]
    struct OnePerThread;

    impl RawSource for OnePerThread {
        const NAME: &'static str = "one per thread";

        fn read(self) -> u64 {
            static THREADS: AtomicU64 = AtomicU64::new(0);
            thread_local! {
                static AHEAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed) * 1_000_000_000_000;
            }
            AHEAD.with(|ahead| Os.read() + ahead)
        }

        fn read_ordered(self) -> u64 {
            self.read()
        }
    }

    #[test]
    fn different_counters_are_detected() {
        match compare(OnePerThread) {
            CoreComparison::Differ { offset, .. } => {
                assert!(offset.low > 900_000_000_000, "{offset:?}")
            }
            found => assert!(matches!(found, CoreComparison::Untested(_)), "{found:?}"),
        }
    }

    #[test]
    fn kernel_clock_agrees_on_all_cores() {
        let found = compare(Os);
        assert!(!matches!(found, CoreComparison::Differ { .. }), "{found:?}");
    }

    #[test]
    fn late_partner_ends() {
        let turn = Turn::default();
        turn.number.store(Turn::END, Ordering::Release);
        turn.answer(Os);
        assert_eq!(turn.number.load(Ordering::Acquire), Turn::END);
    }
}
