//! Whether a counter is one and the same on all cores, tried out.
//!
//! One thread stays on a core, and a partner goes to each other core in turn. They pass a turn to
//! and fro, and read the counter with each: what the partner read lies between the two reads around
//! it, if the counters show the same. Each round so bounds the offset of the partner's counter, and
//! the bounds of all rounds have to agree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_sys::scheduling;

use super::RawSource;

/// Rounds with each core: the tightest of them is within some ticks of the best there can be.
const ROUNDS: u64 = 50;

/// How long all of the rounds may take. A round takes under a microsecond, starting a thread some
/// ten; a core that is busy with something else can make it wait for a time slice.
const PATIENCE: Duration = Duration::from_millis(10);

/// How long to wait for the thread that does the rounds, if its own core does not let it go on.
const LAST_PATIENCE: Duration = Duration::from_millis(50);

/// What the comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// No core's counter was seen to differ.
    Agree {
        /// Cores compared, with the one that they were compared to.
        compared: usize,
        /// Cores that did not answer in time.
        unanswered: usize,
        /// The most ticks by which the counter of one could differ unseen.
        within: u64,
    },
    /// A core's counter is off for certain, or ran backwards.
    Differ {
        /// The core.
        core: usize,
        /// What was seen.
        offset: Offset,
    },
    /// There was nothing to compare, or it could not be done, for this reason.
    Untested(String),
}

/// The bounds of what a partner's counter shows more than the first one's, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Offset {
    const UNKNOWN: Self = Self { low: i64::MIN, high: i64::MAX };

    /// The bounds with those of one more round: the partner's `reply` was read between `before`
    /// and `after`.
    fn with_round(self, before: u64, reply: u64, after: u64) -> Self {
        let low = difference(reply, after);
        let high = difference(reply, before);
        Self { low: self.low.max(low), high: self.high.min(high) }
    }

    /// Whether the counters may show the same. Bounds that cross each other have no offset between
    /// them: the two counters do not run at one rate, or not always forwards.
    const fn may_be_none(self) -> bool {
        self.low <= 0 && self.high >= 0
    }

    /// The largest offset within the bounds, in ticks.
    fn largest(self) -> u64 {
        self.low.unsigned_abs().max(self.high.unsigned_abs())
    }
}

