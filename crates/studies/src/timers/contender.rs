//! Every way to read every source, and the measurement of a turn of reads.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use wirestamp_clock::{Counter, CounterTicks, Survey, TickTime, Time, Utc, WallClock};

use super::paper::Timer;
use super::tally::CostHistogram;

/// Consecutive reads in one turn whose costs are measured: from 0.1 ms with a TSC to 10 ms with an
/// HPET.
pub(super) const READS_PER_ROUND: u32 = 10_000;

/// A way to read a time source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The source by its name in the clock library; that of the kernel's clocks is `os`.
    pub(super) source: &'static str,
    /// Function that a program calls.
    pub(super) call: &'static str,
    /// The timer of the paper that was measured this way, if any.
    pub(super) timer: Option<Timer>,
    /// The smallest usual step of the clock in nanoseconds.
    pub(super) step_ns: f64,
}

/// A way to read a time source that is measured here.
pub(super) struct Contender {
    pub(super) way: Way,
    /// The reader's tick in nanoseconds.
    pub(super) tick_ns: f64,
    turn: RunId,
}

/// Reads in a row and counts what each cost.
type RunId = Box<dyn FnMut(&mut CostHistogram)>;

impl Contender {
    /// Takes a turn: [`READS_PER_ROUND`] costs, counted once the last read is done.
    pub(super) fn turn(&mut self) -> CostHistogram {
        let mut tally = CostHistogram::default();
        (self.turn)(&mut tally);
        tally
    }
}

/// Every way to read the usable sources of this machine, and the time of day, which is computed from the
/// selected source.
pub(super) fn contenders(survey: &Survey, wall_clock: &WallClock) -> Vec<Contender> {
    let mut contenders = Vec::new();
    for source in &survey.sources {
        let (Some(frequency_hz), Ok(counter)) = (source.frequency_hz, Counter::named(source.name))
        else {
            continue;
        };
        let step_ns = source.granularity_ns.unwrap_or(0.0);
        let contender = |(call, turn): (&'static str, RunId)| Contender {
            way: Way { source: source.name, call, timer: None, step_ns },
            tick_ns: 1e9 / frequency_hz,
            turn,
        };
        let [mut now, read, ordered] = ways(counter).map(contender);
        now.way.timer = Timer::of_source(source.name);
        contenders.extend([now, read, ordered]);
        if source.name == survey.selected {
            let way = time_of_day(wall_clock.clone());
            contenders.push(Contender { tick_ns: 1.0, ..contender(way) });
        }
        if counter == Counter::Os {
            contenders.extend(standard().map(|way| Contender { tick_ns: 1.0, ..contender(way) }));
        }
    }
    contenders
}

/// The ways to read a counter. The first is what the paper measured, "setting timer and extracting
/// its time value": a time value is made, and its main counter taken from it.
fn ways(counter: Counter) -> [(&'static str, RunId); 3] {
    let passed = |from: u64, to: u64| to.saturating_sub(from);
    let elapsed = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    let now = move || TickTime::<CounterTicks>::now(counter).count();
    [
        ("TickTime::now", turn(now, elapsed)),
        ("Counter::read", turn(move || counter.read(), passed)),
        ("Counter::read_ordered", turn(move || counter.read_ordered(), passed)),
    ]
}

/// The library's time of day, in nanoseconds.
fn time_of_day(clock: WallClock) -> (&'static str, RunId) {
    let passed =
        |from: Time<Utc>, to: Time<Utc>| u64::try_from((to - from).as_nanos()).unwrap_or(0);
    ("WallClock::now", turn(move || clock.now(), passed))
}

/// Functions called by programs without a library: `clock_gettime` of `CLOCK_MONOTONIC` and
/// `CLOCK_REALTIME`, in nanoseconds.
fn standard() -> [(&'static str, RunId); 2] {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let passed = move |from: Instant, to: Instant| nanos(to.saturating_duration_since(from));
    let went_by =
        move |from: SystemTime, to: SystemTime| nanos(to.duration_since(from).unwrap_or_default());
    [
        ("std Instant::now", turn(Instant::now, passed)),
        ("std SystemTime::now", turn(SystemTime::now, went_by)),
    ]
}

/// A turn of consecutive reads. Their values are only stored; the differences (0 if the clock was set back) are
/// computed afterwards, so that a cost contains only the read and the store of its value.
fn turn<T: Copy + 'static>(
    read: impl Fn() -> T + 'static,
    ticks_between: impl Fn(T, T) -> u64 + 'static,
) -> RunId {
    // One read more than costs. Filled here, so that the first turn does not wait for memory.
    let mut reads: Vec<T> = (0..=READS_PER_ROUND).map(|_| read()).collect();
    Box::new(move |tally| {
        reads.fill_with(&read);
        for (from, to) in black_box(&reads).iter().zip(&reads[1..]) {
            tally.record(ticks_between(*from, *to));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use wirestamp_clock::ClockService;

    use super::*;

    #[test]
    fn a_turn_counts_what_passed_between_one_read_and_the_next() {
        let clock = Cell::new(0_u64);
        let mut turn = turn(
            move || {
                // Set back once in a while.
                let now = clock.get();
                clock.set(if now >= 900 { 0 } else { now + 30 });
                now
            },
            |from, to| to.saturating_sub(from),
        );
        let mut tally = CostHistogram::default();
        turn(&mut tally);
        let cost = tally.cost(u64::MAX, 0.5).unwrap();
        assert_eq!(cost.count, u64::from(READS_PER_ROUND));
        assert_eq!((cost.min, cost.p50, cost.max), (0.0, 15.0, 15.0));
    }

    #[test]
    fn every_usable_source_is_read_in_every_way() {
        let survey = wirestamp_clock::survey();
        let service = ClockService::start(Counter::select()).unwrap();
        let contenders = contenders(&survey, &service.wall_clock());
        let usable = survey.sources.iter().filter(|source| source.available).count();
        assert_eq!(contenders.len(), 3 * usable + 3);
        for contender in contenders {
            let Contender { way, tick_ns, .. } = contender;
            assert!(tick_ns > 0.0 && way.step_ns >= 0.0, "{}", way.call);
        }
    }
}