/// `a - b` of two values of one counter, less than half its range apart.
const fn difference(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// Compares the counter on all cores that the calling thread may run on, in some milliseconds. The
/// caller stays where it is.
pub(crate) fn compare<S: RawSource + Send + 'static>(source: S) -> Cores {
    let cores = match scheduling::allowed_cores() {
        Ok(cores) if cores.len() < 2 => {
            return Cores::Untested("this thread may run on one core only".to_owned());
        }
        Ok(cores) => cores,
        Err(error) => return Cores::Untested(error.to_string()),
    };
    let (report, reported) = mpsc::channel();
    // Not joined if it is late: a core kept busy by a thread of real-time priority may never let it
    // end.
    let first = thread::Builder::new().name("core-test".to_owned()).spawn(move || {
        // The receiver may have given up.
        let _ = report.send(compare_with_first(source, &cores));
    });
    let found = match &first {
        Ok(_) => reported.recv_timeout(LAST_PATIENCE).map_err(|_| "it took too long".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match found {
        Ok(found) => {
            // It has nothing left to do. A caller that goes on to a user namespace of its own must
            // be alone in the process (unshare(2)).
            let _ = first.map(thread::JoinHandle::join);
            found
        }
        Err(reason) => Cores::Untested(reason),
    }
}

fn compare_with_first<S: RawSource + Send + 'static>(source: S, cores: &[usize]) -> Cores {
    let deadline = Instant::now() + PATIENCE;
    let Some((&first, others)) = cores.split_first() else {
        return Cores::Untested("there are no cores".to_owned());
    };
    if let Err(error) = scheduling::pin_to(first) {
        return Cores::Untested(error.to_string());
    }
    let (mut compared, mut unanswered, mut within) = (1, 0, 0);
    for &core in others {
        match rounds_with(source, core, deadline) {
            Some(offset) if !offset.may_be_none() => return Cores::Differ { core, offset },
            Some(offset) => {
                compared += 1;
                within = offset.largest().max(within);
            }
            None => unanswered += 1,
        }
    }
    if compared == 1 {
        return Cores::Untested("no other core answered in time".to_owned());
    }
    Cores::Agree { compared, unanswered, within }
}

/// Whose turn it is. The partner starts at 0 and passes 1 on when it is on its core; from then on
/// even numbers are the partner's. [`Turn::END`] ends the game.
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
            // Looking at the time costs more than a turn: only now and then.
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

    /// Passes the partner's turn on; false at the end.
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

    /// Asks for one reply, and bounds the offset further by it; none if it did not come in time.
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

/// The offset of the counter on `core`; none if it could not be had before the deadline.
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
    let mut offset = Offset::UNKNOWN;
    for round in 1..=ROUNDS {
        let asked = started.then(|| turn.ask(source, round, offset, deadline)).flatten();
        let Some(bounds) = asked else {
            // The partner ends when its core lets it run; nobody waits for that. A few rounds prove
            // nothing unless they prove an offset.
            turn.number.store(Turn::END, Ordering::Release);
            return (!offset.may_be_none()).then_some(offset);
        };
        offset = bounds;
    }
    partner.join().ok().map(|()| offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::os::Os;

    /// Rounds of 100 ticks each, of which the partner reads in the middle a counter that shows
    /// `offset(time)` more.
    fn rounds(offset: impl Fn(u64) -> i64) -> Offset {
        (1_u64..=50).map(|round| round * 1_000).fold(Offset::UNKNOWN, |bounds, time| {
            let reply = (time + 50).checked_add_signed(offset(time)).unwrap();
            bounds.with_round(time, reply, time + 100)
        })
    }

    #[test]
    fn an_offset_below_the_length_of_a_round_cannot_be_told_from_none() {
        assert_eq!(rounds(|_| 0), Offset { low: -50, high: 50 });
        assert!(rounds(|_| 40).may_be_none());
        assert_eq!(rounds(|_| 40).largest(), 90);
    }

    #[test]
    fn an_offset_above_the_length_of_a_round_is_proven_either_way() {
        assert!(!rounds(|_| 60).may_be_none());
        assert!(!rounds(|_| -60).may_be_none());
    }

    #[test]
    fn another_rate_or_a_jump_leaves_no_offset_that_fits_all_rounds() {
        assert!(!rounds(|time| time.cast_signed() / 100).may_be_none());
        assert!(!rounds(|time| if time == 7_000 { -101 } else { 0 }).may_be_none());
    }

    #[test]
    fn a_counter_about_to_wrap_is_compared_as_any_other() {
        let offset = Offset::UNKNOWN.with_round(u64::MAX - 20, 10, 40);
        assert_eq!(offset, Offset { low: -30, high: 31 });
    }

    /// The kernel's clock with a thousand seconds more for each thread that reads it.
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
    fn counters_that_differ_are_found_out() {
        match compare(OnePerThread) {
            Cores::Differ { offset, .. } => assert!(offset.low > 900_000_000_000, "{offset:?}"),
            found => assert!(matches!(found, Cores::Untested(_)), "{found:?}"),
        }
    }

    #[test]
    fn the_kernels_clock_agrees_with_itself_on_all_cores() {
        let found = compare(Os);
        assert!(!matches!(found, Cores::Differ { .. }), "{found:?}");
    }

    #[test]
    fn the_game_ends_for_a_partner_that_was_given_up() {
        let turn = Turn::default();
        turn.number.store(Turn::END, Ordering::Release);
        turn.answer(Os);
        assert_eq!(turn.number.load(Ordering::Acquire), Turn::END);
    }
}
